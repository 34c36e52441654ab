/*
 * Where a change of the whole command's time went: the functions whose own time moved most, and the smallest function
 * that holds most of it together with what it calls. A command may be slower beyond doubt while of none of its
 * functions that can be shown: then this is what there is to go on. Costs are as measured, in differences, not ratios:
 * what matters is which function has the time, not which changed beside the others.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "launcher/gate/judge_impl.h"

#define LEAST_SHARE 0.02 /* of the change: less is not reported */
#define WITHIN_SHARE 0.8 /* of the change that a function holds with its callees, to be reported */
#define WITHIN_MOST 0.9  /* of the time: "it is in main" is no news */

static double difference(const double *a, uint32_t nr_a, const double *b, uint32_t nr_b)
{
	return csink_mean(b, nr_b) - csink_mean(a, nr_a);
}

/* Of a function in one run: its own cost, or with what it calls. */
static double cost_of(const struct csink_gate_weights *weights, uint32_t f, bool total)
{
	if (!total)
		return csink_gate_weight(weights, f);
	return f < weights->nr ? weights->total[f] : 0;
}

static void fill(struct judge *judge, uint32_t f, bool total)
{
	EACH_RUN(judge, side, i)
	judge->values[side][i] = cost_of(&judge->runs[side][i]->weights, f, total);
}

static void measure(struct judge *judge, uint32_t f, bool total, struct csink_gate_move *move)
{
	fill(judge, f, total);
	move->function = f;
	move->delta = difference(judge->values[0], judge->nr[0], judge->values[1], judge->nr[1]);
	if (csink_bootstrap(difference, judge->data->paired, judge->values[0], judge->nr[0], judge->values[1],
			    judge->nr[1], CSINK_GATE_LEVEL, &judge->random, &move->interval))
		move->interval = (struct csink_interval){-INFINITY, INFINITY};
}

/* Put a function among the largest movers, if it is one. direction: 1 what got slower, -1 faster. */
static void rank(struct csink_gate_moves *moves, uint32_t f, double delta, int direction)
{
	uint32_t at = moves->nr;

	if (!(delta * direction > 0))
		return;
	while (at && moves->all[at - 1].delta * direction < delta * direction)
		at--;
	if (at == CSINK_GATE_MAX_MOVES)
		return;
	moves->nr = CSINK_MIN(moves->nr + 1, (uint32_t)CSINK_GATE_MAX_MOVES);
	memmove(&moves->all[at + 1], &moves->all[at], (moves->nr - 1 - at) * sizeof(*moves->all));
	moves->all[at] = (struct csink_gate_move){.function = f, .delta = delta};
}

/* The function with the least time of those that hold most of the change. */
static void find_within(struct judge *judge, struct csink_gate_moves *moves)
{
	double least = INFINITY, whole = 0;
	int64_t found = -1;

	for (uint32_t f = 0; f < judge->data->functions.nr; f++)
		whole += judge->sums[1][f] / judge->nr[1];
	for (uint32_t f = 0; f < judge->data->functions.nr; f++) {
		double old, new, size;

		fill(judge, f, true);
		old = csink_mean(judge->values[0], judge->nr[0]);
		new = csink_mean(judge->values[1], judge->nr[1]);
		size = fmax(old, new);
		if (judge->data->functions.all[f].is_pseudo ||
		    !strcmp(judge->data->functions.all[f].name, CSINK_GATE_NO_NAME) ||
		    (new - old) / moves->sum < WITHIN_SHARE || size >= least || size > WITHIN_MOST * whole)
			continue;
		least = size;
		found = f;
	}
	if (found < 0)
		return;
	measure(judge, (uint32_t)found, true, &moves->within);
	moves->has_within = moves->nr && moves->all[0].function != found;
}

static bool has_totals(const struct judge *judge)
{
	EACH_RUN(judge, side, i)
	{
		if (!judge->runs[side][i]->weights.total)
			return false;
	}
	return true;
}

/* In the order of rows. */
static void order(const struct judge *judge, struct csink_gate_moves *moves)
{
	struct csink_gate_move below[CSINK_GATE_MAX_MOVES];
	uint32_t nr = 0, nr_below = 0;

	for (uint32_t i = 0; i < moves->nr; i++) {
		if (judge->is_below[moves->all[i].function])
			below[nr_below++] = moves->all[i];
		else
			moves->all[nr++] = moves->all[i];
	}
	memcpy(moves->all + nr, below, nr_below * sizeof(*below));
}

void csink_judge_moves(struct judge *judge)
{
	struct csink_gate_moves *moves = &judge->out->moves;
	const struct csink_gate_row *row = NULL;
	int direction;

	for (uint32_t i = 0; i < judge->out->nr_metric_rows; i++) {
		const char *name = judge->data->metrics[judge->out->rows[i].metric].name;

		if (!strcmp(name, "cpu") || !strcmp(name, "instructions"))
			row = &judge->out->rows[i];
	}
	if (!row || !(judge->all[0] > 0 && judge->all[1] > 0) || (row->interval.low <= 1 && row->interval.high >= 1))
		return;
	direction = row->ratio > 1 ? 1 : -1;
	for (uint32_t f = 0; f < judge->data->functions.nr; f++) {
		double delta = judge->sums[1][f] / judge->nr[1] - judge->sums[0][f] / judge->nr[0];

		moves->sum += delta;
		rank(moves, f, delta, direction);
	}
	moves->row = row - judge->out->rows;
	while (moves->nr > 1 && fabs(moves->all[moves->nr - 1].delta) < LEAST_SHARE * fabs(moves->sum))
		moves->nr--;
	for (uint32_t i = 0; i < moves->nr; i++)
		measure(judge, moves->all[i].function, false, &moves->all[i]);
	order(judge, moves);
	if (moves->sum * direction > 0 && has_totals(judge))
		find_within(judge, moves);
}
