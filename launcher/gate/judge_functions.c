/*
 * Verdicts on functions.
 *
 * How fast a machine runs changes from run to run, and everything with it; a function is therefore compared with the
 * functions that did not change beside each other (the reference): its weight in a run is divided by theirs. They are
 * found by the weighted median of all functions' ratios, and the function itself is never among its own reference.
 * Where the command's CPU time as a whole is a regression, or where nothing is left to compare with, the cost as
 * measured judges.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "launcher/gate/judge_impl.h"

#define REFERENCE_SHARE 0.1 /* of the rest: below, it says too little about the speed of a run */
#define REFERENCE_LIKE 0.01 /* ratios that are as near to the median are of the reference */
#define REFERENCE_ERRORS 3  /* so are those that are so many standard errors away at most */

static double share_of(const struct judge *judge, int side, uint32_t f)
{
	return judge->all[side] > 0 ? judge->sums[side][f] / judge->all[side] : 0;
}

static bool is_judged(const struct judge *judge, uint32_t f)
{
	return !judge->data->functions.all[f].is_pseudo &&
	       fmax(share_of(judge, 0, f), share_of(judge, 1, f)) >= judge->rules->min_share;
}

/* ---- the reference ---- */

/* A function that may be of the reference, or all of those that are too small for a row, together. */
struct candidate {
	double log_ratio, weight, error;
	int64_t function; /* -1: all small ones */
};

static int compare_candidates(const void *a, const void *b)
{
	const struct candidate *left = a, *right = b;

	return left->log_ratio < right->log_ratio ? -1 : left->log_ratio > right->log_ratio;
}

/* The relative standard error of a function's share of a run, on both sides together, as the runs differ. */
static double error_of(const struct judge *judge, int64_t f)
{
	double squares = 0;

	for (int side = 0; side < 2; side++) {
		double mean = 0, spread = 0;

		for (uint32_t i = 0; i < judge->nr[side]; i++) {
			const struct csink_gate_weights *weights = &judge->runs[side][i]->weights;
			double value = weights->sum > 0 ? csink_gate_weight(weights, (uint32_t)f) / weights->sum : 0;
			double off = value - mean;

			mean += off / (i + 1);
			spread += off * (value - mean);
		}
		if (judge->nr[side] > 1 && mean > 0)
			squares += spread / (judge->nr[side] - 1) / judge->nr[side] / (mean * mean);
	}
	return sqrt(squares);
}

/* By the root of its share, so that one large function cannot outvote all others. */
static bool make_candidate(const struct judge *judge, double old, double new, int64_t f, struct candidate *out)
{
	if (!(old > 0 && new > 0))
		return false;
	*out = (struct candidate){log(new / old), sqrt(old / judge->all[0] + new / judge->all[1]),
				  f < 0 ? 0 : error_of(judge, f), f};
	return true;
}

static double weighted_median(struct candidate *all, uint32_t nr)
{
	double half = 0, sum = 0;

	qsort(all, nr, sizeof(*all), compare_candidates);
	for (uint32_t i = 0; i < nr; i++)
		half += all[i].weight / 2;
	for (uint32_t i = 0; i < nr; i++) {
		sum += all[i].weight;
		if (sum >= half)
			return all[i].log_ratio;
	}
	return 0;
}

static void mark_small(struct judge *judge)
{
	for (uint32_t f = 0; f < judge->data->functions.nr; f++) {
		if (!judge->data->functions.all[f].is_pseudo && !is_judged(judge, f))
			judge->is_reference[f] = true;
	}
}

static int find_reference(struct judge *judge)
{
	uint32_t nr = 0, nr_functions = judge->data->functions.nr;
	struct candidate *all = calloc(nr_functions + 1, sizeof(*all));
	double small[2] = {0, 0}, middle;

	if (!all)
		return -ENOMEM;
	for (uint32_t f = 0; f < nr_functions; f++) {
		if (is_judged(judge, f)) {
			nr += make_candidate(judge, judge->sums[0][f], judge->sums[1][f], f, &all[nr]);
			continue;
		}
		for (int side = 0; side < 2; side++)
			small[side] += judge->data->functions.all[f].is_pseudo ? 0 : judge->sums[side][f];
	}
	nr += make_candidate(judge, small[0], small[1], -1, &all[nr]);
	middle = weighted_median(all, nr);
	for (uint32_t i = 0; i < nr; i++) {
		if (fabs(all[i].log_ratio - middle) > fmax(REFERENCE_LIKE, REFERENCE_ERRORS * all[i].error))
			continue;
		if (all[i].function >= 0)
			judge->is_reference[all[i].function] = true;
		else
			mark_small(judge);
	}
	judge->out->speed = exp(middle) * judge->nr[0] / judge->nr[1];
	free(all);
	return 0;
}

/* ---- rows ---- */

/* Did the reference functions themselves get costlier? Then the lower speed is no drift of the machine. */
static void judge_speed(struct judge *judge)
{
	struct csink_gate_row row = {.metric = -1, .function = -1};

	if (!judge->slower)
		return;
	for (int side = 0; side < 2; side++) {
		for (uint32_t f = 0; f < judge->data->functions.nr; f++)
			row.means[side] += judge->is_reference[f] ? judge->sums[side][f] / judge->nr[side] : 0;
	}
	row.cost_ratio = row.means[1] / row.means[0];
	csink_judge_fill(judge, judge->is_reference, true);
	csink_judge_weights(judge, &row);
	csink_judge_conclude(judge, &row, row.p_greater / CSINK_COST_ALPHA, 1, 1);
	judge->slower = row.verdict == CSINK_GATE_REGRESSED;
}

bool csink_judge_fill(struct judge *judge, const bool *is_in, bool by_cost)
{
	double rest[2] = {0, 0};

	for (uint32_t f = 0; f < judge->data->functions.nr; f++) {
		for (int side = 0; side < 2 && judge->is_reference[f] && !is_in[f]; side++)
			rest[side] += judge->sums[side][f];
	}
	/* A simulator's counts are the same in every run: there is no speed to take out. */
	by_cost |= judge->data->exact || rest[0] < REFERENCE_SHARE * judge->all[0] ||
		   rest[1] < REFERENCE_SHARE * judge->all[1];
	for (int side = 0; side < 2; side++) {
		for (uint32_t i = 0; i < judge->nr[side]; i++) {
			const struct csink_gate_weights *weights = &judge->runs[side][i]->weights;
			double own = 0, others = 0;

			for (uint32_t f = 0; f < weights->nr; f++) {
				own += is_in[f] ? weights->self[f] : 0;
				others += judge->is_reference[f] && !is_in[f] ? weights->self[f] : 0;
			}
			/* As if all runs had had the mean speed. A run without samples of the others says nothing. */
			if (!by_cost)
				own = others > 0 ? own / others * (rest[0] / judge->nr[0]) : 0;
			judge->values[side][i] = own;
		}
	}
	return !by_cost;
}

static double cost_ratio(const struct judge *judge, uint32_t f)
{
	double old = judge->sums[0][f] / judge->nr[0], new = judge->sums[1][f] / judge->nr[1];

	return old > 0 ? new / old : new > 0 ? INFINITY : 1;
}

static void judge_function(struct judge *judge, uint32_t f, bool *is_in)
{
	struct csink_gate_row *row = &judge->out->rows[judge->out->nr_rows++];

	*row = (struct csink_gate_row){.metric = -1, .function = (int32_t)f, .cost_ratio = cost_ratio(judge, f)};
	for (int side = 0; side < 2; side++) {
		row->means[side] = judge->sums[side][f] / judge->nr[side];
		row->shares[side] = share_of(judge, side, f);
	}
	is_in[f] = true;
	row->by_cost = !csink_judge_fill(judge, is_in, judge->slower);
	is_in[f] = false;
	csink_judge_weights(judge, row);
}

static int compare_rows(const void *a, const void *b)
{
	const struct csink_gate_row *left = a, *right = b;
	double share_left = fmax(left->shares[0], left->shares[1]);
	double share_right = fmax(right->shares[0], right->shares[1]);

	if (share_left != share_right)
		return share_left > share_right ? -1 : 1;
	return left->function < right->function ? -1 : 1;
}

int csink_judge_functions(struct judge *judge)
{
	uint32_t nr = judge->data->functions.nr, first = judge->out->nr_rows;
	bool *is_in = calloc(nr + 1, sizeof(*is_in));
	int err = is_in ? 0 : -ENOMEM;

	judge->out->speed = 1;
	if (judge->all[0] > 0 && judge->all[1] > 0) {
		err = err ? err : find_reference(judge);
		if (!err)
			judge_speed(judge);
		for (uint32_t f = 0; !err && f < nr; f++) {
			if (is_judged(judge, f))
				judge_function(judge, f, is_in);
		}
	}
	if (!err && judge->out->nr_rows > first)
		qsort(judge->out->rows + first, judge->out->nr_rows - first, sizeof(*judge->out->rows), compare_rows);
	free(is_in);
	return err;
}
