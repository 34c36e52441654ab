/*
 * The runs of a suite and their verdicts. All cases are screened by a few pairs of runs each; the ones with any sign of
 * a slowdown are confirmed on fresh pairs, and judged by these alone. In each round every case has one pair, in an
 * order that is drawn anew: an end at any time leaves as many pairs of each, made over the same time.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "include/internal/clock.h"
#include "launcher/base/format.h"
#include "launcher/base/path.h"
#include "launcher/base/text.h"
#include "launcher/gate/suite/harness.h"
#include "launcher/session/find_program.h"
#include "launcher/symbols/symbols_kept.h"

#define TRY_PART 0.5 /* of the time: once it is used up, no further case is tried */

/* A run may take RUN_LIMIT seconds, and RUN_LIMIT_TIMES times as long as when its iterations were found. One that was
 * begun since it was expected to end within --max-time may take END_LIMIT seconds more than was expected. */
#define RUN_LIMIT 10
#define RUN_LIMIT_TIMES 20
#define END_LIMIT 1

#define MAX_NAMED 5 /* cases in a note */

static double elapsed(const struct csink_suite *suite)
{
	return (double)(csink_monotonic_ns() - suite->start_ns) / 1e9;
}

double csink_suite_left(const struct csink_suite *suite)
{
	return suite->max_time_ns ? (double)suite->max_time_ns / 1e9 - elapsed(suite) : INFINITY;
}

void csink_suite_show(const struct csink_suite *suite, const char *what, uint32_t done, uint32_t of)
{
	if (!suite->series->plan->progress)
		return;
	csink_text_print(stderr, "\r\033[Kgate: %s %u of %u, %.0f s", what, done, of, elapsed(suite));
	fflush(stderr);
}

/* ---- one case ---- */

static char *find_program(const struct csink_suite_job *job)
{
	static struct csink_program program;
	const char *name = job->argv.all[0];
	char *path = NULL;

	if (job->dir && *name != '/' && strchr(name, '/'))
		return asprintf(&path, "%s/%s", job->dir, name) < 0 ? NULL : path;
	csink_program_find(name, &program);
	return strdup(program.path);
}

/* The programs of both sides are one module. */
void csink_suite_begin_data(struct csink_suite_case *c, const struct csink_suite_job *jobs)
{
	csink_gate_data_free(&c->data);
	c->data.paired = true;
	for (int side = 0; side < CSINK_GATE_NR_SIDES; side++) {
		CSINK_AUTO_FREE char *path = find_program(&jobs[side]);

		if (path)
			c->data.functions.programs[side] = strdup(csink_base_name(path));
	}
}

int csink_suite_begin_jobs(struct csink_suite *suite, const struct csink_suite_job *jobs, struct csink_gate_plan *plan,
			   struct csink_gate_pin *pin)
{
	struct csink_gate_series *series = suite->series;
	int err;

	*plan = *series->plan;
	plan->keep = false;
	*pin = (struct csink_gate_pin){.how = plan->pin, .cpu = plan->cpu};
	err = csink_gate_pin_init(pin, !plan->counting, suite->error, sizeof(suite->error));
	for (int side = 0; side < CSINK_GATE_NR_SIDES && !err; side++) {
		CSINK_AUTO_FREE char *path = find_program(&jobs[side]);

		plan->argv[side] = jobs[side].argv.all;
		if (plan->move && path)
			err = csink_gate_placement_add_program(&series->placement, side, path);
	}
	return err;
}

static int begin_case(struct csink_suite *suite, struct csink_suite_case *c)
{
	int err = csink_suite_begin_jobs(suite, c->jobs, &c->plan, &c->pin);

	if (suite->harness->holds && !c->plan.counting) {
		c->scope = (struct csink_gate_scope){suite->harness->holds, c, &c->data};
		c->plan.scopes = &c->scope;
		c->plan.nr_scopes = 1;
	}
	csink_suite_begin_data(c, c->jobs);
	return err;
}

int csink_suite_turn(struct csink_suite *suite, const struct csink_suite_job *job, const struct csink_gate_plan *plan,
		     struct csink_gate_data *data, int side, uint32_t number, double seconds)
{
	struct csink_gate_series *series = suite->series;
	const struct csink_gate_plan *own = series->plan;
	struct csink_gate_data *own_data = series->data;
	double limit = RUN_LIMIT + RUN_LIMIT_TIMES * seconds, start = elapsed(suite);
	double last = fmax(csink_suite_left(suite), seconds) + END_LIMIT;
	int entered = csink_suite_enter(job), err;

	if (entered < 0)
		return csink_why(entered, series->error, sizeof(series->error), "%s: %s", job->dir, strerror(-entered));
	series->plan = plan;
	series->data = data;
	*series->error = '\0';
	series->runner->output = suite->harness->prints_number && *suite->report ? suite->report : NULL;
	csink_suite_watch(suite, fmin(limit, last));
	err = csink_gate_turn(series, (enum csink_gate_side)side, (int32_t)number);
	csink_suite_watch(suite, 0);
	series->plan = own;
	series->data = own_data;
	csink_suite_leave(job, entered);
	if (err && err != -EINTR && err != -ENOMEM && last < limit && elapsed(suite) - start >= last)
		return -ETIME;
	return err;
}

/* Returns 0, also where the case fails; -EINTR or -ENOMEM; -ETIME if the run was killed at the end of --max-time. */
static int make_run(struct csink_suite *suite, struct csink_suite_case *c, int side, uint32_t number)
{
	struct csink_gate_series *series = suite->series;
	int err;

	c->plan.prepare = c->jobs[side].prepare ?: series->plan->prepare;
	err = csink_suite_turn(suite, &c->jobs[side], &c->plan, &c->data, side, number, c->seconds);
	if (err == -EINTR || err == -ENOMEM || err == -ETIME)
		return err;
	if (err)
		csink_suite_case_fail(c, "%s", *series->error ? series->error : strerror(-err));
	else
		csink_suite_divide(suite, c);
	return 0;
}

/* Both runs or none. @is_late  the pair would not end, or has not ended, within --max-time. */
static int make_pair(struct csink_suite *suite, struct csink_suite_case *c, uint32_t number, bool *is_late)
{
	struct csink_gate_series *series = suite->series;
	double start = elapsed(suite);
	int err;

	*is_late = csink_suite_left(suite) < fmax(c->pair_seconds, 2 * c->seconds);
	if (*is_late)
		return 0;
	c->new_first = number & 1 ? !c->new_first : csink_random_below(&series->random, 2);
	series->pin = c->pin;
	csink_gate_pin_draw(&series->pin, &series->random);
	err = make_run(suite, c, c->new_first, number);
	if (!err && c->state != CSINK_SUITE_FAILED) {
		err = make_run(suite, c, !c->new_first, number);
		if (err == -ETIME)
			csink_gate_run_drop(&c->data);
	}
	c->pin = series->pin;
	c->pair_seconds = elapsed(suite) - start;
	*is_late = err == -ETIME;
	return *is_late ? 0 : err;
}

/* ---- rounds ---- */

static void shuffle(struct csink_random *random, uint32_t *order, uint32_t nr)
{
	for (uint32_t i = nr; i > 1; i--) {
		uint32_t other = csink_random_below(random, i), was = order[i - 1];

		order[i - 1] = order[other];
		order[other] = was;
	}
}

static uint32_t count_pending(const struct csink_suite *suite)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < suite->nr; i++)
		nr += suite->cases[i].state == CSINK_SUITE_PENDING;
	return nr;
}

/* A pair of each case that is pending, and has the time for it. @stage  of its pairs: 0 to screen, 1 to confirm.
 * @nr_late  cases without a pair for lack of time. */
static int make_round(struct csink_suite *suite, uint32_t *order, uint32_t round, int stage, uint32_t *nr_late)
{
	bool is_late = false, shared_late = false;
	uint32_t shared_made = 0;
	int err = 0;

	*nr_late = 0;
	shuffle(&suite->series->random, order, suite->nr);
	for (uint32_t i = 0; i < suite->nr && !err; i++) {
		struct csink_suite_case *c = &suite->cases[order[i]];

		if (c->state != CSINK_SUITE_PENDING)
			continue;
		if (!c->is_shared)
			err = make_pair(suite, c, round, &is_late);
		else if (!shared_made++)
			err = csink_suite_share_pair(suite, round, &shared_late);
		if (c->is_shared)
			is_late = shared_late;
		*nr_late += is_late;
		c->pairs[stage] += c->state == CSINK_SUITE_PENDING && !is_late;
	}
	return err;
}

static void note_late(struct csink_suite *suite, uint32_t round, uint32_t nr_rounds, int stage)
{
	csink_gate_note(suite->series,
			"the time (--max-time) was enough for %u of %u pairs of each case that was to be %s", round,
			nr_rounds, stage ? "confirmed" : "screened");
}

/* What a pair of each pending case will likely take. */
static double round_seconds(const struct csink_suite *suite)
{
	double seconds = 0;

	for (uint32_t i = 0; i < suite->nr; i++) {
		const struct csink_suite_case *c = &suite->cases[i];

		if (c->state == CSINK_SUITE_PENDING)
			seconds += c->pair_seconds > 0 ? c->pair_seconds : 2 * c->seconds;
	}
	return seconds;
}

/* Rounds of a stage, from the number *made on. No round is begun that would likely end after `until` seconds, but the
 * stage's first one. Returns 0 with the number of whole ones in *made, or -errno. */
static int make_rounds(struct csink_suite *suite, uint32_t *made, uint32_t nr_rounds, double until, int stage)
{
	static const char *const words[] = {"screening, round", "confirming, round"};
	CSINK_AUTO_FREE uint32_t *order = calloc(suite->nr + 1, sizeof(*order));
	uint32_t nr_late = 0;
	int err = order ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < suite->nr && !err; i++)
		order[i] = i;
	while (!err && *made < nr_rounds && count_pending(suite)) {
		if (*made && elapsed(suite) + round_seconds(suite) > until)
			break;
		csink_suite_show(suite, words[stage], *made + 1, nr_rounds);
		err = make_round(suite, order, *made, stage, &nr_late);
		if (nr_late)
			break;
		(*made)++;
	}
	return err;
}

/* ---- all ---- */

static int screen(struct csink_suite *suite)
{
	double until = elapsed(suite) + CSINK_SUITE_SCREEN_PART * csink_suite_left(suite);
	uint32_t made = 0, half = (suite->screen + 1) / 2;
	int err = make_rounds(suite, &made, half, until, 0);

	if (!err && made == half)
		err = csink_suite_screen_pending(suite, CSINK_SUITE_HALFWAY_P);
	if (!err && made == half)
		err = make_rounds(suite, &made, suite->screen, until, 0);
	if (!err && made < suite->screen && count_pending(suite))
		note_late(suite, made, suite->screen, 0);
	err = err ? err : csink_suite_screen_pending(suite, CSINK_SUITE_SCREEN_P);
	for (uint32_t i = 0; i < suite->nr && !err; i++) {
		/* What is confirmed was not chosen for the runs that judge it. */
		struct csink_suite_case *c = &suite->cases[i];

		c->screening.data = c->data;
		c->data = (struct csink_gate_data){0};
		/* A look before it failed has not seen all runs. */
		c->screening.is_judged &= c->state != CSINK_SUITE_FAILED;
		if (c->state == CSINK_SUITE_PENDING)
			csink_suite_begin_data(c, c->is_shared ? suite->shared.jobs : c->jobs);
	}
	return err;
}

/* Fresh pairs of the cases that are pending: --confirm of them, and then as many as it takes, while there is time. */
static int confirm(struct csink_suite *suite)
{
	double start = elapsed(suite), end = start + csink_suite_left(suite), fraction, more;
	uint32_t made = 0, next = suite->confirm;
	int err = 0;

	csink_suite_ask_pending(suite);
	suite->shared.plan.keep = suite->series->plan->keep;
	for (uint32_t i = 0; i < suite->nr; i++)
		suite->cases[i].plan.keep = suite->series->plan->keep;
	while (!err && count_pending(suite)) {
		err = make_rounds(suite, &made, next, end, 1);
		if (err)
			break;
		if (made < suite->confirm && count_pending(suite))
			note_late(suite, made, suite->confirm, 1);
		more = made < next ? 0 : csink_suite_left(suite) / fmax(round_seconds(suite), 1e-6);
		more = fmin(more, CSINK_GATE_MAX_RUNS - (double)made);
		fraction = isfinite(end) ? (elapsed(suite) - start) / (end - start) : 0;
		fraction = more < 1 ? 1 : fmax(fraction, (double)made / CSINK_GATE_MAX_RUNS);
		err = csink_suite_look(suite, fraction, more);
		next = csink_gate_looks_next(made);
	}
	return err;
}

static int find_all_work(struct csink_suite *suite)
{
	double most = elapsed(suite) + TRY_PART * csink_suite_left(suite);
	int err = suite->is_counted ? 0 : csink_suite_share(suite);

	for (uint32_t i = 0; i < suite->nr && !err; i++) {
		struct csink_suite_case *c = &suite->cases[i];

		if (c->is_shared || c->state != CSINK_SUITE_PENDING)
			continue;
		csink_suite_show(suite, "trying case", i + 1, suite->nr);
		if (i && elapsed(suite) > most)
			csink_suite_case_fail(c, CSINK_SUITE_NO_TIME_TO_TRY);
		else
			err = csink_suite_find_work(suite, c);
		if (!err && c->state == CSINK_SUITE_PENDING)
			err = begin_case(suite, c);
	}
	return err;
}

/* Name the cases that no run was judged of, since there was no time. */
static void note_not_run(struct csink_suite *suite)
{
	char names[1024] = "";
	uint32_t nr = 0;

	for (uint32_t i = 0; i < suite->nr; i++) {
		const struct csink_suite_case *c = &suite->cases[i];

		if (c->pairs[0] + c->pairs[1] ||
		    (c->state == CSINK_SUITE_FAILED && (!c->error || strcmp(c->error, CSINK_SUITE_NO_TIME_TO_TRY))))
			continue;
		if (nr++ < MAX_NAMED)
			csink_append(names, sizeof(names), "%s%.150s", nr > 1 ? ", " : "", c->name);
	}
	if (nr)
		csink_gate_note(suite->series, "not run, since no time was left (--max-time): %u of %u cases: %s%s", nr,
				suite->nr, names, nr > MAX_NAMED ? ", ..." : "");
}

/* Name the cases with questions that no look has settled, for one of the reasons. */
static void note_open(struct csink_suite *suite, enum csink_gate_decision why, const char *reason)
{
	char names[1024] = "";
	uint32_t nr = 0;

	for (uint32_t i = 0; i < suite->nr; i++) {
		const struct csink_suite_case *c = &suite->cases[i];

		if (c->state != CSINK_SUITE_JUDGED || c->decision != why || c->verdicts.counts[CSINK_GATE_REGRESSED])
			continue;
		if (nr++ < MAX_NAMED)
			csink_append(names, sizeof(names), "%s%.150s", nr > 1 ? ", " : "", c->name);
	}
	if (nr)
		csink_gate_note(suite->series, "of %u of %u cases, %s: %s%s", nr, suite->nr, reason, names,
				nr > MAX_NAMED ? ", ..." : "");
}

static void note_failed_beside(struct csink_suite *suite)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < suite->nr; i++)
		nr += suite->cases[i].failed_beside;
	if (nr)
		csink_gate_note(
			suite->series,
			"%u case%s failed in a process with others: a case must not depend on those that ran before it "
			"(--process=case has a process for each)",
			nr, nr > 1 ? "s" : "");
}

static int run_all(struct csink_suite *suite)
{
	int err = find_all_work(suite);

	if (!err && suite->is_counted) {
		err = csink_suite_count(suite);
	} else {
		if (!err && suite->screen)
			err = screen(suite);
		if (!err)
			err = confirm(suite);
	}
	if (!err) {
		note_failed_beside(suite);
		csink_suite_note_figures(suite);
		note_not_run(suite);
		note_open(suite, CSINK_GATE_NO_TIME,
			  "the time (--max-time) was spent before every question was settled");
		note_open(suite, CSINK_GATE_HOPELESS,
			  "more pairs would most likely not have settled an open question in the time that was left "
			  "(--max-time)");
	}
	return err;
}

int csink_suite_run(struct csink_suite *suite)
{
	struct csink_gate_series *series = suite->series;
	int err = csink_suite_watchdog_start(suite);

	if (err)
		return err;
	csink_random_init(&series->random, series->rules->seed);
	csink_symbols_keep_begin();
	err = run_all(suite);
	if (!err)
		err = csink_gate_series_join(series);
	csink_symbols_keep_end();
	csink_suite_watchdog_stop(suite);
	if (series->plan->progress)
		fputs("\r\033[K", stderr);
	return err;
}
