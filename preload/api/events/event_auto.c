/*
 * The event to sample if none was named. That cycles opens proves little: some virtual machines offer a PMU that
 * never counts, and someone else may hold every counter, so it is made to count once.
 */
#include <errno.h>
#include <stdio.h>

#include "include/countersink/explain.h"
#include "include/internal/base.h"
#include "preload/api/events/event_parse.h"

#define MAX_KINDS 8 /* of CPU in one machine */

/* Of the same event on each kind of CPU, the one that is run on counts, if any. Returns 1, 0 (none counts) or -errno.
 */
static int try_all(const struct csink_event_spec *specs, int nr)
{
	int counts = -ENOENT;

	for (int i = 0; i < nr && counts != 1; i++) {
		int ret = csink_event_does_count(&specs[i]);

		if (ret >= 0 || counts)
			counts = ret;
	}
	return counts;
}

void csink_events_auto(struct csink_event_spec *out, char *reason, size_t size)
{
	CSINK_KEEP_ERRNO;
	static const struct csink_event_roots machine;
	struct csink_event_spec bound[MAX_KINDS];
	struct csink_event_error err;
	int nr, counts;
	char why[128];

	csink_event_named("cycles", out);
	bound[0] = *out;
	nr = csink_events_bind(&machine, bound, 1, MAX_KINDS, &err);
	counts = try_all(bound, nr);
	if (counts > 0) {
		snprintf(reason, size, "cycles: the PMU of this machine counts");
		return;
	}
	csink_event_named("task-clock", out);
	if (counts == -ENOENT)
		snprintf(reason, size, "this machine exposes no PMU; using task-clock");
	else if (!counts)
		snprintf(reason, size,
			 "the PMU opens but does not count (all its counters are held, or it is not "
			 "real); using task-clock");
	else
		snprintf(reason, size, "%s; using task-clock", csink_explain_brief(-counts, why, sizeof(why)));
}
