/*
 * Every event that has a name here, and whether it opens: perf's generic names, the PMUs of sysfs, tracepoints, and
 * what libpfm4 knows of this CPU. Each is opened, in this process or on a CPU, and closed at once.
 */
#ifndef CSINK_CATALOG_H
#define CSINK_CATALOG_H

#include <stdbool.h>
#include <stdint.h>

#include "include/countersink/explain.h"
#include "launcher/base/message.h"

enum csink_catalog_state {
	CSINK_CATALOG_OPENS,
	CSINK_CATALOG_USER_ONLY, /* opens if the kernel is left out (:u) */
	CSINK_CATALOG_REFUSED,   /* why says why */
	CSINK_CATALOG_TEMPLATE,  /* has fields or unit masks to be filled in, so it was not tried */
	CSINK_CATALOG_UNTRIED,   /* one of too many tracepoints: closing each takes the kernel some 30 ms */
};

struct csink_catalog_event {
	const char *source; /* "generic", "cache", "tracepoint", a PMU's name, or libpfm4's for it, or "as asked" */
	const char *name;   /* as --events takes it */
	const char *help;   /* "" where there is none */
	enum csink_catalog_state state;
	struct csink_explanation why; /* of USER_ONLY and REFUSED */
};

struct csink_catalog_query {
	/*
	 * A part of the name, or a shell pattern; case does not matter. NULL: everything. One that matches no name may
	 * be an event written out, as in cycles:u.
	 */
	const char *pattern;
	bool usable; /* only what opens */
};

/* What was left out, or could not be looked at. */
struct csink_catalog_summary {
	uint32_t nr_events, nr_usable;          /* of those that match */
	uint32_t nr_tracepoints, nr_unit_masks; /* left out where there is no pattern: they are too many */
	uint32_t nr_untried;
	char tracepoints_why[CSINK_WHY_BYTES]; /* why there are none, or "" */
	char libpfm4_why[CSINK_WHY_BYTES];
};

/**
 * Call visit for each event that matches, source by source; its return value other than 0 ends the list.
 * Returns 0 or what visit returned.
 */
int csink_catalog_list(const struct csink_catalog_query *query,
		       int (*visit)(void *cookie, const struct csink_catalog_event *event), void *cookie,
		       struct csink_catalog_summary *summary);

#endif
