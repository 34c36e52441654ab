/*
 * Suites whose instructions are counted (--deterministic): each case by itself, a few times on each side.
 *
 * A case is counted with N iterations and with 2 N, and judged by the difference, which is what N iterations execute:
 * what the process does to start, and the harness before and after them, is in both counts. A count that is divided by
 * its iterations would have a part of all that in it, by which a change of the case's own work would seem smaller. N
 * and 2 N, not 1 and N + 1, since harnesses treat a single iteration differently. Where the number cannot be set, the
 * whole process is judged.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/cleanup.h"
#include "include/internal/clock.h"
#include "launcher/base/format.h"
#include "launcher/gate/counting.h"
#include "launcher/gate/suite/harness.h"

#define MAX_COUNTS 8       /* of a side, where counts of equal runs differ */
#define STEADY 0.1         /* of the threshold: what counts of equal runs may differ by before more are made */
#define MAX_NAMED 5        /* cases in a note */
#define LONG_AFTER_START 2 /* seconds that a simulator takes to begin with, at most */

/* How many times as long as natively a run takes, for the limit of the first one. */
static double slowness(const struct csink_suite_case *c)
{
	static const double times[CSINK_GATE_NR_TOOLS] = {
		[CSINK_GATE_PMU] = 1, [CSINK_GATE_QEMU] = 10, [CSINK_GATE_CALLGRIND] = 50};

	return times[c->counting->tool];
}

static double expected_seconds(const struct csink_suite_case *c)
{
	return c->pair_seconds > 0 ? c->pair_seconds : LONG_AFTER_START + slowness(c) * c->seconds;
}

static double now_seconds(void)
{
	return (double)csink_monotonic_ns() / 1e9;
}

/* ---- a count ---- */

/* How many iterations the latest run made. Returns 0, also where the case fails. */
static void learn_made(struct csink_suite *suite, struct csink_suite_case *c, int side, uint64_t n, double *made)
{
	const struct csink_suite_harness *harness = suite->harness;
	CSINK_AUTO_FREE char *text = csink_suite_take_report(suite);
	char why[1024] = "";

	*made = (double)n;
	if (harness->count)
		*made = harness->prints_number ? harness->count(c, text, NULL, why, sizeof(why))
					       : harness->count(c, NULL, text, why, sizeof(why));
	if (!(*made > 0))
		csink_suite_case_fail(c, "%s: a counted run reports no iterations%s%s", csink_suite_sides[side],
				      *why ? ": " : "", why);
}

/*
 * A run of n iterations; it is the latest of the case's data then.
 * Returns 0, also where the case fails; -EINTR, -ENOMEM or -ETIME.
 */
static int count_run(struct csink_suite *suite, struct csink_suite_case *c, int side, uint64_t n, uint32_t number,
		     double *made)
{
	struct csink_gate_series *series = suite->series;
	int err = csink_suite_command(suite, c, side, n, &c->jobs[side]);
	double start = now_seconds();

	if (err)
		return err;
	if (csink_suite_left(suite) < expected_seconds(c))
		return -ETIME;
	c->plan.argv[side] = c->jobs[side].argv.all;
	c->plan.prepare = c->jobs[side].prepare ?: series->plan->prepare;
	series->pin = c->pin;
	err = csink_suite_turn(suite, &c->jobs[side], &c->plan, &c->data, side, number, expected_seconds(c));
	if (err == -EINTR || err == -ENOMEM || err == -ETIME)
		return err;
	if (err)
		csink_suite_case_fail(c, "%s: %s", csink_suite_sides[side],
				      *series->error ? series->error : strerror(-err));
	else
		learn_made(suite, c, side, n, made);
	c->pair_seconds = fmax(c->pair_seconds, now_seconds() - start);
	return 0;
}

/* What the run before the latest executed more than the latest one, in its place. */
static void subtract(struct csink_gate_data *data)
{
	struct csink_gate_run *more = &data->runs[data->nr_runs - 2], *less = &data->runs[data->nr_runs - 1];

	for (uint32_t m = 0; m < data->nr_metrics; m++)
		more->metrics[m] -= less->metrics[m];
	more->weights.sum -= less->weights.sum;
	/* What only starts the process may differ by a few instructions. */
	for (uint32_t f = 0; f < more->weights.nr; f++)
		more->weights.self[f] = fmax(0, more->weights.self[f] - csink_gate_weight(&less->weights, f));
	csink_gate_run_drop(data);
}

/* The case's own work on a side. Returns as count_run. */
static int count_side(struct csink_suite *suite, struct csink_suite_case *c, int side, uint32_t number, double *work)
{
	double made[2] = {0, 0};
	uint32_t nr_programs = 0;
	int index, err = 0;

	if (!c->is_whole) {
		err = count_run(suite, c, side, 2 * c->n, number, &made[1]);
		nr_programs = c->counting->nr_programs;
	}
	if (!err && c->state != CSINK_SUITE_FAILED)
		err = count_run(suite, c, side, c->n, number, &made[0]);
	c->executes |= c->counting->nr_programs != nr_programs;
	*work = c->is_whole ? made[0] : made[1] - made[0];
	if (err || c->is_whole || c->state == CSINK_SUITE_FAILED)
		return err;
	/* As many where twice as many were asked for: the case itself has a number. */
	if (made[1] == made[0]) {
		struct csink_gate_run *runs = c->data.runs, first = runs[c->data.nr_runs - 2];

		runs[c->data.nr_runs - 2] = runs[c->data.nr_runs - 1];
		runs[c->data.nr_runs - 1] = first;
		csink_gate_run_drop(&c->data);
		c->is_whole = true;
		c->executes |= nr_programs > 0;
		*work = made[0];
		return 0;
	}
	subtract(&c->data);
	index = csink_gate_metric_lookup(&c->data, "instructions");
	/*
	 * An iteration executes an instruction at least. What is fewer is no iteration: a number that has a digit more
	 * takes the start of a process some instructions more.
	 */
	if (made[1] < made[0] || index < 0 || !(c->data.runs[c->data.nr_runs - 1].metrics[index] >= *work))
		csink_suite_case_fail(c, "%s executes no more instructions for twice as many iterations%s%s%s",
				      csink_suite_sides[side],
				      nr_programs ? ", beside programs that qemu-user does not count (" : "",
				      nr_programs ? c->counting->programs : "", nr_programs ? ")" : "");
	return 0;
}

/* Both sides once. Returns as count_run. */
static int count_pair(struct csink_suite *suite, struct csink_suite_case *c, uint32_t number)
{
	double work[CSINK_GATE_NR_SIDES] = {0, 0};
	int err = 0;

	for (int side = 0; side < CSINK_GATE_NR_SIDES && !err && c->state != CSINK_SUITE_FAILED; side++)
		err = count_side(suite, c, side, number, &work[side]);
	if (!err && c->state != CSINK_SUITE_FAILED && work[CSINK_GATE_OLD] != work[CSINK_GATE_NEW])
		csink_suite_case_fail(c, CSINK_SUITE_UNEQUAL_WORK, work[CSINK_GATE_OLD], work[CSINK_GATE_NEW]);
	c->pairs[1] += !err && c->state != CSINK_SUITE_FAILED;
	return err;
}

/* ---- whether counts repeat ---- */

/* By how much the counts of one side differ: of the metric, or of a function if that is below 0. Relative to what the
 * largest count is. */
static double spread_of(const struct csink_gate_data *data, int side, int metric, uint32_t function)
{
	double low = INFINITY, high = 0;

	for (uint32_t i = 0; i < data->nr_runs; i++) {
		const struct csink_gate_run *run = &data->runs[i];
		double value = metric >= 0 ? run->metrics[metric] : csink_gate_weight(&run->weights, function);

		if ((int)run->side != side)
			continue;
		low = fmin(low, value);
		high = fmax(high, value);
	}
	return high > 0 ? (high - low) / high : 0;
}

/* The part of all instructions that a function has in a side's first count. */
static double share_of(const struct csink_gate_data *data, int side, uint32_t function)
{
	for (uint32_t i = 0; i < data->nr_runs; i++) {
		const struct csink_gate_run *run = &data->runs[i];

		if ((int)run->side == side && run->weights.sum > 0)
			return csink_gate_weight(&run->weights, function) / run->weights.sum;
	}
	return 0;
}

/* Set the case's spread, and see whether its counts are as good as equal. */
static bool is_steady(const struct csink_suite *suite, struct csink_suite_case *c)
{
	const struct csink_gate_rules *rules = suite->series->rules;
	int index = csink_gate_metric_lookup(&c->data, "instructions");
	double most = 0;

	c->spread = 0;
	for (int side = 0; side < CSINK_GATE_NR_SIDES; side++) {
		c->spread = fmax(c->spread, spread_of(&c->data, side, index, 0));
		for (uint32_t f = 0; f < c->data.functions.nr; f++) {
			if (share_of(&c->data, side, f) >= rules->min_share)
				most = fmax(most, spread_of(&c->data, side, -1, f));
		}
	}
	c->wavers = fmax(most, c->spread) > STEADY * rules->threshold;
	return !c->wavers;
}

/* System calls that the process makes now and then, as an allocator does, are not the case's. */
static void drop_calls(struct csink_suite *suite, struct csink_suite_case *c)
{
	int index = csink_gate_metric_lookup(&c->data, "syscalls");
	double most = 0, spread = 0;

	if (index < 0)
		return;
	for (int side = 0; side < CSINK_GATE_NR_SIDES; side++)
		spread = fmax(spread, spread_of(&c->data, side, index, 0));
	for (uint32_t i = 0; i < c->data.nr_runs; i++)
		most = fmax(most, c->data.runs[i].metrics[index]);
	if (!spread && (c->is_whole || most >= (double)c->n))
		return;
	for (uint32_t i = 0; i < c->data.nr_runs; i++)
		c->data.runs[i].metrics[index] = NAN;
	if (spread && (c->is_whole || most >= (double)c->n))
		csink_gate_note(suite->series, "system calls are not judged: equal runs differ in their number");
}

/* ---- a case ---- */

static int begin_counting(struct csink_suite *suite, struct csink_suite_case *c)
{
	const struct csink_suite_harness *harness = suite->harness;

	c->counting = malloc(sizeof(*c->counting));
	if (!c->counting)
		return -ENOMEM;
	*c->counting = *suite->series->plan->counting;
	c->counting->has_suite = true;
	c->plan.counting = c->counting;
	c->data.exact = true;
	c->pair_seconds = 0;
	c->is_whole = harness->one_run || (harness->takes_number && !harness->takes_number(suite));
	return 0;
}

/*
 * With --deterministic=auto, the first counts show whether qemu-user can count the case. If not, begin again.
 * Natively the case runs: what fails here fails by the simulation.
 */
static void change_tool(struct csink_suite_case *c)
{
	bool fails = c->state == CSINK_SUITE_FAILED;

	if ((!fails && !c->executes) ||
	    !csink_gate_counting_give_way(c->counting, fails ? c->error ?: "" : NULL, c->counting->programs))
		return;
	free(c->error);
	c->error = NULL;
	c->state = CSINK_SUITE_PENDING;
	c->executes = false;
	c->counting->nr_programs = 0;
	*c->counting->programs = '\0';
	c->pairs[1] = 0;
	c->pair_seconds = 0;
	csink_suite_begin_data(c, c->jobs);
	c->data.exact = true;
}

static int count_case(struct csink_suite *suite, struct csink_suite_case *c)
{
	uint32_t nr = suite->series->plan->runs, made = 0;
	int err = begin_counting(suite, c);

	for (; !err && made < nr && c->state != CSINK_SUITE_FAILED; made = c->pairs[1]) {
		err = count_pair(suite, c, made);
		if (!err && !made)
			change_tool(c);
		if (!err && c->pairs[1] == nr && c->state != CSINK_SUITE_FAILED && !is_steady(suite, c))
			nr = nr < MAX_COUNTS ? MAX_COUNTS : nr;
	}
	/* Of half a pair the latest count may be one of 2 N iterations, beside differences. */
	while (c->data.nr_runs > 2 * c->pairs[1])
		csink_gate_run_drop(&c->data);
	/* Two counts of each side are the least that show a spread. */
	if (err == -ETIME && c->pairs[1] < 2)
		csink_suite_case_fail(c, CSINK_SUITE_NO_TIME_TO_TRY);
	if ((err && err != -ETIME) || c->state == CSINK_SUITE_FAILED) {
		c->pairs[1] = 0;
		return err == -ETIME ? 0 : err;
	}
	is_steady(suite, c);
	drop_calls(suite, c);
	err = csink_gate_judge(&c->data, suite->series->rules, 0, &c->verdicts);
	if (!err)
		c->state = CSINK_SUITE_JUDGED;
	return err;
}

/* ---- notes ---- */

/* A test of a case; of one that compares it with another case, that other. */
typedef bool is_so_fn(const struct csink_suite_case *c, const struct csink_suite_case *other);

static bool has_tool_of(const struct csink_suite_case *c, const struct csink_suite_case *other)
{
	return c->counting->tool == other->counting->tool && !strcmp(c->counting->why, other->counting->why);
}

static bool is_of_whole(const struct csink_suite_case *c, const struct csink_suite_case *other)
{
	(void)other;
	return c->is_whole;
}

static bool has_programs(const struct csink_suite_case *c, const struct csink_suite_case *other)
{
	(void)other;
	return c->executes;
}

static bool is_uneven(const struct csink_suite_case *c, const struct csink_suite_case *other)
{
	(void)other;
	return c->spread > 0;
}

/* The judged cases that are so, if there are any: "BEFORE 3 of 10 cases AFTER: NAMES". */
static void note_cases(struct csink_suite *suite, is_so_fn *is_so, const struct csink_suite_case *other,
		       const char *before, const char *after)
{
	char names[1024] = "";
	uint32_t nr = 0;

	for (uint32_t i = 0; i < suite->nr; i++) {
		const struct csink_suite_case *c = &suite->cases[i];

		if (c->state != CSINK_SUITE_JUDGED || !is_so(c, other))
			continue;
		if (nr++ >= MAX_NAMED)
			continue;
		csink_append(names, sizeof(names), "%s%.100s", nr > 1 ? ", " : "", c->name);
		if (is_so == is_uneven)
			csink_append(names, sizeof(names), " by %.2g %%", 100 * c->spread);
	}
	if (nr)
		csink_gate_note(suite->series, "%s %u of %u cases%s: %s%s", before, nr, suite->nr, after, names,
				nr > MAX_NAMED ? ", ..." : "");
}

static void note_spread(struct csink_suite *suite)
{
	bool any = false, uneven = false;

	for (uint32_t i = 0; i < suite->nr; i++) {
		any |= suite->cases[i].state == CSINK_SUITE_JUDGED;
		uneven |= suite->cases[i].state == CSINK_SUITE_JUDGED && suite->cases[i].spread > 0;
	}
	if (any && !uneven)
		csink_gate_note(suite->series, "counts of equal runs do not differ in any case");
	note_cases(suite, is_uneven, NULL, "counts of equal runs differ in",
		   ", which are judged by the largest and the smallest");
}

/* A note for each reason; its other cases make the same text, which csink_gate_note() takes once. */
static void note_other_tools(struct csink_suite *suite)
{
	char how[256], after[640];

	for (uint32_t i = 0; i < suite->nr; i++) {
		const struct csink_suite_case *c = &suite->cases[i];

		if (c->state != CSINK_SUITE_JUDGED || c->counting->tool == suite->series->plan->counting->tool)
			continue;
		csink_gate_counting_describe(c->counting, how, sizeof(how));
		snprintf(after, sizeof(after), ", %s, since %.300s", how, c->counting->why);
		note_cases(suite, has_tool_of, c, "of", after);
	}
}

static void note_counts(struct csink_suite *suite)
{
	csink_gate_counting_note(suite->series);
	note_cases(suite, is_of_whole, NULL, "the iterations of",
		   " cannot be set: whole processes are judged, their start included");
	note_cases(suite, has_programs, NULL, "NOT counted: programs that",
		   " execute, since qemu-user simulates the command alone; --deterministic=callgrind counts them");
	note_spread(suite);
	/* The last, since a reason may be a message of each case's own, and there is room for a number of notes. */
	note_other_tools(suite);
}

int csink_suite_check_counted(struct csink_suite *suite)
{
	const struct csink_suite_harness *harness = suite->harness;

	if (!suite->is_counted || (!harness->by_time && !harness->varies))
		return 0;
	return CSINK_SUITE_WHY(
		suite, -EINVAL,
		"option --deterministic: %s chooses the iterations of its cases by a clock, and takes no "
		"number: the two sides would not do the same work",
		harness->name);
}

int csink_suite_count(struct csink_suite *suite)
{
	int err = 0;

	for (uint32_t i = 0; i < suite->nr && !err; i++) {
		if (suite->cases[i].state != CSINK_SUITE_PENDING)
			continue;
		csink_suite_show(suite, "counting case", i + 1, suite->nr);
		err = count_case(suite, &suite->cases[i]);
	}
	if (!err)
		note_counts(suite);
	return err;
}
