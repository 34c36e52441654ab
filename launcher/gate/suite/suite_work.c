/*
 * How much work a run of a case does: as many iterations as take the time that is wanted, found on the old side and
 * given to both. What a process costs to start is in the first run of one iteration, and is taken off.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "include/internal/clock.h"
#include "launcher/base/regular.h"
#include "launcher/gate/suite/harness.h"

#define MAX_STEPS 14
#define MAX_GROWTH 100 /* of iterations, from one trial to the next */
#define MAX_REPORT (64 << 20)
#define LEAST_LIMIT 5 /* seconds that a first run has */

char *csink_suite_take_report(struct csink_suite *suite)
{
	FILE *file = *suite->report ? csink_regular_fopen(suite->report, 0, MAX_REPORT) : NULL;
	char *text = NULL;
	size_t cap = 0;
	ssize_t got;

	if (!file)
		return NULL;
	got = getdelim(&text, &cap, '\0', file);
	fclose(file);
	unlink(suite->report);
	if (got >= 0)
		return text;
	free(text);
	return strdup("");
}

double csink_suite_trial_limit(const struct csink_suite *suite)
{
	return fmax(LEAST_LIMIT, (double)suite->max_time_ns / 1e9 / 10);
}

/* What the case's own list has before each run. Returns 0, also where the case fails; -EINTR or -ENOMEM. */
static int prepare(struct csink_suite *suite, struct csink_suite_case *c, int side)
{
	struct csink_suite_job job = {.dir = c->jobs[side].dir};
	struct csink_suite_answer answer = {0};
	char why[1024];
	int err;

	if (!c->jobs[side].prepare)
		return 0;
	csink_suite_put_shell(&job.argv, c->jobs[side].prepare);
	err = csink_suite_ask(suite, &job, csink_suite_trial_limit(suite), &answer);
	if (!err && csink_suite_answer_error(&answer, why, sizeof(why)))
		csink_suite_case_fail(c, "%s: what is run before it: %s", csink_suite_sides[side], why);
	csink_suite_answer_free(&answer);
	csink_suite_words_free(&job.argv);
	return err;
}

/* What a run showed. */
struct trial {
	double cpu;  /* seconds of the process */
	double made; /* iterations */
	double work; /* seconds that these took, as the harness reports; NAN: it does not */
};

/* Run a side once. Returns 0, also where the case fails; -EINTR or -ENOMEM. */
static int try_side(struct csink_suite *suite, struct csink_suite_case *c, int side, uint64_t n, struct trial *trial)
{
	const struct csink_suite_harness *harness = suite->harness;
	struct csink_suite_answer answer;
	char why[1024] = "";
	char *report;
	int err = csink_suite_command(suite, c, side, n, &c->jobs[side]);

	if (!err && csink_suite_left(suite) <= c->seconds) {
		csink_suite_case_fail(c, CSINK_SUITE_NO_TIME_TO_TRY);
		return 0;
	}
	err = err ? err : prepare(suite, c, side);
	if (!err && c->state == CSINK_SUITE_FAILED)
		return 0;
	err = err ? err : csink_suite_ask(suite, &c->jobs[side], csink_suite_trial_limit(suite), &answer);
	if (err == -EINTR || err == -ENOMEM)
		return err;
	if (err) {
		csink_suite_case_fail(c, "%s cannot be run: %s", csink_suite_sides[side], strerror(-err));
		return 0;
	}
	report = csink_suite_take_report(suite);
	*trial = (struct trial){answer.cpu_seconds, (double)n, NAN};
	c->seconds = fmax(c->seconds, answer.seconds);
	if (answer.timed_out && !answer.is_endless && answer.is_late)
		csink_suite_case_fail(c, CSINK_SUITE_NO_TIME_TO_TRY);
	else if (csink_suite_answer_error(&answer, why, sizeof(why)))
		csink_suite_case_fail(c, "%s: %s", csink_suite_sides[side], why);
	else if (harness->count)
		trial->made = harness->count(c, answer.out, report, why, sizeof(why));
	if (harness->seconds)
		trial->work = harness->seconds(c, answer.out, report);
	if (!trial->made)
		csink_suite_case_fail(c, "%s ran no case of that name, and ended with status 0",
				      csink_suite_sides[side]);
	else if (trial->made < 0)
		csink_suite_case_fail(c, "%s: %s", csink_suite_sides[side], why);
	free(report);
	csink_suite_answer_free(&answer);
	return 0;
}

double csink_suite_next_number(double n, double work, double target)
{
	return fmin(CSINK_SUITE_MAX_N, floor(n * fmax(2, fmin(work > 0 ? target / work : MAX_GROWTH, MAX_GROWTH))));
}

double csink_suite_last_number(double n, double work, double target)
{
	return fmax(1, fmin(CSINK_SUITE_MAX_N, floor(n * target / work)));
}

/* Iterations of the next trial: none may take so long that the trial takes more than ten runs. */
static double next_trial(double n, double first, double work, double enough, double target)
{
	if (n == 1)
		return fmax(2, fmin(100, 10 * target / fmax(first, 1e-4)));
	return n * fmax(2, fmin(work > enough / 10 ? 1.5 * enough / work : 10, 10));
}

/* The number for the old side, by the time that the harness reports. c->n is 1, and a trial was made. */
static int find_number_reported(struct csink_suite *suite, struct csink_suite_case *c, struct trial *trial)
{
	/* A process that takes long to start does more. */
	double target = fmax(suite->run_seconds, trial->cpu / CSINK_SUITE_PART_OF_START), n = 1, own = trial->made;
	int err = 0;

	for (int step = 0; step < MAX_STEPS && trial->work < target / 3 && n < CSINK_SUITE_MAX_N; step++) {
		n = csink_suite_next_number(n, trial->work, target);
		err = try_side(suite, c, CSINK_GATE_OLD, (uint64_t)n, trial);
		/* As many as before, though more were asked for: the case itself has a number. */
		if (err || c->state == CSINK_SUITE_FAILED || trial->made <= own)
			return err;
	}
	if (trial->work > 0)
		c->n = (uint64_t)csink_suite_last_number(n, trial->work, target);
	return 0;
}

/* The number for the old side. c->n is 1. */
static int find_number(struct csink_suite *suite, struct csink_suite_case *c, struct trial trial)
{
	double target = suite->run_seconds, n = 1, work = 0, first = trial.cpu, own = trial.made;
	/* Of a process that takes long to start, the start differs by much. */
	double enough = fmax(target / 3, first / 5),
	       least = suite->harness->cheapest && !suite->is_counted ? suite->harness->cheapest(suite) : 0;
	int err = 0;

	for (int step = 0; step < MAX_STEPS && work < enough && n < CSINK_SUITE_MAX_N; step++) {
		n = floor(next_trial(n, first, work, enough, target));
		err = try_side(suite, c, CSINK_GATE_OLD, (uint64_t)n, &trial);
		if (err || c->state == CSINK_SUITE_FAILED)
			return err;
		/* The case itself has a number. */
		if (trial.made < n || trial.made <= own)
			return 0;
		work = trial.cpu - first;
		if (least && work > 0 && n > 100 && work / n < least)
			break;
	}
	if (work > 0 && work / n < least) {
		c->is_by_time = true;
		c->n = (uint64_t)(target * 1e9);
	} else if (work > 0) {
		c->n = (uint64_t)csink_suite_last_number(n - 1, work, target);
	}
	return 0;
}

int csink_suite_find_work(struct csink_suite *suite, struct csink_suite_case *c)
{
	const struct csink_suite_harness *harness = suite->harness;
	bool is_one = harness->one_run || (harness->takes_number && !harness->takes_number(suite));
	struct trial trial, old;
	int err;

	c->is_by_time = harness->by_time;
	c->n = harness->by_time ? (uint64_t)(suite->run_seconds * 1e9) : 1;
	c->screen_p = c->p = NAN;
	err = try_side(suite, c, CSINK_GATE_OLD, c->n, &trial);
	if (!err && c->state != CSINK_SUITE_FAILED && !is_one && !harness->by_time)
		err = isnan(trial.work) ? find_number(suite, c, trial) : find_number_reported(suite, c, &trial);
	c->seconds = 0;
	if (!err && c->state != CSINK_SUITE_FAILED)
		err = try_side(suite, c, CSINK_GATE_OLD, c->n, &old);
	if (!err && c->state != CSINK_SUITE_FAILED)
		err = try_side(suite, c, CSINK_GATE_NEW, c->n, &trial);
	if (err || c->state == CSINK_SUITE_FAILED)
		return err;
	if (!c->is_by_time && !harness->varies && trial.made != old.made)
		csink_suite_case_fail(c, CSINK_SUITE_UNEQUAL_WORK, old.made, trial.made);
	if (c->is_by_time)
		csink_gate_note(
			suite->series,
			"%s: their runs "
			"are divided by the iterations that it reports, and so is what a process costs to start",
			harness->by_time
				? "this harness takes no exact number of iterations of cases"
				: "this version of the harness takes no exact number of iterations of cheap cases");
	return 0;
}

/* Is it no sum over the iterations: memory at most, a rate, or what the command reports for something ("ns/op")? */
static bool is_of_one(const struct csink_gate_metric *metric)
{
	return !strcmp(metric->name, "max-rss") || metric->more_is_better ||
	       (metric->is_reported && strchr(metric->unit, '/'));
}

static void divide(struct csink_gate_data *data, struct csink_gate_run *run, double by)
{
	struct csink_gate_weights *weights = &run->weights;

	for (uint32_t m = 0; m < data->nr_metrics; m++) {
		if (!is_of_one(&data->metrics[m]))
			run->metrics[m] /= by;
	}
	for (uint32_t f = 0; f < weights->nr; f++) {
		weights->self[f] /= by;
		if (weights->total)
			weights->total[f] /= by;
	}
	for (uint32_t i = 0; i < weights->nr_parts; i++)
		weights->parts[i].weight /= by;
	weights->sum /= by;
}

/* Returns 0 or -EINVAL (error of the case). */
static int divide_by_reported(struct csink_suite *suite, struct csink_suite_case *c, const char *text)
{
	const struct csink_suite_harness *harness = suite->harness;
	char why[1024] = "";
	double made = harness->prints_number ? harness->count(c, text, NULL, why, sizeof(why))
					     : harness->count(c, NULL, text, why, sizeof(why));

	if (!(made > 0)) {
		csink_suite_case_fail(c, "a run reports no iterations%s%s", *why ? ": " : "", why);
		return -EINVAL;
	}
	divide(&c->data, &c->data.runs[c->data.nr_runs - 1], made);
	return 0;
}

int csink_suite_divide(struct csink_suite *suite, struct csink_suite_case *c)
{
	const struct csink_suite_harness *harness = suite->harness;
	CSINK_AUTO_FREE char *text = NULL;
	int err = 0;

	if (harness->holds && !c->data.runs[c->data.nr_runs - 1].weights.nr_samples) {
		csink_suite_case_fail(c,
				      "no sample of a run is below the benchmark's function: is the program stripped?");
		return -EINVAL;
	}
	text = csink_suite_take_report(suite);
	if (c->is_by_time || harness->varies)
		err = divide_by_reported(suite, c, text);
	if (!err && harness->figures)
		csink_suite_take_figures(suite, c, text);
	return err;
}
