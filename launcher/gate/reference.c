/*
 * The functions that others are compared with, since how fast a machine runs changes from run to run, and everything
 * with it: those that did not change beside each other. They are found by the weighted median of all functions'
 * changes. Where most of the time is in functions that changed, the median is theirs: then those that differ from it
 * are the reference, if their cost changed less.
 *
 * A function of an interpreter does more where the interpreted function changed that it works for. So what is below
 * interpreted functions is first added to the innermost of these, to see which of them changed; then it counts for the
 * function itself again, but for what is below those.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/cleanup.h"
#include "launcher/base/search.h"
#include "launcher/gate/judge_impl.h"

#define REFERENCE_SHARE 0.1 /* of the time: below, it says too little about the speed of a run */
#define REFERENCE_LIKE 0.01 /* ratios that are as near to the median are of the reference */
#define REFERENCE_ERRORS 3  /* so are those that are so many standard errors away at most */

/* A function that may be of the reference, or all of those that are too small for a row, together. */
struct candidate {
	double log_ratio, weight, error; /* of its share of a run: new / old */
	int64_t function;                /* -1: all small ones */
	bool is_in;                      /* of the reference */
};

struct finding {
	struct judge *judge;
	struct candidate *all;
	uint32_t nr;
	bool *is_small; /* of each function */
	struct csink_gate_row cost;
};

bool csink_judge_reference(struct judge *judge, const bool *without, double *rest)
{
	rest[0] = rest[1] = 0;
	EACH_RUN(judge, side, i)
	{
		double *value = &judge->values[side][i];

		*value = 0;
		for (uint32_t f = 0; f < judge->runs[side][i]->weights.nr; f++)
			*value +=
				judge->is_reference[f] && !(without && without[f]) ? judge->comparable[side][i][f] : 0;
		rest[side] += *value;
	}
	return rest[0] >= REFERENCE_SHARE * judge->all[0] && rest[1] >= REFERENCE_SHARE * judge->all[1];
}

/* ---- candidates ---- */

/* Of all functions of a run, pseudo ones apart: what one of them has, or all small ones (-1). */
static double share_of_run(const struct finding *finding, int side, uint32_t run, int64_t function)
{
	const struct judge *judge = finding->judge;
	const double *values = judge->comparable[side][run];
	double own = 0, sum = 0;

	for (uint32_t f = 0; f < judge->runs[side][run]->weights.nr; f++) {
		sum += judge->data->functions.all[f].is_pseudo ? 0 : values[f];
		own += (function < 0 ? finding->is_small[f] : f == function) ? values[f] : 0;
	}
	return sum > 0 ? own / sum : 0;
}

/* From shares of runs, so that each counts as much, however slow the machine was. It weighs as the root of its share,
 * so that one large function cannot outvote all others. One that is on one side only is none. */
static void add_candidate(struct finding *finding, int64_t f)
{
	const struct judge *judge = finding->judge;
	double means[2] = {0, 0}, squares = 0;

	for (int side = 0; side < 2; side++) {
		double *mean = &means[side], spread = 0;

		for (uint32_t i = 0; i < judge->nr[side]; i++) {
			double value = share_of_run(finding, side, i, f), off = value - *mean;

			*mean += off / (i + 1);
			spread += off * (value - *mean);
		}
		if (judge->nr[side] > 1 && *mean > 0)
			squares += spread / (judge->nr[side] - 1) / judge->nr[side] / (*mean * *mean);
	}
	if (means[0] > 0 && means[1] > 0)
		finding->all[finding->nr++] = (struct candidate){log(means[1] / means[0]), sqrt(means[0] + means[1]),
								 f < 0 ? 0 : sqrt(squares), f, false};
}

static void find_candidates(struct finding *finding)
{
	const struct judge *judge = finding->judge;

	finding->nr = 0;
	for (uint32_t f = 0; f < judge->data->functions.nr; f++) {
		double sums[2] = {0, 0};

		EACH_RUN(judge, side, i)
		sums[side] += f < judge->runs[side][i]->weights.nr ? judge->comparable[side][i][f] : 0;
		finding->is_small[f] = false;
		if (judge->data->functions.all[f].is_pseudo)
			continue;
		finding->is_small[f] = fmax(sums[0] / judge->all[0], sums[1] / judge->all[1]) < judge->rules->min_share;
		if (!finding->is_small[f])
			add_candidate(finding, f);
	}
	add_candidate(finding, -1);
	qsort(finding->all, finding->nr, sizeof(*finding->all), csink_compare_doubles);
}

/* ---- choosing among them ---- */

/* Of candidates in order. */
static double weighted_median(const struct candidate *all, uint32_t nr)
{
	double half = 0, sum = 0;

	for (uint32_t i = 0; i < nr; i++)
		half += all[i].weight / 2;
	for (uint32_t i = 0; i < nr; i++) {
		sum += all[i].weight;
		if (sum >= half)
			return all[i].log_ratio;
	}
	return 0;
}

/* Make those the reference that changed as much as most of these candidates, and see what it costs. Returns whether it
 * has enough of the time. */
static bool choose(struct finding *finding, struct candidate *all, uint32_t nr)
{
	struct judge *judge = finding->judge;
	double middle = weighted_median(all, nr), rest[2];
	bool is_enough;

	memset(judge->is_reference, 0, judge->data->functions.nr * sizeof(*judge->is_reference));
	for (uint32_t i = 0; i < nr; i++) {
		all[i].is_in = fabs(all[i].log_ratio - middle) <= fmax(REFERENCE_LIKE, REFERENCE_ERRORS * all[i].error);
		for (uint32_t f = 0; all[i].is_in && f < judge->data->functions.nr; f++)
			judge->is_reference[f] |= all[i].function < 0 ? finding->is_small[f] : f == all[i].function;
	}
	is_enough = csink_judge_reference(judge, NULL, rest);
	finding->cost = (struct csink_gate_row){.metric = -1, .function = -1};
	csink_judge_ranks(judge, &finding->cost);
	return is_enough;
}

/* Where most of the time is in what got slower, most candidates changed like that, and what did not change seems faster
 * beside it; where it got faster, the other way round. */
static bool find(struct finding *finding)
{
	struct candidate *others;
	double middle, most;
	uint32_t nr = 0;
	bool is_enough;

	find_candidates(finding);
	is_enough = choose(finding, finding->all, finding->nr);
	if (finding->cost.interval.low <= 1 && finding->cost.interval.high >= 1)
		return is_enough;
	middle = weighted_median(finding->all, finding->nr);
	most = fabs(log(finding->cost.ratio));
	others = finding->all + finding->nr;
	for (uint32_t i = 0; i < finding->nr; i++) {
		const struct candidate *one = &finding->all[i];

		if (!one->is_in && (one->log_ratio < middle) == (finding->cost.ratio > 1))
			others[nr++] = *one;
	}
	if (choose(finding, others, nr) && fabs(log(finding->cost.ratio)) < most)
		return true;
	return choose(finding, finding->all, finding->nr);
}

/* ---- what is below interpreted functions ---- */

static void set_comparable(struct judge *judge, bool by_owner)
{
	EACH_RUN(judge, side, i)
	{
		const struct csink_gate_weights *weights = &judge->runs[side][i]->weights;
		double *values = judge->comparable[side][i];

		memcpy(values, weights->self, weights->nr * sizeof(*values));
		for (uint32_t k = 0; k < weights->nr_parts; k++) {
			const struct csink_gate_part *part = &weights->parts[k];

			if (!by_owner && judge->is_reference[part->owner])
				continue;
			values[part->function] = fmax(0, values[part->function] - part->weight);
			if (by_owner)
				values[part->owner] += part->weight;
		}
	}
}

int csink_judge_find_reference(struct judge *judge)
{
	uint32_t nr = judge->data->functions.nr;
	CSINK_AUTO_FREE struct candidate *all = calloc((size_t)nr * 2 + 2, sizeof(*all));
	CSINK_AUTO_FREE bool *is_small = calloc(nr + 1, sizeof(*is_small));
	struct finding finding = {.judge = judge, .all = all, .is_small = is_small};
	bool is_enough;

	if (!all || !is_small)
		return -ENOMEM;
	set_comparable(judge, true);
	is_enough = find(&finding);
	if (judge->data->functions.interpreted.nr) {
		set_comparable(judge, false);
		is_enough = find(&finding);
	}
	judge->reference_moved =
		fmin(finding.cost.p_greater, finding.cost.p_less) <= CSINK_COST_ALPHA * judge->out->alpha;
	/* Did the reference itself change as the command did? Then that is no drift of the machine. */
	csink_judge_conclude(judge, &finding.cost, finding.cost.p_greater / CSINK_COST_ALPHA,
			     finding.cost.p_less / CSINK_COST_ALPHA, 1);
	judge->by_cost = judge->by_cost && finding.cost.verdict == judge->command;
	if (!judge->by_cost && !judge->data->exact && !judge->data->has_no_speed && is_enough) {
		judge->out->speed = finding.cost.ratio;
		judge->out->speed_interval = finding.cost.interval;
	}
	return 0;
}
