/*
 * The doctor: which engine the library will choose, by opening what the engine would: best first, each with the reason
 * why it cannot be had.
 */
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "include/countersink/explain.h"
#include "include/internal/alloc_object.h"
#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "include/internal/lock_object.h"
#include "launcher/base/message.h"
#include "launcher/commands/doctor/doctor.h"
#include "launcher/session/spawn.h"

/* Open a sampling event with a one-page ring, never enabled, as the engine does in each thread. 0 or a fault in why. */
static int try_engine(const struct csink_doctor *doctor, bool sigtrap, struct csink_explanation *why)
{
	size_t bytes = 2 * (size_t)sysconf(_SC_PAGESIZE);
	struct csink_event_error err;
	struct csink_event_spec spec;
	struct csink_perf_call call = {&spec.attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC};
	void *ring;
	int fd, ret = 0;

	csink_events_parse(doctor->event, &spec, 1, &err);
	if (doctor->user_only)
		csink_event_set_user_only(&spec);
	spec.attr.disabled = 1;
	spec.attr.sample_period = 1000000;
	spec.attr.sample_type = PERF_SAMPLE_READ;
	spec.attr.read_format =
		PERF_FORMAT_GROUP | PERF_FORMAT_ID | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	spec.attr.remove_on_exec = sigtrap;
	spec.attr.sigtrap = sigtrap;
	fd = csink_perf_open(&spec.attr, 0, -1, -1, call.flags);
	if (fd < 0) {
		csink_explain_open(&call, -fd, why, 1);
		return fd;
	}
	ring = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ring == MAP_FAILED) {
		ret = -errno;
		csink_explain_mmap(&spec.attr, fd, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, -ret, why);
	} else {
		munmap(ring, bytes);
	}
	close(fd);
	return ret;
}

/* Open an event as a program that cannot be injected has it: on a CPU, inherited, with copies of stacks. Returns 0 or
 * -errno. */
static int try_outside(const struct csink_doctor *doctor, bool has_read)
{
	struct csink_event_error err;
	struct csink_event_spec spec;
	CSINK_AUTO_CLOSE int fd = -1;

	csink_events_parse(doctor->event, &spec, 1, &err);
	if (doctor->user_only)
		csink_event_set_user_only(&spec);
	spec.attr.disabled = spec.attr.enable_on_exec = spec.attr.inherit = 1;
	spec.attr.sample_period = 1000000;
	spec.attr.sample_type = PERF_SAMPLE_TID | (has_read ? PERF_SAMPLE_READ : 0);
	spec.attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | (has_read ? PERF_FORMAT_GROUP : 0);
	fd = csink_perf_open(&spec.attr, 0, CSINK_MAX(sched_getcpu(), 0), -1, PERF_FLAG_FD_CLOEXEC);
	return CSINK_MIN(fd, 0);
}

void csink_doctor_check_outside(struct csink_doctor *doctor)
{
	char why[CSINK_WHY_BYTES];
	int err = doctor->refused ? -EACCES : try_outside(doctor, true);

	if (doctor->refused)
		csink_doctor_add(doctor, "outside", CSINK_LEVEL_NOTE, "",
				 "no: static, musl and 32-bit programs are counted only");
	else if (!err)
		csink_doctor_add(doctor, "outside", CSINK_LEVEL_OK, "",
				 "static, musl and 32-bit programs are sampled, too: by the kernel, on %s",
				 doctor->event);
	else if (err == -EINVAL && !try_outside(doctor, false))
		csink_doctor_add(doctor, "outside", CSINK_LEVEL_NOTE, "",
				 "static, musl and 32-bit programs are sampled, too; before Linux 6.13 their samples "
				 "weigh a period, and are scaled to their CPU time");
	else
		csink_doctor_add(doctor, "outside", CSINK_LEVEL_NOTE, "",
				 "no: static, musl and 32-bit programs are counted only: %s",
				 csink_explain_brief(-err, why, sizeof(why)));
}

void csink_doctor_check_own_events(struct csink_doctor *doctor)
{
	char library[PATH_MAX], why[CSINK_WHY_BYTES];

	if (csink_library_find(library, why, sizeof(why)))
		csink_doctor_add(doctor, "own events", CSINK_LEVEL_NOTE, "", "no: %s", why);
	else if (!csink_object_is_there(library, CSINK_ALLOC_LIBRARY) ||
		 !csink_object_is_there(library, CSINK_LOCK_LIBRARY))
		csink_doctor_add(doctor, "own events", CSINK_LEVEL_NOTE, "",
				 "no: " CSINK_ALLOC_LIBRARY " or " CSINK_LOCK_LIBRARY
				 " is not beside the library (incomplete installation?)");
	else
		csink_doctor_add(doctor, "own events", CSINK_LEVEL_OK, "",
				 "--events=alloc and lock measure what programs allocate, and who waits for locks; no "
				 "rights are needed");
}

void csink_doctor_check_engine(struct csink_doctor *doctor)
{
	struct csink_explanation why;

	if (doctor->refused) {
		doctor->engine = "timer";
		csink_doctor_add(doctor, "engine", CSINK_LEVEL_WARN, "",
				 "timer: CPU time only, sampled at the kernel's tick (100 to 1000 a second)");
		return;
	}
	if (!try_engine(doctor, true, &why)) {
		doctor->engine = "sigtrap";
		csink_doctor_add(doctor, "engine", CSINK_LEVEL_OK, "", "sigtrap, the best one, on %s", doctor->event);
		return;
	}
	doctor->engine = "signal";
	if ((!strcmp(why.field, "sigtrap") || !strcmp(why.field, "remove_on_exec")) &&
	    !try_engine(doctor, false, &why)) {
		csink_doctor_add(doctor, "engine", CSINK_LEVEL_WARN, "", "signal, on %s; sigtrap: " CSINK_SINCE_5_13,
				 doctor->event);
		return;
	}
	doctor->engine = "timer";
	csink_doctor_add(doctor, "engine", CSINK_LEVEL_WARN, why.remedy, "timer: CPU time only, for %s: %s",
			 doctor->event, why.text);
}
