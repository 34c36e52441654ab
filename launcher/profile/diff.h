/* Two profiles side by side: what each function, module, line or stack cost in the one and in the other. */
#ifndef CSINK_DIFF_H
#define CSINK_DIFF_H

#include <stddef.h>
#include <stdint.h>

#include "launcher/profile/rows.h"

/* What values are counted for, so that longer runs can be compared with shorter ones. */
enum csink_diff_per {
	CSINK_PER_RUN,    /* one of the runs that were merged into the profile (usually one) */
	CSINK_PER_SECOND, /* of wall time */
	CSINK_PER_TOTAL,  /* B as if its sum were that of A: shares alone count */
	CSINK_NR_PERS
};

/* [0]: of profile A, [1]: of B; as they are in the profiles. */
struct csink_diff_row {
	const char *name;   /* of a stack: its functions from the outermost on, with semicolons between */
	const char *module; /* its end, as short as it differs from others; "": none */
	int64_t self[2], total[2];
};

struct csink_diff {
	struct csink_diff_row *rows; /* by the change of self, normalised, largest first in either direction */
	uint32_t nr_rows, cap_rows;
	int64_t sums[2];
	double factors[2];           /* times a value: normalised */
	struct csink_profile *names; /* where the texts are */
};

/** The words of --per, by enum csink_diff_per. */
extern const char *const csink_per_words[CSINK_NR_PERS];

/**
 * Compare two profiles by one event, which may have different places in them.
 * @by         of locations: a function, module or line; equal names of equally named files are the same;
 *             of interpreted functions, those that csink_match_places() matches; of labels: total is self
 * @of_stacks  whole stacks of such rows instead
 * @why        receives a line for people on error.
 * Returns 0 (csink_diff_free it), -ENODATA (what to normalise by is not known), or -ENOMEM. Context: thread.
 */
int csink_diff_build(struct csink_diff *diff, const struct csink_profile *const p[2], const uint32_t types[2],
		     enum csink_by by, bool of_stacks, enum csink_diff_per per, char *why, size_t why_len);
void csink_diff_free(struct csink_diff *diff);

/** The normalised change of a row's self. */
static inline double csink_diff_change(const struct csink_diff *diff, const struct csink_diff_row *row)
{
	return (double)row->self[1] * diff->factors[1] - (double)row->self[0] * diff->factors[0];
}

#endif
