/* The doctor: limits on files, locked memory, sampling rate and stack depth, in what they mean for a profile. */
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "launcher/base/format.h"
#include "launcher/commands/doctor/doctor.h"

/* Each thread maps a page of its leader and one of data behind it. */
#define PAGES_A_THREAD 2
#define FEW_THREADS 64
#define FEW_FDS 64

static void check_fds(struct csink_doctor *doctor)
{
	const char *remedy = "have the hard limit raised: limits.conf(5), LimitNOFILE= of a service, docker --ulimit "
			     "nofile=1024";
	struct rlimit limit;
	char raise[48];
	bool few;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	few = limit.rlim_cur < FEW_FDS;
	snprintf(raise, sizeof(raise), "ulimit -n %llu", (unsigned long long)limit.rlim_max);
	if (limit.rlim_max > limit.rlim_cur)
		remedy = raise;
	csink_doctor_add(doctor, "fds", few ? CSINK_LEVEL_WARN : CSINK_LEVEL_OK, few ? remedy : "",
			 "%llu file descriptors (soft; hard %llu); each event takes one for a moment",
			 (unsigned long long)limit.rlim_cur, (unsigned long long)limit.rlim_max);
}

static void check_locked_memory(struct csink_doctor *doctor)
{
	long page = sysconf(_SC_PAGESIZE), cpus = sysconf(_SC_NPROCESSORS_ONLN);
	const struct csink_perf_system *system = &doctor->system;
	uint64_t bytes, threads;
	struct rlimit limit;
	char count[32];
	bool few;

	if (getrlimit(RLIMIT_MEMLOCK, &limit) || system->mlock_kb < 0)
		return;
	if ((system->has_ipc_lock && !system->in_user_ns) || limit.rlim_cur == RLIM_INFINITY || system->paranoid < 0) {
		csink_doctor_add(doctor, "locked memory", CSINK_LEVEL_OK, "",
				 "not limited for this process; any number of threads has a ring");
		return;
	}
	bytes = (uint64_t)system->mlock_kb * 1024 * (uint64_t)cpus + limit.rlim_cur;
	threads = bytes / (uint64_t)(PAGES_A_THREAD * page);
	few = threads < FEW_THREADS;
	csink_format_count(count, sizeof(count), threads);
	csink_doctor_add(
		doctor, "locked memory", few ? CSINK_LEVEL_WARN : CSINK_LEVEL_OK,
		few ? "ulimit -l 8192, or sysctl kernel.perf_event_mlock_kb=2064" : "",
		"%llu KiB for all of this user's processes, enough for the rings of %s threads; more are sampled by "
		"the timer",
		(unsigned long long)bytes / 1024, count);
}

static void check_rate(struct csink_doctor *doctor)
{
	int64_t most = doctor->system.max_sample_rate;
	char rate[32];

	if (most < 0)
		return;
	csink_format_count(rate, sizeof(rate), (uint64_t)most);
	csink_doctor_add(doctor, "rate", most < 10000 ? CSINK_LEVEL_WARN : CSINK_LEVEL_OK,
			 most < 10000 ? "sysctl kernel.perf_event_max_sample_rate=100000" : "",
			 "at most %s samples a second (kernel.perf_event_max_sample_rate%s)", rate,
			 most < 10000 ? ", which the kernel lowers when samples take too long" : "");
}

void csink_doctor_check_limits(struct csink_doctor *doctor)
{
	check_fds(doctor);
	check_locked_memory(doctor);
	check_rate(doctor);
}
