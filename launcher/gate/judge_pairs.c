/*
 * What functions cost, judged by pairs of runs: signed ranks of the logarithms of new / old, and Hodges and Lehmann's
 * estimate of them. Times of runs have heavy tails: of means, one disturbed run in ten doubles the interval.
 *
 * What disturbed a run disturbed the functions that did not change, too (reference.c). How much of that a function
 * shares differs: one that waits for its own results is hardly disturbed, one that uses much memory more than others.
 * So the logarithm of the reference is taken off with a coefficient that the pairs themselves show. Pairs are in random
 * order, so that the reference is no slower on one side but by chance; where it is for certain, the coefficient is 1:
 * what is judged is the function's part beside the others.
 *
 * Of a short run a small function has no samples now and then, and no logarithm. Then some neighbouring pairs are put
 * together. Where that leaves too few, or there are few, sums are permuted.
 */
#include <math.h>
#include <stdlib.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "launcher/gate/judge_impl.h"

/* Of fewer pairs ranks have steps too coarse for the level of one of many functions: with 13, sums find 97 of 100
 * changes of 10 % where ranks find 93. The number of pairs alone decides, so that each is as seldom wrong as it
 * promises. */
#define LEAST_RANKED 17

/* Of each pair: what the functions cost, and the reference. In one allocation. */
struct pairs {
	double *own[2], *rest[2];
	double *differences, *controls;
	uint32_t nr;
};

static int alloc_pairs(struct pairs *pairs, uint32_t nr)
{
	double *room = csink_stats_memory(calloc((size_t)nr * 6 + 1, sizeof(*room)));

	*pairs = (struct pairs){
		.nr = nr, .own = {room, room + nr}, .rest = {room + 2 * (size_t)nr, room + 3 * (size_t)nr}};
	pairs->differences = room + 4 * (size_t)nr;
	pairs->controls = room + 5 * (size_t)nr;
	return room ? 0 : -1;
}

static void fill_pairs(struct judge *judge, const bool *is_in, struct pairs *pairs)
{
	EACH_RUN(judge, side, i)
	{
		const struct csink_gate_weights *weights = &judge->runs[side][i]->weights;

		pairs->rest[side][i] = judge->values[side][i];
		for (uint32_t f = 0; f < weights->nr; f++)
			pairs->own[side][i] += is_in[f] ? weights->self[f] : 0;
	}
}

/* The logarithms of nr groups of as many neighbouring pairs; the last group has the rest, too. Returns false if one has
 * none. */
static bool take_logs(struct pairs *pairs, uint32_t size, uint32_t nr, bool by_cost)
{
	for (uint32_t group = 0, i = 0; group < nr; group++) {
		uint32_t end = group + 1 < nr ? i + size : pairs->nr;
		double own[2] = {0, 0}, rest[2] = {0, 0};

		for (; i < end; i++) {
			for (int side = 0; side < CSINK_GATE_NR_SIDES; side++) {
				own[side] += pairs->own[side][i];
				rest[side] += pairs->rest[side][i];
			}
		}
		if (!(own[0] > 0 && own[1] > 0) || (!by_cost && !(rest[0] > 0 && rest[1] > 0)))
			return false;
		pairs->differences[group] = log(own[1] / own[0]);
		pairs->controls[group] = by_cost ? 0 : log(rest[1] / rest[0]);
	}
	return true;
}

/* Returns the number of groups, 0: there are not enough. */
static uint32_t group_pairs(const struct judge *judge, struct pairs *pairs, bool by_cost)
{
	uint32_t steady = csink_judge_least_runs(judge, judge->nr_judged, true);
	uint32_t least = CSINK_MAX(CSINK_MIN(steady, pairs->nr), (uint32_t)CSINK_JUDGE_LEAST_PAIRS);

	for (uint32_t size = 1; pairs->nr / size >= least; size++) {
		if (take_logs(pairs, size, pairs->nr / size, by_cost))
			return pairs->nr / size;
	}
	return 0;
}

static bool judge_pairs(struct judge *judge, const bool *is_in, bool by_cost, struct csink_gate_row *row)
{
	struct pairs pairs;
	uint32_t nr = 0;
	double b;

	if (!judge->data->paired || judge->data->exact || judge->nr[0] < LEAST_RANKED ||
	    alloc_pairs(&pairs, judge->nr[0]))
		return false;
	fill_pairs(judge, is_in, &pairs);
	nr = group_pairs(judge, &pairs, by_cost);
	if (nr && !by_cost) {
		b = judge->reference_moved ? 1 : csink_control_coefficient(pairs.differences, pairs.controls, nr);
		for (uint32_t i = 0; i < nr; i++)
			pairs.differences[i] -= b * pairs.controls[i];
		/* No memory: csink_gate_judge() sees that, too. */
		nr = isnan(b) ? 0 : nr;
	}
	if (nr)
		csink_judge_differences(pairs.differences, nr, row);
	free(pairs.own[0]);
	return nr;
}

void csink_judge_part(struct judge *judge, const bool *is_in, struct csink_gate_row *row)
{
	double rest[2];
	bool by_cost = !csink_judge_reference(judge, is_in, rest) || judge->by_cost;

	row->by_cost = by_cost || judge->data->exact || judge->data->has_no_speed;
	if (judge_pairs(judge, is_in, by_cost, row))
		return;
	row->by_cost = !csink_judge_fill(judge, is_in, judge->by_cost);
	if (judge->data->paired)
		csink_judge_weights(judge, row);
	else
		csink_judge_ranks(judge, row);
}
