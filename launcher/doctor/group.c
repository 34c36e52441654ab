/*
 * The doctor: how many hardware events are counted together. That a group opens proves nothing; a pinned group that
 * does not fit on the PMU now goes into an error state, which a read shows. So groups are made to count, one larger
 * than the other, until one fails.
 */
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "launcher/doctor/doctor.h"

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
#define MAX_MEMBERS (sizeof(candidates) / sizeof(candidates[0]))
#define PROBE_LOOPS 20000

static int open_member(const char *name, int leader)
{
	struct csink_event_error err;
	struct csink_event_spec spec;

	if (csink_events_parse(name, &spec, 1, &err) != 1)
		return -1;
	csink_event_set_user_only(&spec);
	spec.attr.disabled = leader < 0;
	spec.attr.pinned = leader < 0;
	return csink_perf_open(&spec.attr, 0, -1, leader, PERF_FLAG_FD_CLOEXEC);
}

/* Does the pinned group count? A group in its error state reads as end of file. */
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

/* The members that a group can have and still count, up to all that open. */
static int32_t measure(char *names, size_t size)
{
	int fds[MAX_MEMBERS], leader, nr = 0, largest = 0;
	size_t used = 0;

	leader = open_member(candidates[0], -1);
	if (leader < 0)
		return -1;
	fds[nr++] = leader;
	for (size_t i = 1; i <= MAX_MEMBERS; i++) {
		if (!counts(leader))
			break;
		if (largest < nr && used < size)
			used += (size_t)snprintf(names + used, size - used, "%s%s", largest ? " " : "",
						 candidates[i - 1]);
		largest = nr;
		if (i == MAX_MEMBERS)
			break;
		fds[nr] = open_member(candidates[i], leader);
		if (fds[nr] >= 0)
			nr++;
	}
	while (nr)
		close(fds[--nr]);
	return largest;
}

void csink_doctor_check_group(struct csink_doctor *doctor)
{
	struct csink_finding *finding;
	char names[240] = "";

	if (!doctor->has_pmu || doctor->refused)
		return;
	doctor->largest_group = measure(names, sizeof(names));
	if (doctor->largest_group > 0) {
		finding = csink_doctor_add(doctor, "group", CSINK_LEVEL_OK);
		csink_finding_text(finding, "%d hardware events are counted together: %s", doctor->largest_group,
				   names);
		return;
	}
	finding = csink_doctor_add(doctor, "group", CSINK_LEVEL_WARN);
	csink_finding_text(finding, "not even one hardware event of a pinned group is counted now");
	csink_finding_remedy(finding, "see who holds counters, above");
}
