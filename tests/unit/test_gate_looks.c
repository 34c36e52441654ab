/* Looks at runs as they come: what each may spend, and when a gate goes on. */
#include "launcher/gate/looks.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/tap.h"

/* All looks together, where they come at these fractions of the time. */
static double spend_all(double alpha, double first, double step)
{
	struct csink_gate_looks looks = {0};
	double sum = 0;

	for (double at = first; at < 1; at += step)
		sum += csink_gate_looks_level(&looks, alpha, at);
	return sum + csink_gate_looks_level(&looks, alpha, 1);
}

static void test_spending(void)
{
	struct csink_gate_looks looks = {0};
	double first = csink_gate_looks_level(&looks, 0.01, 0.05), last;

	ok(first > 0.0009 && first < 0.002, "an early look may spend a tenth: %g of 0.01", first);
	last = csink_gate_looks_level(&looks, 0.01, 1);
	ok(last > 0.005, "the last look spends most of the budget: %g", last);
	ok(first + last <= 0.01, "two looks spend no more than the budget");
	ok(spend_all(0.01, 0.01, 0.001) <= 0.01, "a thousand looks spend no more than the budget");
	ok(spend_all(0.01, 1, 1) > 0.007, "one look at the end has nearly the whole budget");
	ok(csink_gate_looks_level(&looks, 0.01, 0.5) >= 0,
	   "a look at a smaller fraction than the last one spends nothing");
	is_num(csink_gate_looks_next(0), CSINK_GATE_FIRST_LOOK, "the number of runs at the first look");
	is_num(csink_gate_looks_next(CSINK_GATE_FIRST_LOOK), 21, "the number of runs at the second look");
	is_num(csink_gate_looks_next(CSINK_GATE_MAX_RUNS - 100), CSINK_GATE_MAX_RUNS,
	       "the last look is at the maximum number of runs");
}

static struct csink_random dice;

static double uniform(void)
{
	return ((double)(csink_random_next(&dice) >> 11) + 0.5) / 9007199254740992.0;
}

/* Runs of one function beside another of twice its time; one new run in `every` takes ten times as long. */
static void add_runs(struct csink_gate_data *data, uint32_t nr, double change, double noise, uint32_t every)
{
	data->paired = true;
	for (uint32_t i = 0; i < 2 * nr; i++) {
		enum csink_gate_side side = i & 1 ? CSINK_GATE_NEW : CSINK_GATE_OLD;
		struct csink_gate_run *run = csink_gate_run_add(data, side);
		int64_t beta = csink_gate_function_find(&data->functions, "beta", "program");
		int64_t alpha = csink_gate_function_find(&data->functions, "alpha", "program");

		csink_gate_weights_grow(&run->weights, data->functions.nr);
		run->weights.self[alpha] = 20e6 * exp(noise * csink_normal_quantile(uniform()));
		run->weights.self[beta] = 10e6 * (side ? change : 1) * exp(noise * csink_normal_quantile(uniform()));
		if (every && side && i / 2 % every == every - 1)
			run->weights.self[beta] *= 10;
		run->weights.sum = run->weights.self[alpha] + run->weights.self[beta];
		run->weights.nr_samples = 100;
	}
}

/* What is decided, and how many more runs are forecast for the function. */
static enum csink_gate_decision decide(double change, double noise, uint32_t every, double more, uint32_t *needed)
{
	struct csink_gate_rules rules = {.threshold = 0.05, .min_share = 0.01, .alpha = 0.01, .seed = 1};
	struct csink_gate_data data = {0};
	struct csink_gate_verdicts v;
	enum csink_gate_decision decision;

	add_runs(&data, 32, change, noise, every);
	csink_gate_judge(&data, &rules, 0.001, &v);
	decision = csink_gate_looks_decide(&v, &rules, 32, more);
	*needed = 0;
	for (uint32_t i = 0; i < v.nr_rows; i++) {
		if (v.rows[i].function >= 0 && !strcmp(data.functions.all[v.rows[i].function].name, "beta"))
			*needed = v.rows[i].runs_needed;
	}
	csink_gate_verdicts_free(&v);
	csink_gate_data_free(&data);
	return decision;
}

/* At the threshold, known to 5 %. */
static void test_chance(void)
{
	struct csink_gate_verdicts v = {.nr_rows = 1};
	struct csink_gate_rules rules = {.threshold = 0.05};
	struct csink_gate_row row = {.ratio = 1.05,
				     .interval = {0.95, 1.15},
				     .middle = 1.05,
				     .error = 0.05,
				     .verdict = CSINK_GATE_INCONCLUSIVE,
				     .can_regress = true};
	struct csink_gate_row less = {.ratio = 1 / 1.05, .interval = {0.93, 0.975}, .middle = 1 / 1.05, .error = 0.011};

	v.rows = &row;
	ok(csink_gate_chance(&row, 0.05, 32, 1) < 0.01, "one more pair is unlikely to settle the question");
	ok(csink_gate_chance(&row, 0.05, 32, 3200) > 0.5, "a hundred times as many pairs are likely to settle it");
	ok(csink_gate_chance(&less, 0.05, 32, 32) > 0.9, "what is 5 %% less is far from 5 %% more");
	less.is_turned = true;
	ok(csink_gate_chance(&less, 0.05, 32, 32) < 0.1, "of a figure of which more is better, it is at the threshold");
	is_num(csink_gate_looks_decide(&v, &rules, 32, 1), CSINK_GATE_HOPELESS, "time for one more pair is not spent");
	is_num(csink_gate_looks_decide(&v, &rules, 32, 600), CSINK_GATE_GO_ON, "time for many more pairs is spent");
	row.middle = row.error = NAN;
	row.interval.high = INFINITY;
	is_num(csink_gate_looks_decide(&v, &rules, 32, 1), CSINK_GATE_GO_ON, "without an estimate: more runs");
}

static void test_decisions(void)
{
	uint32_t needed;

	is_num(decide(1, 0.005, 0, 100, &needed), CSINK_GATE_SETTLED, "a clearly unchanged function: settled");
	is_num(decide(1.15, 0.1, 31, 100, &needed), CSINK_GATE_GO_ON,
	       "a slower function with one disturbed pair: more runs");
	ok(needed && needed < 100, "one disturbed pair does not decide the forecast: %u more", needed);
	is_num(decide(1.1, 0.1, 8, 100, &needed), CSINK_GATE_GO_ON,
	       "a slower function with eight disturbed pairs: more runs");
	is_num(decide(1.05, 0.2, 0, 0, &needed), CSINK_GATE_NO_TIME, "without time: NO_TIME");
	is_num(decide(1.05, 0.2, 0, 100, &needed), CSINK_GATE_GO_ON,
	       "a function at the threshold, with time left: more runs");
}

int main(void)
{
	csink_random_init(&dice, 5);
	test_spending();
	test_chance();
	test_decisions();
	return done();
}
