/*
 * The event to sample when nobody named one. That cycles opens proves little: some virtual machines offer a PMU that
 * never counts, and someone else may hold every counter, so it is made to count once.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "include/countersink/explain.h"
#include "preload/api/events/event_parse.h"

/* Enough to be counted anywhere; a few microseconds. */
#define PROBE_LOOPS 2000

#define MAX_KINDS 8 /* of CPU in one machine */

static void spend_cycles(void)
{
	for (int i = 0; i < PROBE_LOOPS; i++)
		__asm__ volatile("" ::: "memory");
}

/* True if the event counts while we work; closes fd. */
static bool does_count(int fd)
{
	struct {
		uint64_t value, enabled, running;
	} count = {0};
	bool counts;

	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	spend_cycles();
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	counts = read(fd, &count, sizeof(count)) == sizeof(count) && count.value && count.running;
	close(fd);
	return counts;
}

/* Of the same event on each kind of CPU, the one that is run on counts, if any. Returns 1, 0 (none counts) or -errno.
 */
static int try_all(const struct csink_event_spec *specs, int nr)
{
	int counts = -ENOENT;

	for (int i = 0; i < nr && counts != 1; i++) {
		struct perf_event_attr attr = specs[i].attr;
		int fd;

		attr.disabled = 1;
		attr.exclude_kernel = attr.exclude_hv = 1; /* so that every user may try */
		attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
		fd = csink_perf_open(&attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
		if (fd >= 0)
			counts = does_count(fd);
		else if (counts)
			counts = fd;
	}
	return counts;
}

void csink_events_auto(struct csink_event_spec *out, char *reason, size_t size)
{
	static const struct csink_event_roots machine;
	struct csink_event_spec bound[MAX_KINDS];
	struct csink_event_error err;
	int saved = errno, nr, counts;
	char why[128];

	csink_events_parse("cycles", out, 1, &err);
	bound[0] = *out;
	nr = csink_events_bind(&machine, bound, 1, MAX_KINDS, &err);
	counts = try_all(bound, nr);
	if (counts > 0) {
		snprintf(reason, size, "cycles: the PMU of this machine counts");
		errno = saved;
		return;
	}
	csink_events_parse("task-clock", out, 1, &err);
	if (counts == -ENOENT)
		snprintf(reason, size, "this machine exposes no PMU; using task-clock");
	else if (!counts)
		snprintf(reason, size,
			 "the PMU opens but does not count (all its counters are held, or it is not "
			 "real); using task-clock");
	else
		snprintf(reason, size, "%s; using task-clock", csink_explain_brief(-counts, why, sizeof(why)));
	errno = saved;
}
