/*
 * For tests/gate/command-power: how often a gate of one command is wrong, and what it finds, simulated on real runs of
 * programs and themselves with the product's own judgement.
 *
 * usage: command_power GATES PAIRS FUNCTION CHANGE THRESHOLD SEED FILE...
 * FUNCTION: the number of the function that is slower, by the ratio CHANGE (1.02; 1: none is); THRESHOLD: 0.05; FILE:
 * of tests/gate/suite-runs, by turns. Prints "gates NUMBER COMMAND FUNCTION NAMED": gates; those in which a figure of
 * the command regressed; those in which a function did that did not change; those in which the slower one did.
 *
 * A gate's pairs are neighbours in a file, from a random place on. Which of two equal programs was the new one is as
 * good as the other way round.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/gate/measured_runs.h"

static struct csink_random dice;

struct totals {
	uint32_t gates, command, function, named;
};

static void see_gate(const struct csink_gate_verdicts *v, uint32_t slower, double change, struct totals *totals)
{
	bool command = false, function = false, named = false;

	for (uint32_t i = 0; i < v->nr_rows; i++) {
		const struct csink_gate_row *row = &v->rows[i];

		if (row->verdict != CSINK_GATE_REGRESSED)
			continue;
		if (row->metric >= 0)
			command = true;
		else if (change > 1 && row->function == (int32_t)slower)
			named = true;
		else
			function = true;
	}
	totals->gates++;
	totals->command += command;
	totals->function += function;
	totals->named += named;
}

static int run_gate(const struct program *program, uint32_t pairs, uint32_t slower, double change,
		    struct csink_gate_rules *rules, struct totals *totals)
{
	uint32_t at = csink_random_below(&dice, program->nr);
	struct csink_gate_data data = {0};
	struct csink_gate_verdicts v;
	int err = slower < program->nr_functions ? begin_measured(&data, program) : -1;

	for (uint32_t i = 0; i < pairs && !err; i++) {
		int column = (int)csink_random_below(&dice, 2);
		uint32_t pair = (at + i) % program->nr;

		err = add_measured(&data, program, pair, CSINK_GATE_OLD, column, slower, 1) ||
		      add_measured(&data, program, pair, CSINK_GATE_NEW, !column, slower, change);
	}
	rules->seed = csink_random_next(&dice) % 1000000000 + 1;
	err = err ? err : csink_gate_judge(&data, rules, 0, &v);
	if (!err) {
		see_gate(&v, slower, change, totals);
		csink_gate_verdicts_free(&v);
	}
	csink_gate_data_free(&data);
	return err;
}

int main(int argc, char **argv)
{
	struct csink_gate_rules rules = {.min_share = 0.01, .alpha = 0.01};
	struct totals totals = {0};
	uint32_t gates = argc > 7 ? (uint32_t)atoi(argv[1]) : 0;
	int err = 0;

	if (!gates || argc > 7 + MAX_FILES) {
		fprintf(stderr, "usage: command_power GATES PAIRS FUNCTION CHANGE THRESHOLD SEED FILE...\n");
		return 2;
	}
	rules.threshold = atof(argv[5]);
	csink_random_init(&dice, strtoull(argv[6], NULL, 10));
	for (int i = 7; i < argc && !err; i++) {
		err = read_program(argv[i], &programs[nr_programs++]);
		if (err)
			fprintf(stderr, "command_power: %s has no runs\n", argv[i]);
	}
	for (uint32_t i = 0; i < gates && !err; i++)
		err = run_gate(&programs[i % nr_programs], (uint32_t)atoi(argv[2]), (uint32_t)atoi(argv[3]),
			       atof(argv[4]), &rules, &totals);
	printf("gates %u %u %u %u\n", totals.gates, totals.command, totals.function, totals.named);
	return err ? 1 : 0;
}
