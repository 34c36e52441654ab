/* Looks at the runs of a series: see looks.h. */
#include "launcher/gate/looks.h"

#include <math.h>

#include "include/internal/base.h"

#define LOOK_GROWTH 1.5   /* between looks */
#define BY_NUMBER 0.2     /* of alpha: the part that looks have by their number; by time, the rest */
#define LEAST_CHANCE 0.01 /* of settling a question: below, no time is spent on it */

/* The spending function of O'Brien and Fleming, by Lan and DeMets: the alpha spent up to a fraction of the time. */
static double spent_until(double alpha, double fraction)
{
	return fraction > 0 ? 2 * (1 - csink_normal_cdf(csink_normal_quantile(1 - alpha / 2) / sqrt(fraction))) : 0;
}

double csink_gate_looks_level(struct csink_gate_looks *looks, double alpha, double fraction)
{
	double by_time = alpha * (1 - BY_NUMBER), level;

	looks->nr++;
	fraction = fmin(fmax(fraction, looks->fraction), 1);
	level = alpha * BY_NUMBER / looks->nr / (looks->nr + 1.0);
	level += spent_until(by_time, fraction) - spent_until(by_time, looks->fraction);
	looks->fraction = fraction;
	return level;
}

uint32_t csink_gate_looks_next(uint32_t made)
{
	if (made < CSINK_GATE_FIRST_LOOK)
		return CSINK_GATE_FIRST_LOOK;
	return CSINK_MIN((uint32_t)ceil(made * LOOK_GROWTH), (uint32_t)CSINK_GATE_MAX_RUNS);
}

enum csink_gate_decision csink_gate_looks_decide(const struct csink_gate_verdicts *verdicts,
						 const struct csink_gate_rules *rules, uint32_t made, double more)
{
	bool failed = verdicts->counts[CSINK_GATE_REGRESSED] > 0, is_open = false;

	more = fmin(more, CSINK_GATE_MAX_RUNS - (double)made);
	for (uint32_t i = 0; i < verdicts->nr_rows; i++) {
		const struct csink_gate_row *row = &verdicts->rows[i];

		if (row->verdict != CSINK_GATE_INCONCLUSIVE || !row->can_regress)
			continue;
		is_open = true;
		if (more < 1)
			continue;
		/* Once the gate fails, go on only for questions that a moderate number of runs is expected to settle.
		 */
		if (failed ? row->runs_needed && row->runs_needed <= more
			   : csink_gate_chance(row, rules->threshold, made, more) >= LEAST_CHANCE)
			return CSINK_GATE_GO_ON;
	}
	if (!is_open)
		return CSINK_GATE_SETTLED;
	return more < 1 ? CSINK_GATE_NO_TIME : CSINK_GATE_HOPELESS;
}
