/*
 * Verdicts on functions.
 *
 * A function is compared with the functions that did not change in the same run (reference.c), in pairs as
 * judge_pairs.c does it, else by its weight divided by theirs. It is never among its own reference. Where the reference
 * changed as the command did, or where nothing is left to compare with, the cost as measured judges.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "include/internal/cleanup.h"
#include "launcher/base/search.h"
#include "launcher/gate/judge_impl.h"

static double share_of(const struct judge *judge, int side, uint32_t f)
{
	return judge->all[side] > 0 ? judge->sums[side][f] / judge->all[side] : 0;
}

static bool is_judged(const struct judge *judge, uint32_t f)
{
	return !judge->data->functions.all[f].is_pseudo &&
	       fmax(share_of(judge, 0, f), share_of(judge, 1, f)) >= judge->rules->min_share;
}

/* ---- rows ---- */

bool csink_judge_fill(struct judge *judge, const bool *is_in, bool by_cost)
{
	double rest[2];

	/* Counts are the same in every run: there is no speed to take out. */
	by_cost |= !csink_judge_reference(judge, is_in, rest) || judge->data->exact || judge->data->has_no_speed;
	EACH_RUN(judge, side, i)
	{
		const struct csink_gate_weights *weights = &judge->runs[side][i]->weights;
		double own = 0, others = judge->values[side][i];

		for (uint32_t f = 0; f < weights->nr; f++)
			own += is_in[f] ? weights->self[f] : 0;
		/* As if all runs had had the mean speed. A run without samples of the others says nothing. */
		if (!by_cost)
			own = others > 0 ? own / others * (rest[0] / judge->nr[0]) : 0;
		judge->values[side][i] = own;
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

	*row = (struct csink_gate_row){.metric = -1,
				       .function = (int32_t)f,
				       .cost_ratio = cost_ratio(judge, f),
				       .is_below = judge->is_below[f]};
	for (int side = 0; side < 2; side++) {
		row->means[side] = judge->sums[side][f] / judge->nr[side];
		row->shares[side] = share_of(judge, side, f);
	}
	is_in[f] = true;
	csink_judge_part(judge, is_in, row);
	is_in[f] = false;
}

static int compare_rows(const void *a, const void *b)
{
	const struct csink_gate_row *left = a, *right = b;
	double share_left = fmax(left->shares[0], left->shares[1]);
	double share_right = fmax(right->shares[0], right->shares[1]);

	/* What people wrote is named before what their interpreter does for it. */
	return CSINK_COMPARE(left->is_below, right->is_below)
		       ?: CSINK_COMPARE(share_right, share_left) ?: CSINK_COMPARE(left->function, right->function);
}

int csink_judge_functions(struct judge *judge)
{
	uint32_t nr = judge->data->functions.nr, first = judge->out->nr_rows;
	CSINK_AUTO_FREE bool *is_in = calloc(nr + 1, sizeof(*is_in));
	int err = is_in ? 0 : -ENOMEM;

	if (err || !(judge->all[0] > 0 && judge->all[1] > 0))
		return err;
	err = csink_judge_below(judge) ?: csink_judge_find_reference(judge);
	for (uint32_t f = 0; f < nr; f++)
		judge->nr_judged += is_judged(judge, f);
	for (uint32_t f = 0; !err && f < nr; f++) {
		if (is_judged(judge, f))
			judge_function(judge, f, is_in);
	}
	qsort(judge->out->rows + first, judge->out->nr_rows - first, sizeof(*judge->out->rows), compare_rows);
	return err;
}
