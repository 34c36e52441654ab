/*
 * What each function (or another kind of row) cost in the ranks of a parallel job: least, mean, most, how far apart. A
 * rank in which it has no sample counts as 0. Memory follows the rows, not the ranks.
 */
#ifndef CSINK_RANK_STATS_H
#define CSINK_RANK_STATS_H

#include <stdint.h>

#include "launcher/profile/rows.h"

/* Of the values of one row in all ranks. */
struct csink_spread {
	uint32_t nr;       /* ranks in which it is not 0 */
	uint32_t nr_first; /* of those, how many come before the first in which it is 0 */
	int64_t sum, min, max;
	int64_t min_rank, max_rank; /* the lowest of those that have it; -1: there is no value */
	int64_t lost;               /* (max - mean) x ranks: what all together would wait for the last one */
	double mean, stddev; /* of all ranks, the population's; while values are added, the mean of those so far */
	double imbalance;    /* max / mean - 1; 0 where the mean is 0 */
	double squares;      /* the sum of those of the distances from the mean, likewise */
};

struct csink_rank_row {
	const struct csink_row_key *key;
	struct csink_spread self, total;
};

struct csink_rank_stats {
	struct csink_rows keys;
	struct csink_rank_row *rows; /* by lost self cost, the largest first */
	uint32_t nr_rows;
	int64_t *ranks; /* ascending */
	uint32_t nr_ranks;
	int64_t size;    /* how many the job has, as the profile says; 0: not known */
	int64_t no_rank; /* cost of samples that have no rank: of what started the ranks, say */
};

/**
 * Compute the statistics of a column of a profile.
 * Returns 0 (csink_rank_stats_free them), -ENOENT (no sample has a rank) or -ENOMEM. Context: thread.
 */
int csink_rank_stats_build(struct csink_rank_stats *stats, const struct csink_profile *p, uint32_t type,
			   enum csink_by by);
void csink_rank_stats_free(struct csink_rank_stats *stats);

#endif
