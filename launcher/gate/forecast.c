/*
 * Forecasts how many more runs an inconclusive row needs. They use trimmed means: one disturbed pair makes the
 * confidence interval far wider than it will be some pairs later.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "launcher/base/search.h"
#include "launcher/gate/judge_impl.h"
#include "launcher/gate/looks.h"

#define TRIMMED 5     /* a fifth of the values is trimmed at each end */
#define MANY_TIMES 50 /* more runs than that many times what there are are not asked for */

/* The mean without the outer values, and its standard error (Yuen). Sorts the values. */
static double trimmed_mean(double *values, uint32_t nr, double *error)
{
	uint32_t cut = nr / TRIMMED, kept = nr - 2 * cut;
	double mean = 0, winsorized = 0, squares = 0;

	qsort(values, nr, sizeof(*values), csink_compare_doubles);
	for (uint32_t i = cut; i < nr - cut; i++)
		mean += values[i] / kept;
	for (uint32_t i = 0; i < nr; i++)
		winsorized += values[CSINK_MIN(CSINK_MAX(i, cut), nr - cut - 1)] / nr;
	for (uint32_t i = 0; i < nr; i++)
		squares += pow(values[CSINK_MIN(CSINK_MAX(i, cut), nr - cut - 1)] - winsorized, 2);
	*error = kept > 1 ? sqrt(squares / ((double)kept * (kept - 1))) : INFINITY;
	return mean;
}

void csink_judge_estimate(const struct judge *judge, struct csink_gate_row *row)
{
	uint32_t nr_old = judge->nr[0], nr_new = judge->nr[1];
	CSINK_AUTO_FREE double *old = calloc((size_t)nr_old + nr_new, sizeof(*old));
	double *changes = old + nr_old, errors[2], middle;

	row->middle = row->error = NAN;
	if (!old)
		return;
	memcpy(old, judge->values[0], nr_old * sizeof(*old));
	for (uint32_t i = 0; i < nr_new; i++)
		changes[i] = judge->values[1][i] - (judge->data->paired ? judge->values[0][i] : 0);
	middle = trimmed_mean(old, nr_old, &errors[0]);
	row->middle = (trimmed_mean(changes, nr_new, &errors[1]) + (judge->data->paired ? middle : 0)) / middle;
	row->error = (judge->data->paired ? errors[1] : hypot(errors[0], errors[1])) / middle;
	if (!(middle > 0) || !(row->middle > 0) || !isfinite(row->error))
		row->middle = row->error = NAN;
}

void csink_judge_estimate_logs(const double *differences, uint32_t nr, struct csink_gate_row *row)
{
	CSINK_AUTO_FREE double *sorted = calloc((size_t)nr + 1, sizeof(*sorted));
	double error;

	row->middle = row->error = NAN;
	if (!sorted || !nr)
		return;
	memcpy(sorted, differences, nr * sizeof(*sorted));
	row->middle = exp(trimmed_mean(sorted, nr, &error));
	row->error = row->middle * error;
	if (!isfinite(row->middle) || !isfinite(row->error))
		row->middle = row->error = NAN;
}

/* The interval shrinks with the root of the number of runs: how many until it no longer holds the threshold? */
uint32_t csink_judge_more_runs(const struct judge *judge, const struct csink_gate_row *row, uint32_t nr_tests)
{
	double most = 1 + judge->rules->threshold, runs = judge->nr[1], half, distance, needed;

	if (isnan(row->error))
		return CSINK_MAX(csink_judge_least_runs(judge, nr_tests, false), judge->nr[1] + 1) - judge->nr[1];
	half = csink_normal_quantile((1 + CSINK_GATE_LEVEL) / 2) * row->error;
	distance = row->middle < 1 ? fabs(row->middle - 1 / most) : fabs(row->middle - most);
	needed = ceil(runs * pow(half / fmax(distance, half / 100), 2));
	/* Far enough from the threshold by its interval: then it is the number of questions that asks for more. */
	if (!(needed > runs))
		needed = runs + ceil(runs / 4);
	needed = fmax(needed, csink_judge_least_runs(judge, nr_tests, false));
	return needed > runs * MANY_TIMES ? 0 : (uint32_t)needed - judge->nr[1];
}

/* The final estimate is distributed around the present one, by the runs to come; its interval is narrower. */
static double chance_of(double distance, double error, double known)
{
	double half = csink_normal_quantile((1 + CSINK_GATE_LEVEL) / 2) * error * sqrt(known);
	double spread = error * sqrt(1 - known);

	if (!(spread > 0))
		return fabs(distance) > half ? 1 : 0;
	return csink_normal_cdf((distance - half) / spread) + csink_normal_cdf((-distance - half) / spread);
}

double csink_gate_chance(const struct csink_gate_row *row, double threshold, uint32_t made, double more)
{
	double known = made / (made + more), most = row->is_turned ? 1 / (1 + threshold) : 1 + threshold, chance = 0;
	double error = (row->interval.high - row->interval.low) / 2 / csink_normal_quantile((1 + CSINK_GATE_LEVEL) / 2);

	if (!isnan(row->error))
		chance = chance_of(row->middle - most, row->error, known);
	if (isfinite(error) && isfinite(row->ratio))
		chance = fmax(chance, chance_of(row->ratio - most, error, known));
	/* Without an estimate, the next runs may give one. */
	return isnan(row->error) && !isfinite(error) ? 1 : chance;
}
