/* A picture of `countersink top`: what a run did in the last interval, and since its start. */
#ifndef CSINK_TOP_PICTURE_H
#define CSINK_TOP_PICTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "launcher/profile/diff.h"

struct csink_top_sight;
struct csink_profile;

enum csink_top_view { CSINK_TOP_FUNCTIONS, CSINK_TOP_THREADS, CSINK_TOP_PHASES, CSINK_NR_TOP_VIEWS };

enum csink_top_sort {
	CSINK_TOP_SELF,
	CSINK_TOP_TOTAL,
	CSINK_TOP_ALL_SELF,
	CSINK_TOP_ALL_TOTAL,
	CSINK_TOP_NAME,
	CSINK_NR_TOP_SORTS
};

/* Index of what two values there are of everything. */
enum { CSINK_TOP_LAST, CSINK_TOP_ALL };

struct csink_top_picture {
	struct csink_profile *profiles[2];            /* of the last interval, empty if has_last is false; of all */
	struct csink_diff tables[CSINK_NR_TOP_VIEWS]; /* their rows: self[CSINK_TOP_LAST] ... */
	uint32_t types[2];                            /* the sample type that is shown */
	const char *event, *unit;                     /* its name and unit */
	bool has_last;                                /* there was a moment before */
	bool is_time;                                 /* it is CPU time in ns: shares are of one CPU */
	uint64_t ns[2];                               /* length of the interval; since the first process's start */
	int64_t samples[2], sums[2];                  /* sums: of the type that is shown */
	uint32_t nr_processes, nr_threads, nr_unread; /* nr_unread: recordings that are left out */
};

/** The words of --by and --sort. */
extern const char *const csink_top_view_words[CSINK_NR_TOP_VIEWS];
extern const char *const csink_top_sort_words[CSINK_NR_TOP_SORTS];

/**
 * Make a picture of what was seen, whose profiles it takes: they are freed with it, or on error.
 * Returns 0 (csink_top_picture_free it) or -ENOMEM. Context: thread.
 */
int csink_top_picture_make(struct csink_top_picture *picture, const struct csink_top_sight *sight);
void csink_top_picture_free(struct csink_top_picture *picture);

/** Sort the rows of a view; those that are 0 come last. Returns how many are not. Context: thread. */
uint32_t csink_top_picture_sort(struct csink_top_picture *picture, enum csink_top_view view, enum csink_top_sort by);

/** A value in percent: of one CPU, or of the sum where it is no CPU time. @which  CSINK_TOP_LAST or CSINK_TOP_ALL. */
double csink_top_percent(const struct csink_top_picture *picture, int which, int64_t value);

#endif
