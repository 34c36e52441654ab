/*
 * For tests/gate/suite_power.c and command_power.c: real runs of programs and themselves, as tests/gate/suite-runs
 * writes them, and runs of a gate that are made of them.
 */
#ifndef CSINK_TESTS_MEASURED_RUNS_H
#define CSINK_TESTS_MEASURED_RUNS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/gate/gate.h"

#define MAX_PAIRS 2000
#define MAX_FUNCTIONS 60
#define MAX_FILES 8
#define MAX_LINE 4096

enum { CPU, WALL, NR_METRICS };

static struct program {
	uint32_t nr, nr_functions, largest;
	double share; /* of the largest function */
	double values[MAX_PAIRS][NR_METRICS + MAX_FUNCTIONS][2];
} programs[MAX_FILES];
static uint32_t nr_programs;

static int read_line(struct program *program, char *line)
{
	uint32_t nr = 0;
	char *end;

	for (char *at = line; nr < 2 * (NR_METRICS + MAX_FUNCTIONS); at = end, nr++) {
		double value = strtod(at, &end);

		if (end == at)
			break;
		program->values[program->nr][nr / 2][nr % 2] = value;
	}
	if (nr % 2 || nr / 2 <= NR_METRICS)
		return -1;
	program->nr_functions = nr / 2 - NR_METRICS;
	program->nr++;
	return 0;
}

static int read_program(const char *path, struct program *program)
{
	FILE *file = fopen(path, "r");
	char line[MAX_LINE];
	double most = 0, all = 0;
	int err = file ? 0 : -1;

	while (!err && program->nr < MAX_PAIRS && fgets(line, sizeof(line), file)) {
		if (*line != '#')
			err = read_line(program, line);
	}
	if (file)
		fclose(file);
	for (uint32_t i = 0; i < program->nr; i++)
		all += program->values[i][CPU][0];
	for (uint32_t f = 0; f < program->nr_functions; f++) {
		double sum = 0;

		for (uint32_t i = 0; i < program->nr; i++)
			sum += program->values[i][NR_METRICS + f][0];
		if (sum > most) {
			most = sum;
			program->largest = f;
			program->share = sum / all;
		}
	}
	return err || !program->nr ? -1 : 0;
}

/* Add what a side of the pair was, with another duration of one function. Returns 0 or -1. */
static int add_measured(struct csink_gate_data *data, const struct program *program, uint32_t pair, int side,
			int column, uint32_t slower, double change)
{
	struct csink_gate_run *run = csink_gate_run_add(data, side);
	double more = program->values[pair][NR_METRICS + slower][column] * (change - 1);

	if (!run || csink_gate_weights_grow(&run->weights, program->nr_functions))
		return -1;
	for (uint32_t f = 0; f < program->nr_functions; f++) {
		run->weights.self[f] = 1e3 * (program->values[pair][NR_METRICS + f][column] + (f == slower ? more : 0));
		run->weights.sum += run->weights.self[f];
	}
	run->weights.nr_samples = (uint64_t)(run->weights.sum / 2e5) + 1;
	run->metrics[csink_gate_metric_find(data, "cpu", "CPU time", "nanoseconds")] =
		1e3 * (program->values[pair][CPU][column] + more);
	run->metrics[csink_gate_metric_find(data, "wall", "wall time", "nanoseconds")] =
		1e3 * (program->values[pair][WALL][column] + more);
	return 0;
}

/* Before the first run: the program's functions. Returns 0 or -1. */
static int begin_measured(struct csink_gate_data *data, const struct program *program)
{
	char name[32];

	csink_gate_data_free(data);
	data->paired = true;
	for (uint32_t f = 0; f < program->nr_functions; f++) {
		snprintf(name, sizeof(name), "f%u", f);
		if (csink_gate_function_find(&data->functions, name, "program") != f)
			return -1;
	}
	return 0;
}

#endif
