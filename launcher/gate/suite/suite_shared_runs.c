/*
 * Runs with a profile of a process that runs several cases: pairs of them, and before these one run a side that shows
 * whether the functions of the cases have all of their work. See suite_shared.c.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/cleanup.h"
#include "include/internal/clock.h"
#include "launcher/gate/suite/harness.h"
#include "launcher/gate/suite/shared_impl.h"

#define LEAST_BELOW 0.7  /* of the CPU time that a case reports: what its function has of it at least */
#define LEAST_SAMPLES 10 /* of that CPU time */

static bool is_frame(void *c, int side, const char *function)
{
	(void)side;
	return !strcmp(((struct csink_suite_case *)c)->frame, function);
}

/* Keep the cases that are pending and shared, in their order. */
static void drop_others(struct csink_suite_case **cases, uint32_t *nr)
{
	uint32_t left = 0;

	for (uint32_t i = 0; i < *nr; i++) {
		if (cases[i]->state == CSINK_SUITE_PENDING && cases[i]->is_shared)
			cases[left++] = cases[i];
	}
	*nr = left;
}

/* Take what the process reports of a run that has ended well. Returns whether it is worth another try without the case
 * that ended it. */
static bool check_work(struct csink_suite *suite, int side, struct csink_suite_case *const *cases, uint32_t nr)
{
	if (csink_shared_left_early(suite, side, cases, nr))
		return true;
	csink_shared_fail_unmade(cases, nr, "a run reports no iterations");
	for (uint32_t i = 0; i < nr; i++) {
		if (cases[i]->state == CSINK_SUITE_PENDING && cases[i]->made != cases[i]->expected)
			csink_suite_case_fail(cases[i], "a run made %.0f iterations instead of %.0f", cases[i]->made,
					      cases[i]->expected);
	}
	return false;
}

/* A run of the cases, which takes from them those that fail. Returns 0, and *again is whether the run failed and is
 * worth another try without these; -EINTR, -ENOMEM or -ETIME. */
static int make_run(struct csink_suite *suite, int side, uint32_t number, struct csink_suite_case **cases, uint32_t *nr,
		    bool *again)
{
	struct csink_suite_shared *shared = &suite->shared;
	struct csink_gate_series *series = suite->series;
	int err = csink_shared_choose(suite, side, cases, *nr);

	shared->plan.argv[side] = shared->jobs[side].argv.all;
	shared->plan.scopes = shared->scopes;
	shared->plan.nr_scopes = *nr;
	for (uint32_t i = 0; i < *nr; i++)
		shared->scopes[i] = (struct csink_gate_scope){is_frame, cases[i], &cases[i]->data};
	*series->error = '\0';
	err = err ? err
		  : csink_suite_turn(suite, &shared->jobs[side], &shared->plan, series->data, side, number,
				     shared->seconds);
	if (err == -EINTR || err == -ENOMEM || err == -ETIME)
		return err;
	if (err) {
		const char *why = *series->error ? series->error : strerror(-err);

		*again = csink_shared_blame(suite, side, cases, *nr, why);
	} else {
		*again = check_work(suite, side, cases, *nr);
	}
	drop_others(cases, nr);
	return 0;
}

/* Leave as many runs in the data of each case. */
static void drop_runs(struct csink_suite_case *const *cases, uint32_t nr, uint32_t keep)
{
	for (uint32_t i = 0; i < nr; i++) {
		while (cases[i]->data.nr_runs > keep)
			csink_gate_run_drop(&cases[i]->data);
	}
}

/* Both runs of a pair, again without the cases that fail, while there are any. Returns as make_run. */
static int make_both(struct csink_suite *suite, uint32_t number, struct csink_suite_case **cases, uint32_t *nr)
{
	uint32_t keep = *nr ? cases[0]->data.nr_runs : 0;
	bool again = true;
	int err = 0;

	while (again && *nr && !err) {
		again = false;
		for (int turn = 0; turn < CSINK_GATE_NR_SIDES && *nr && !again && !err; turn++)
			err = make_run(suite, suite->shared.new_first ^ turn, number, cases, nr, &again);
		if (err || again)
			drop_runs(cases, *nr, keep);
	}
	return err;
}

int csink_suite_share_pair(struct csink_suite *suite, uint32_t number, bool *is_late)
{
	struct csink_suite_shared *shared = &suite->shared;
	struct csink_gate_series *series = suite->series;
	CSINK_AUTO_FREE struct csink_suite_case **cases = NULL;
	double left = csink_suite_left(suite), seconds;
	uint64_t start_ns = csink_monotonic_ns();
	int64_t found = csink_shared_gather(suite, &cases);
	uint32_t nr = (uint32_t)found;
	int err;

	*is_late = left < fmax(shared->pair_seconds, 2 * shared->seconds);
	if (found < 0 || *is_late)
		return found < 0 ? -ENOMEM : 0;
	shared->new_first = number & 1 ? !shared->new_first : csink_random_below(&series->random, 2);
	series->pin = shared->pin;
	csink_gate_pin_draw(&series->pin, &series->random);
	err = make_both(suite, number, cases, &nr);
	shared->pin = series->pin;
	seconds = (double)(csink_monotonic_ns() - start_ns) / 1e9;
	shared->pair_seconds = seconds;
	for (uint32_t i = 0; i < nr && !err; i++) {
		const struct csink_gate_data *data = &cases[i]->data;

		cases[i]->pair_seconds = seconds / nr;
		for (uint32_t k = 1; k <= CSINK_GATE_NR_SIDES; k++) {
			if (!data->runs[data->nr_runs - k].weights.nr_samples && cases[i]->state == CSINK_SUITE_PENDING)
				csink_suite_case_fail(
					cases[i],
					"a run has no sample below its function: a longer --run-time or a higher "
					"--frequency is needed, or --process=case");
		}
	}
	*is_late = err == -ETIME;
	return *is_late ? 0 : err;
}

enum fit { FITS, WORKS_ELSEWHERE, HAS_FEW_SAMPLES };

/* By the latest run: can the case be judged by the samples below its function? */
static enum fit fit_of(const struct csink_suite *suite, const struct csink_suite_case *c)
{
	const struct csink_gate_run *run = &c->data.runs[c->data.nr_runs - 1];
	bool is_time = c->data.nr_metrics && !strcmp(c->data.metrics[0].name, "cpu") && c->work > 0;
	double hz = strtod(suite->series->runner->frequency_text, NULL), samples = (double)run->weights.nr_samples;

	if (c->is_async)
		return WORKS_ELSEWHERE;
	/* Without a sample, nothing is known of the event. */
	if (c->work > 0 && hz > 0 && c->work * hz < LEAST_SAMPLES)
		return HAS_FEW_SAMPLES;
	/* A harness that holds to functions judges no more of a process of the case's own. */
	if (!samples || (is_time && !suite->harness->holds && run->weights.sum / 1e9 < LEAST_BELOW * c->work))
		return WORKS_ELSEWHERE;
	return samples < LEAST_BELOW * LEAST_SAMPLES ? HAS_FEW_SAMPLES : FITS;
}

static void note_own(struct csink_suite *suite, uint32_t nr, const char *one, const char *several, const char *where)
{
	if (nr)
		csink_gate_note(suite->series, "%u case%s %s: %s a process of its own", nr, nr > 1 ? several : one,
				where, nr > 1 ? "each has" : "it has");
}

/* Make a run of each side with a profile that is not judged, and give a process of their own to the cases that cannot
 * be judged by their functions. */
int csink_shared_check_functions(struct csink_suite *suite)
{
	struct csink_suite_shared *shared = &suite->shared;
	CSINK_AUTO_FREE struct csink_suite_case **cases = NULL;
	int64_t found = csink_shared_gather(suite, &cases);
	uint32_t nr = (uint32_t)found, nr_of[HAS_FEW_SAMPLES + 1] = {0};
	int err = found < 0 ? -ENOMEM : 0;

	shared->new_first = false;
	for (uint32_t i = 0; i < nr && !err; i++)
		csink_suite_begin_data(cases[i], shared->jobs);
	/* On both sides: what one of them has moved to a thread is no less work. */
	for (int side = 0; side < CSINK_GATE_NR_SIDES && !err; side++) {
		for (bool again = true; again && nr && !err;) {
			again = false;
			err = make_run(suite, side, 0, cases, &nr, &again);
		}
		for (uint32_t i = 0; i < nr && !err; i++) {
			enum fit fit = fit_of(suite, cases[i]);

			nr_of[fit]++;
			cases[i]->is_shared = fit == FITS;
			csink_suite_begin_data(cases[i], shared->jobs);
		}
		drop_others(cases, &nr);
	}
	note_own(suite, nr_of[WORKS_ELSEWHERE], " works", "s work",
		 "elsewhere than below the function that the harness calls (in threads, in other processes, "
		 "asynchronously), or that function cannot be seen");
	note_own(suite, nr_of[HAS_FEW_SAMPLES], " takes", "s take",
		 "too little time for a process of all cases (fewer than 10 samples)");
	if (err != -ETIME)
		return err;
	csink_shared_fail(cases, nr, CSINK_SUITE_NO_TIME_TO_TRY);
	return 0;
}
