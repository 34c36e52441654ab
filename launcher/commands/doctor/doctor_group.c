/*
 * The doctor: how many hardware events are counted together. That a group opens proves nothing; a pinned group that
 * does not fit on the PMU now goes into an error state, which a read shows. So groups are made to count, one larger
 * than the other, as long as there is an event that fits beside the others.
 */
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "launcher/base/format.h"
#include "launcher/commands/doctor/doctor.h"
#include "preload/core/sysfs.h"

/* What most CPUs have; those that do not open here are left out. */
static const char *const candidates[] = {
	"cycles",
	"instructions",
	"branches",
	"branch-misses",
	"cache-references",
	"cache-misses",
	"L1-dcache-load-misses",
	"L1-icache-load-misses",
	"dTLB-load-misses",
	"iTLB-load-misses",
	"bus-cycles",
	"LLC-load-misses",
};
/* An event of them may take one counter only: what is free beside them then counts one of these once more. */
static const char *const fillers[] = {"instructions", "cycles"};

#define MAX_MEMBERS 32
#define MAX_KINDS 8 /* of CPU in one machine */
#define PROBE_LOOPS 20000

struct probe {
	const char *pmu;
	int fds[MAX_MEMBERS]; /* the first one leads */
	int nr, nr_named;
	char *names;
	size_t size;
};

/* On a machine with several kinds of CPU, the event of the one that is looked at. Returns false if there is none. */
static bool find_event(const struct probe *probe, const char *name, struct csink_event_spec *spec)
{
	static const struct csink_event_roots machine;
	struct csink_event_spec bound[MAX_KINDS];
	struct csink_event_error err;
	int nr = csink_events_parse(name, bound, 1, &err);

	if (nr == 1)
		nr = csink_events_bind(&machine, bound, 1, MAX_KINDS, &err);
	for (int i = 0; i < nr; i++) {
		*spec = bound[i];
		if (nr == 1 || !strcmp(bound[i].pmu, probe->pmu))
			return true;
	}
	return false;
}

static int open_member(const struct probe *probe, const char *name, int leader)
{
	struct csink_event_spec spec;

	if (!find_event(probe, name, &spec))
		return -1;
	csink_event_set_user_only(&spec);
	spec.attr.disabled = leader < 0;
	spec.attr.pinned = leader < 0;
	return csink_perf_open(&spec.attr, 0, -1, leader, PERF_FLAG_FD_CLOEXEC);
}

/* Does the pinned group count? A group in its error state reads as end of file; switched on, it tries again. */
static bool counts(int leader)
{
	uint64_t value;
	bool does;

	ioctl(leader, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP);
	for (int i = 0; i < PROBE_LOOPS; i++)
		__asm__ volatile("" ::: "memory");
	does = read(leader, &value, sizeof(value)) == sizeof(value) && value;
	ioctl(leader, PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP);
	return does;
}

/* Does the group still count with this one in it? If not, it is taken out again. */
static bool add(struct probe *probe, const char *name)
{
	int fd;

	if (probe->nr == MAX_MEMBERS)
		return false;
	fd = open_member(probe, name, probe->nr ? probe->fds[0] : -1);
	if (fd < 0)
		return false;
	probe->fds[probe->nr] = fd;
	if (!counts(probe->fds[0])) {
		close(fd);
		return false;
	}
	probe->nr++;
	return true;
}

static void add_named(struct probe *probe, const char *name)
{
	if (!add(probe, name) || strlen(probe->names) + strlen(name) + 2 > probe->size)
		return;
	csink_append(probe->names, probe->size, "%s%s", probe->nr_named++ ? " " : "", name);
}

/* Those that the PMU itself names, which may be more than the general names stand for. */
static void add_of_pmu(struct probe *probe, const char *pmu)
{
	char text[160];
	const char *name;

	CSINK_SYSFS_EACH(name, "/sys/bus/event_source/devices/%s/events", pmu) {
		/* cpu_cycles and inst_retired, of ARM, are what cycles and instructions stand for. */
		if (strchr(name, '.') || !strcmp(name, "cpu_cycles") || !strcmp(name, "inst_retired") ||
		    !strcmp(name, "cpu-cycles"))
			continue;
		snprintf(text, sizeof(text), "%.60s/%.90s/", pmu, name);
		add_named(probe, text);
	}
}

/* The members that a group can have and still count. */
static int32_t measure(const char *pmu, char *names, size_t size)
{
	struct probe probe = {.pmu = pmu, .names = names, .size = size - 16}; /* what is left says how many more */
	int32_t largest;

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(candidates); i++)
		add_named(&probe, candidates[i]);
	if (*pmu)
		add_of_pmu(&probe, pmu);
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(fillers); i++)
		while (add(&probe, fillers[i]))
			;
	if (probe.nr > probe.nr_named)
		csink_append(names, size, " and %d more", probe.nr - probe.nr_named);
	largest = probe.nr;
	while (probe.nr)
		close(probe.fds[--probe.nr]);
	return largest;
}

/* The first kind of CPU of several, and its CPUs. */
static bool find_first_kind(struct csink_event_spec *spec, cpu_set_t *cpus)
{
	static const struct csink_event_roots machine;
	struct csink_event_spec bound[MAX_KINDS];
	struct csink_event_error err;

	if (csink_events_parse("cycles", bound, 1, &err) != 1 ||
	    csink_events_bind(&machine, bound, 1, MAX_KINDS, &err) < 2)
		return false;
	*spec = bound[0];
	CPU_ZERO(cpus);
	for (uint32_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (csink_event_is_on(spec, cpu))
			CPU_SET(cpu, cpus);
	return true;
}

void csink_doctor_check_group(struct csink_doctor *doctor)
{
	struct csink_event_spec kind = {.pmu = ""};
	cpu_set_t before, there;
	char names[240] = "";
	bool moved;

	if (!doctor->has_pmu || doctor->refused)
		return;
	moved = !sched_getaffinity(0, sizeof(before), &before) && find_first_kind(&kind, &there) &&
		!sched_setaffinity(0, sizeof(there), &there);
	doctor->largest_group = measure(moved ? kind.pmu : doctor->core_pmu, names, sizeof(names));
	if (moved)
		sched_setaffinity(0, sizeof(before), &before);
	if (doctor->largest_group > 0)
		csink_doctor_add(doctor, "group", CSINK_LEVEL_OK, "", "%d hardware events are counted together%s%s: %s",
				 doctor->largest_group, moved ? " by " : "", moved ? kind.pmu : "", names);
	else
		csink_doctor_add(doctor, "group", CSINK_LEVEL_WARN, "see the holders of counters, above",
				 "not even one hardware event of a pinned group is counted now");
}
