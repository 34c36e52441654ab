/*
 * One process for all cases of a side, where starting one costs more than a case: an interpreter that first loads a
 * test framework. The harness has each case make an exact number of iterations below a function of its own (choose_all
 * of harness.h), and a run's samples are divided among the cases by these functions. A pair of runs of all cases is a
 * pair of each, judged as other pairs are.
 *
 * The order of the cases is drawn anew for each pair, and is the same on both sides.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "include/internal/clock.h"
#include "launcher/gate/suite/harness.h"
#include "launcher/gate/suite/shared_impl.h"

#define MAX_STEPS 8

/* ---- the cases that a process runs ---- */

/* In random order. Returns their number, or -ENOMEM. */
int64_t csink_shared_gather(struct csink_suite *suite, struct csink_suite_case ***out)
{
	struct csink_suite_case **all = calloc(suite->nr + 1, sizeof(struct csink_suite_case *));
	uint32_t nr = 0;

	for (uint32_t i = 0; all && i < suite->nr; i++) {
		struct csink_suite_case *c = &suite->cases[i];
		uint32_t other;

		if (!c->is_shared || c->state != CSINK_SUITE_PENDING)
			continue;
		other = csink_random_below(&suite->series->random, nr + 1);
		all[nr++] = all[other];
		all[other] = c;
	}
	*out = all;
	return all ? (int64_t)nr : -ENOMEM;
}

int csink_shared_choose(struct csink_suite *suite, int side, struct csink_suite_case *const *cases, uint32_t nr)
{
	static const struct csink_suite_job none;
	struct csink_suite_job *job = &suite->shared.jobs[side];
	int err;

	if (*suite->report)
		unlink(suite->report);
	csink_suite_begin_job(suite, side, &none, job);
	err = suite->harness->choose_all(suite, side, cases, nr, job);
	return err ? err : csink_suite_check_job(job);
}

void csink_shared_fail(struct csink_suite_case *const *cases, uint32_t nr, const char *why)
{
	for (uint32_t i = 0; i < nr; i++) {
		if (cases[i]->state == CSINK_SUITE_PENDING)
			csink_suite_case_fail(cases[i], "%s", why);
	}
}

void csink_shared_fail_unmade(struct csink_suite_case *const *cases, uint32_t nr, const char *why)
{
	for (uint32_t i = 0; i < nr; i++) {
		if (cases[i]->state == CSINK_SUITE_PENDING && !cases[i]->made)
			csink_suite_case_fail(cases[i], "%s", why);
	}
}

/* ---- what it reports ---- */

static struct csink_suite_case *case_of(struct csink_suite *suite, double index)
{
	struct csink_suite_case *c = index >= 0 && index < suite->nr ? &suite->cases[(uint32_t)index] : NULL;

	return c && c->is_shared && c->state == CSINK_SUITE_PENDING ? c : NULL;
}

/* Take a report. Returns the case that has begun and not ended; NULL: none. */
struct csink_suite_case *csink_shared_take(struct csink_suite *suite, int side, struct csink_suite_case *const *cases,
					   uint32_t nr)
{
	CSINK_AUTO_FREE char *report = csink_suite_take_report(suite);
	struct csink_suite_case *begun = NULL;
	const char *at = report;
	struct csink_suite_reported line;

	for (uint32_t i = 0; i < nr; i++)
		cases[i]->made = cases[i]->work = 0;
	while (csink_suite_next_reported(&at, &line)) {
		struct csink_suite_case *c = case_of(suite, line.index);

		if (c && *line.error) {
			csink_suite_case_fail(c, "%s: %s", csink_suite_sides[side], line.error);
			c->failed_beside = true;
		} else if (c && line.made > 0) {
			c->made += line.made;
			c->work += line.seconds;
			c->is_async |= line.is_async;
		}
		if (line.begins)
			begun = c;
		else if (line.ends)
			begun = NULL;
	}
	return begun;
}

/* What fails a process when every case in it has ended is no case's own: a run of any of them would fail, too. */
bool csink_shared_blame(struct csink_suite *suite, int side, struct csink_suite_case *const *cases, uint32_t nr,
			const char *why)
{
	struct csink_suite_case *begun = csink_shared_take(suite, side, cases, nr);
	uint32_t nr_failed = 0;

	if (begun && begun->state == CSINK_SUITE_PENDING)
		csink_suite_case_fail(begun, "%s: %s", csink_suite_sides[side], why);
	for (uint32_t i = 0; i < nr; i++)
		nr_failed += cases[i]->state == CSINK_SUITE_FAILED;
	if (!nr_failed)
		csink_shared_fail(cases, nr, why);
	return nr_failed;
}

bool csink_shared_left_early(struct csink_suite *suite, int side, struct csink_suite_case *const *cases, uint32_t nr)
{
	struct csink_suite_case *begun = csink_shared_take(suite, side, cases, nr);

	if (!begun || begun->state != CSINK_SUITE_PENDING || begun->made)
		return false;
	csink_suite_case_fail(begun, "%s: its process ended in it, with status 0", csink_suite_sides[side]);
	return true;
}

/* ---- how many iterations ---- */

/* Run a side once without a profile. cpu: of the process. Returns 0, also where cases fail, and *again is whether the
 * others have to be tried again; -EINTR or -ENOMEM. */
static int try_once(struct csink_suite *suite, int side, double *cpu, bool *again)
{
	struct csink_suite_case **cases;
	int64_t nr = csink_shared_gather(suite, &cases);
	struct csink_suite_answer answer = {0};
	char why[1024] = "";
	int err = nr < 0 ? -ENOMEM : nr ? csink_shared_choose(suite, side, cases, (uint32_t)nr) : 0;

	*again = false;
	if (!err && nr && csink_suite_left(suite) <= suite->shared.seconds) {
		csink_shared_fail(cases, (uint32_t)nr, CSINK_SUITE_NO_TIME_TO_TRY);
		nr = 0;
	}
	if (!err && nr)
		err = csink_suite_ask(suite, &suite->shared.jobs[side],
				      csink_suite_trial_limit(suite) * (1 + (double)nr / 8), &answer);
	if (!err && nr) {
		*cpu = answer.cpu_seconds;
		if (answer.timed_out && !answer.is_endless && answer.is_late) {
			csink_shared_fail(cases, (uint32_t)nr, CSINK_SUITE_NO_TIME_TO_TRY);
		} else if (csink_suite_answer_error(&answer, why, sizeof(why))) {
			*again = csink_shared_blame(suite, side, cases, (uint32_t)nr, why);
		} else {
			suite->shared.seconds = fmax(suite->shared.seconds, answer.seconds);
			*again = csink_shared_left_early(suite, side, cases, (uint32_t)nr);
			if (!*again)
				csink_shared_fail_unmade(cases, (uint32_t)nr,
							 "ran no case of that name, and ended with status 0");
		}
		csink_suite_answer_free(&answer);
	}
	if (err && err != -EINTR && err != -ENOMEM) {
		snprintf(why, sizeof(why), "%s cannot be run: %.900s", csink_suite_sides[side],
			 *suite->error ? suite->error : strerror(-err));
		csink_shared_fail(cases, (uint32_t)nr, why);
		err = 0;
	}
	free(cases);
	return err;
}

/* The same until every case that is left has run: each time there are fewer. */
static int try_side(struct csink_suite *suite, int side, double *cpu)
{
	bool again;
	int err;

	do {
		err = try_once(suite, side, cpu, &again);
	} while (!err && again);
	return err;
}

#define EACH_SHARED(suite, c)                                                                                          \
	for (struct csink_suite_case *c = (suite)->cases; c < (suite)->cases + (suite)->nr; c++)                       \
		if (c->is_shared && c->state == CSINK_SUITE_PENDING)

static double sum_work(const struct csink_suite *suite)
{
	double sum = 0;

	EACH_SHARED(suite, c)
	sum += c->work;
	return sum;
}

static uint32_t count(const struct csink_suite *suite)
{
	uint32_t nr = 0;

	EACH_SHARED(suite, c)
	nr++;
	return nr;
}

/* Cases go back to a process each, and those that failed are tried there. */
static void give_back(struct csink_suite *suite)
{
	for (uint32_t i = 0; i < suite->nr; i++) {
		struct csink_suite_case *c = &suite->cases[i];

		if (c->is_shared && c->state == CSINK_SUITE_FAILED) {
			c->state = CSINK_SUITE_PENDING;
			free(c->error);
			c->error = NULL;
			c->failed_beside = false;
		}
		c->is_shared = false;
	}
	suite->shared.seconds = 0;
}

/* The number for each case, on the old side. A trial with one iteration each was made. */
static int find_numbers(struct csink_suite *suite)
{
	double target = fmax(suite->run_seconds,
			     suite->shared.start_seconds / CSINK_SUITE_PART_OF_START / fmax(1, count(suite)));
	bool is_open = true;
	double cpu;
	int err = 0;

	for (int step = 0; step < MAX_STEPS && is_open && !err; step++) {
		/* What each case that is asked for more has made so far; 0: the others. */
		CSINK_AUTO_FREE double *before = calloc(suite->nr + 1, sizeof(*before));

		is_open = false;
		if (!before)
			return -ENOMEM;
		EACH_SHARED(suite, c)
		{
			if (c->work >= target / 3 || (double)c->n >= CSINK_SUITE_MAX_N)
				continue;
			before[c - suite->cases] = c->made;
			c->n = (uint64_t)csink_suite_next_number((double)c->n, c->work, target);
			is_open = true;
		}
		err = is_open ? try_side(suite, CSINK_GATE_OLD, &cpu) : 0;
		EACH_SHARED(suite, c)
		{
			/* More were asked for, and as many made: the case has a number of its own. */
			if (c->made <= before[c - suite->cases] && c->work < target / 3) {
				c->n = 1;
				c->work = target;
			}
		}
	}
	EACH_SHARED(suite, c)
	{
		if (c->n > 1 && c->work > 0)
			c->n = (uint64_t)csink_suite_last_number((double)c->n, c->work, target);
	}
	return err;
}

/* Both sides do the same work. Returns 0, -EINTR or -ENOMEM. */
static int compare_sides(struct csink_suite *suite)
{
	double cpu;
	int err = try_side(suite, CSINK_GATE_OLD, &cpu);

	EACH_SHARED(suite, c)
	c->expected = c->made;
	err = err ? err : try_side(suite, CSINK_GATE_NEW, &cpu);
	EACH_SHARED(suite, c)
	{
		if (!err && c->made != c->expected)
			csink_suite_case_fail(c, CSINK_SUITE_UNEQUAL_WORK, c->expected, c->made);
	}
	return err;
}

/* ---- whether to share ---- */

static int share(struct csink_suite *suite)
{
	struct csink_suite_shared *shared = &suite->shared;
	uint32_t nr;
	int err = find_numbers(suite);

	shared->seconds = 0;
	err = err ? err : compare_sides(suite);
	nr = count(suite);
	shared->scopes = calloc((size_t)nr + 1, sizeof(*shared->scopes));
	if (err || !nr || !shared->scopes)
		return shared->scopes ? err : -ENOMEM;
	err = csink_suite_begin_jobs(suite, shared->jobs, &shared->plan, &shared->pin);
	err = err ? err : csink_shared_check_functions(suite);
	nr = count(suite);
	EACH_SHARED(suite, c)
	c->seconds = shared->seconds / nr;
	if (nr)
		csink_gate_note(
			suite->series,
			"one process runs %u cases (to start it takes %.0f ms of CPU time): what is judged of a case "
			"is the CPU time of the samples below its function; --process=case has a process for each",
			nr, shared->start_seconds * 1e3);
	return err;
}

int csink_suite_share(struct csink_suite *suite)
{
	struct csink_suite_shared *shared = &suite->shared;
	bool may = suite->harness->choose_all && suite->process != CSINK_SUITE_PROCESS_CASE;
	double cpu = 0;
	int err;

	if (suite->process == CSINK_SUITE_PROCESS_SUITE && !may)
		return CSINK_SUITE_WHY(suite, -EINVAL,
				       "option --process: this harness takes a process for each case (--suite=%s)",
				       suite->harness->name);
	if (!may || (suite->process == CSINK_SUITE_PROCESS_AUTO && suite->nr < 2))
		return 0;
	for (uint32_t i = 0; i < suite->nr; i++) {
		struct csink_suite_case *c = &suite->cases[i];

		c->is_shared = c->state == CSINK_SUITE_PENDING;
		c->n = 1;
		c->screen_p = c->p = NAN;
	}
	err = try_side(suite, CSINK_GATE_OLD, &cpu);
	if (err)
		return err;
	shared->start_seconds = fmax(0, cpu - sum_work(suite));
	if (suite->process == CSINK_SUITE_PROCESS_AUTO &&
	    (!count(suite) || shared->start_seconds < fmax(suite->run_seconds, sum_work(suite) / count(suite)))) {
		give_back(suite);
		return 0;
	}
	return share(suite);
}

void csink_suite_share_free(struct csink_suite *suite)
{
	for (int side = 0; side < CSINK_GATE_NR_SIDES; side++)
		csink_suite_job_free(&suite->shared.jobs[side]);
	free(suite->shared.scopes);
}
