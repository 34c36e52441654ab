/*
 * For tests/gate/suite-power: how often a suite names a case that did not change, and what it finds, simulated on real
 * runs of programs and themselves with the product's own screening, looks and verdicts (launcher/gate/suite).
 *
 * usage: suite_power SUITES CASES SLOWER CHANGE SCREEN CONFIRM BUDGET THRESHOLD SEED FILE...
 * SLOWER: cases that are slower, since their largest function is: CHANGE is the ratio of the function's time (1.05) or
 * of the case's (1.08c); BUDGET: as many pairs a case as there is time for; FILE: of tests/gate/suite-runs. Prints
 * "suites NUMBER FALSE NAMED ALL_NAMED FUNCTIONS BLAMED PAIRS OPEN PEERS_CASES PEERS": suites; those in which a case or
 * a function that did not change regressed; slower cases that were named; suites in which all of them were; slower
 * cases whose function was named; those in which another one was; pairs a case; cases that were left open; cases that
 * the U test of ten runs and the ten before them distinguishes at 5 %, of how many.
 *
 * A case's pairs are neighbours in a file, from a random place on. Which of two equal programs was the new one is as
 * good as the other way round. All pairs take as long.
 */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "launcher/gate/suite/suite.h"
#include "tests/gate/measured_runs.h"

#define PEER_RUNS 10
#define PEER_ALPHA 0.05

static struct csink_random dice;

/* ---- runs ---- */

struct simulated {
	const struct program *program;
	uint32_t at;   /* of the next pair */
	double change; /* of the largest function; 1: none */
};

static int add_run(struct csink_suite_case *c, const struct simulated *from, int side, int column, double change)
{
	return add_measured(&c->data, from->program, from->at, side, column, from->program->largest, change);
}

static int add_pair(struct csink_suite_case *c, struct simulated *from)
{
	int column = (int)csink_random_below(&dice, 2), err;

	err = add_run(c, from, CSINK_GATE_OLD, column, 1) || add_run(c, from, CSINK_GATE_NEW, !column, from->change);
	from->at = (from->at + 1) % from->program->nr;
	return err;
}

static int begin_data(struct csink_suite_case *c, const struct simulated *from)
{
	return begin_measured(&c->data, from->program);
}

/* ---- a suite ---- */

static uint32_t count_pending(const struct csink_suite *suite)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < suite->nr; i++)
		nr += suite->cases[i].state == CSINK_SUITE_PENDING;
	return nr;
}

/* Returns the pairs that were made, or -1. */
static double make_round(struct csink_suite *suite, struct simulated *from, int stage)
{
	double made = 0;

	for (uint32_t i = 0; i < suite->nr; i++) {
		struct csink_suite_case *c = &suite->cases[i];

		if (c->state != CSINK_SUITE_PENDING)
			continue;
		if (add_pair(c, &from[i]))
			return -1;
		c->pairs[stage]++;
		made++;
	}
	return made;
}

/* As suite_rounds.c does it. */
static int screen(struct csink_suite *suite, struct simulated *from, double budget, double *spent)
{
	uint32_t half = (suite->screen + 1) / 2;
	int err = 0;

	for (uint32_t round = 0; round < suite->screen && !err; round++) {
		if (round && *spent + count_pending(suite) > CSINK_SUITE_SCREEN_PART * budget)
			break;
		*spent += make_round(suite, from, 0);
		if (round + 1 == half)
			err = csink_suite_screen_pending(suite, CSINK_SUITE_HALFWAY_P);
	}
	err = err || !suite->screen ? err : csink_suite_screen_pending(suite, CSINK_SUITE_SCREEN_P);
	for (uint32_t i = 0; i < suite->nr && !err; i++) {
		if (suite->cases[i].state == CSINK_SUITE_PENDING)
			err = begin_data(&suite->cases[i], &from[i]);
	}
	return err;
}

static int confirm(struct csink_suite *suite, struct simulated *from, double budget, double *spent)
{
	double start = *spent, fraction, more;
	uint32_t made = 0, next = suite->confirm;
	int err = 0;

	csink_suite_ask_pending(suite);
	while (!err && count_pending(suite)) {
		for (; made < next && (!made || *spent + count_pending(suite) <= budget); made++)
			*spent += make_round(suite, from, 1);
		more = made < next ? 0 : (budget - *spent) / count_pending(suite);
		more = fmin(more, CSINK_GATE_MAX_RUNS - (double)made);
		fraction = fmax((*spent - start) / (budget - start), (double)made / CSINK_GATE_MAX_RUNS);
		err = csink_suite_look(suite, more < 1 ? 1 : fraction, more);
		next = csink_gate_looks_next(made);
	}
	return err;
}

struct totals {
	uint32_t suites, wrong, named, all_named, functions, blamed, peers_cases, peers;
	double pairs, open;
};

/* named: its slower function. other: anything else but figures of a slower case. */
static void see_case(const struct csink_suite_case *c, const struct simulated *from, bool *slower, bool *named,
		     bool *other)
{
	*slower = *named = *other = false;
	for (uint32_t i = 0; c->state == CSINK_SUITE_JUDGED && i < c->verdicts.nr_rows; i++) {
		const struct csink_gate_row *row = &c->verdicts.rows[i];

		if (row->verdict != CSINK_GATE_REGRESSED)
			continue;
		*slower = true;
		if (from->change > 1 && row->function == (int32_t)from->program->largest)
			*named = true;
		else if (from->change <= 1 || row->function >= 0)
			*other = true;
	}
}

/* Ten runs and the ten before them, of equal programs. */
static void ask_peers(const struct simulated *from, struct totals *totals)
{
	double values[2][PEER_RUNS];

	for (uint32_t i = 0; i < PEER_RUNS; i++) {
		for (uint32_t half = 0; half < 2; half++) {
			uint32_t run = half * PEER_RUNS + i, pair = (from->at + run / 2) % from->program->nr;

			values[half][i] = from->program->values[pair][CPU][run % 2];
		}
	}
	totals->peers_cases++;
	totals->peers += csink_wilcoxon_two(values[0], PEER_RUNS, values[1], PEER_RUNS, CSINK_TAIL_BOTH) <= PEER_ALPHA;
}

static void see_suite(const struct csink_suite *suite, const struct simulated *from, struct totals *totals)
{
	uint32_t slower = 0, found = 0;
	bool is_slower, named, other, wrong = false;

	for (uint32_t i = 0; i < suite->nr; i++) {
		const struct csink_suite_case *c = &suite->cases[i];

		see_case(c, &from[i], &is_slower, &named, &other);
		slower += from[i].change > 1;
		found += from[i].change > 1 && is_slower;
		totals->functions += named;
		totals->blamed += other && from[i].change > 1;
		wrong |= other;
		totals->pairs += c->pairs[0] + c->pairs[1];
		totals->open += c->state == CSINK_SUITE_UNCONFIRMED ||
				(c->state == CSINK_SUITE_JUDGED && !c->verdicts.counts[CSINK_GATE_REGRESSED] &&
				 c->verdicts.nr_open);
	}
	totals->suites++;
	totals->wrong += wrong;
	totals->named += found;
	totals->all_named += slower && found == slower;
}

static int run_suite(struct csink_suite *suite, uint32_t slower, double change, bool of_case, double budget,
		     struct totals *totals)
{
	struct simulated *from = calloc(suite->nr, sizeof(*from));
	double spent = 0;
	int err = from ? 0 : -1;

	for (uint32_t i = 0; i < suite->nr && !err; i++) {
		suite->cases[i] = (struct csink_suite_case){.screen_p = NAN, .p = NAN};
		from[i].program = &programs[i % nr_programs];
		from[i].at = csink_random_below(&dice, from[i].program->nr);
		from[i].change = i >= slower ? 1 : of_case ? 1 + (change - 1) / from[i].program->share : change;
		ask_peers(&from[i], totals);
		err = begin_data(&suite->cases[i], &from[i]);
	}
	err = err || screen(suite, from, budget * suite->nr, &spent) ||
	      confirm(suite, from, budget * suite->nr, &spent);
	if (!err)
		see_suite(suite, from, totals);
	for (uint32_t i = 0; i < suite->nr; i++) {
		csink_gate_data_free(&suite->cases[i].data);
		csink_gate_verdicts_free(&suite->cases[i].verdicts);
		csink_gate_verdicts_free(&suite->cases[i].screening.verdicts);
	}
	free(from);
	return err;
}

int main(int argc, char **argv)
{
	struct csink_gate_rules rules = {.min_share = 0.01, .alpha = 0.01};
	struct csink_gate_series series = {.rules = &rules};
	struct csink_suite suite = {.series = &series};
	struct totals totals = {0};
	char *end = NULL;
	uint32_t suites = argc > 10 ? (uint32_t)atoi(argv[1]) : 0, slower;
	double change = argc > 10 ? strtod(argv[4], &end) : 0;
	int err = 0;

	if (!suites || argc > 10 + MAX_FILES) {
		fprintf(stderr,
			"usage: suite_power SUITES CASES SLOWER CHANGE SCREEN CONFIRM BUDGET THRESHOLD SEED FILE...\n");
		return 2;
	}
	suite.nr = (uint32_t)atoi(argv[2]);
	slower = (uint32_t)atoi(argv[3]);
	suite.screen = (uint32_t)atoi(argv[5]);
	suite.confirm = (uint32_t)atoi(argv[6]);
	rules.threshold = atof(argv[8]);
	csink_random_init(&dice, strtoull(argv[9], NULL, 10));
	for (int i = 10; i < argc && !err; i++) {
		err = read_program(argv[i], &programs[nr_programs++]);
		if (err)
			fprintf(stderr, "suite_power: %s has no runs\n", argv[i]);
	}
	suite.cases = calloc(suite.nr + 1, sizeof(*suite.cases));
	for (uint32_t i = 0; i < suites && suite.cases && !err; i++) {
		rules.seed = csink_random_next(&dice) % 1000000000 + 1;
		err = run_suite(&suite, slower, change, !strcmp(end, "c"), atof(argv[7]), &totals);
	}
	free(suite.cases);
	printf("suites %u %u %u %u %u %u %.2f %.0f %u %u\n", totals.suites, totals.wrong, totals.named,
	       totals.all_named, totals.functions, totals.blamed, totals.pairs / totals.suites / suite.nr, totals.open,
	       totals.peers_cases, totals.peers);
	return err ? 1 : 0;
}
