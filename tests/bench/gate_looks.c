/*
 * How often a gate that looks at its runs as they come is wrong, and what it finds, on runs that are made up: the
 * product's own looks, verdicts and decisions (launcher/gate), a clock that only counts pairs, and noise with heavy
 * tails.
 *
 * usage: gate_looks GATES PAIRS CHANGE [SEED [THRESHOLD]]
 * PAIRS: as many as there is time for; CHANGE: of one function with a third of the time, 1.1 is 10 % slower; THRESHOLD:
 * 0.05, or 0.001, below which false regressions are as frequent as chance makes them
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "launcher/gate/gate.h"
#include "launcher/gate/looks.h"

#define NR_FUNCTIONS 5
#define FUNCTION_NOISE 0.05 /* scale of t3: standard deviations are 1.7 times as large */
#define SPEED_NOISE 0.10
#define DISTURBED 0.05 /* of the runs; they take up to three times as long */

static const double shares[NR_FUNCTIONS] = {0.42, 0.33, 0.15, 0.07, 0.03};
static const char *const names[NR_FUNCTIONS] = {"alpha", "beta", "gamma", "delta", "epsilon"};
static struct csink_random dice;

static double uniform(void)
{
	return ((double)(csink_random_next(&dice) >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(void)
{
	return csink_normal_quantile(uniform());
}

/* Student's t with three degrees of freedom: far out now and then. */
static double heavy(void)
{
	double chi = 0;

	for (int i = 0; i < 3; i++)
		chi += pow(normal(), 2);
	return normal() / sqrt(chi / 3);
}

static int add_run(struct csink_gate_data *data, enum csink_gate_side side, double change)
{
	struct csink_gate_run *run = csink_gate_run_add(data, side);
	double speed = exp(SPEED_NOISE * heavy() / 2) * (uniform() < DISTURBED ? 1 + 2 * uniform() : 1), sum = 0;

	if (!run)
		return -1;
	for (int f = 0; f < NR_FUNCTIONS; f++) {
		int64_t index = csink_gate_function_find(&data->functions, names[f], "program");
		double value = 30e6 * shares[f] * (side == CSINK_GATE_NEW && f == 1 ? change : 1) * speed *
			       exp(FUNCTION_NOISE * heavy());

		if (index < 0 || csink_gate_weights_grow(&run->weights, data->functions.nr))
			return -1;
		run->weights.self[index] = value;
		sum += value;
	}
	run->weights.sum = sum;
	run->weights.nr_samples = 150;
	run->metrics[csink_gate_metric_find(data, "cpu", "CPU time", "nanoseconds")] = sum;
	run->metrics[csink_gate_metric_find(data, "wall", "wall time", "nanoseconds")] = sum * exp(0.2 * fabs(heavy()));
	return 0;
}

struct outcome {
	bool beta, function, command, is_open; /* found slower; function: another than beta */
	uint32_t pairs, looks;
	enum csink_gate_decision why;
};

static void note_rows(const struct csink_gate_data *data, const struct csink_gate_verdicts *v, struct outcome *outcome)
{
	for (uint32_t i = 0; i < v->nr_rows; i++) {
		const struct csink_gate_row *row = &v->rows[i];

		if (row->verdict != CSINK_GATE_REGRESSED)
			continue;
		if (row->metric >= 0)
			outcome->command = true;
		else if (!strcmp(data->functions.all[row->function].name, "beta"))
			outcome->beta = true;
		else
			outcome->function = true;
	}
	outcome->is_open = v->nr_open > 0;
}

static int run_gate(uint32_t pairs, double change, double threshold, uint64_t seed, struct outcome *outcome)
{
	struct csink_gate_rules rules = {.threshold = threshold, .min_share = 0.01, .alpha = 0.01, .seed = seed};
	struct csink_gate_data data = {.paired = true};
	struct csink_gate_looks looks = {0};
	struct csink_gate_verdicts v;
	uint32_t made = 0;
	int err = 0;

	memset(outcome, 0, sizeof(*outcome));
	while (!err && outcome->why == CSINK_GATE_GO_ON) {
		uint32_t next = CSINK_MIN(csink_gate_looks_next(made), pairs);

		for (; made < next && !err; made++)
			err = add_run(&data, CSINK_GATE_OLD, 1) || add_run(&data, CSINK_GATE_NEW, change);
		if (!err)
			err = csink_gate_judge(&data, &rules,
					       csink_gate_looks_level(&looks, rules.alpha, (double)made / pairs), &v);
		if (err)
			break;
		outcome->why = csink_gate_looks_decide(&v, &rules, made, pairs - made);
		note_rows(&data, &v, outcome);
		csink_gate_verdicts_free(&v);
	}
	outcome->pairs = made;
	outcome->looks = looks.nr;
	csink_gate_data_free(&data);
	return err;
}

int main(int argc, char **argv)
{
	static const char *const why[] = {"", "settled", "time spent", "hopeless"};
	uint32_t gates = argc > 3 ? (uint32_t)atoi(argv[1]) : 0, pairs = argc > 3 ? (uint32_t)atoi(argv[2]) : 0;
	double change = argc > 3 ? atof(argv[3]) : 0, sum = 0, looks = 0;
	uint32_t beta = 0, function = 0, command = 0, ends[4] = {0};
	uint64_t seed = argc > 4 ? strtoull(argv[4], NULL, 10) : 1;
	double threshold = argc > 5 ? atof(argv[5]) : 0.05;
	struct outcome outcome;

	if (!gates || pairs < 2 || !(change > 0)) {
		fprintf(stderr, "usage: gate_looks GATES PAIRS CHANGE [SEED [THRESHOLD]]\n");
		return 2;
	}
	csink_random_init(&dice, seed);
	for (uint32_t gate = 0; gate < gates; gate++) {
		if (run_gate(pairs, change, threshold, seed + gate, &outcome)) {
			fprintf(stderr, "gate_looks: no memory\n");
			return 1;
		}
		beta += outcome.beta;
		function += outcome.function;
		command += outcome.command;
		sum += outcome.pairs;
		looks += outcome.looks;
		ends[outcome.why]++;
	}
	printf("%u gates of at most %u pairs, beta x %g: beta slower in %u, another function in %u, the command in %u; "
	       "mean pairs %.1f, mean looks %.1f;",
	       gates, pairs, change, beta, function, command, sum / gates, looks / gates);
	for (int i = CSINK_GATE_SETTLED; i <= CSINK_GATE_HOPELESS; i++)
		printf(" %s %u", why[i], ends[i]);
	putchar('\n');
	return 0;
}
