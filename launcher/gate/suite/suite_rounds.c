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
#include "launcher/base/path.h"
#include "launcher/base/search.h"
#include "launcher/base/text.h"
#include "launcher/gate/suite/harness.h"
#include "launcher/session/find_program.h"
#include "launcher/symbols/symbols_kept.h"

#define SCREEN_P 0.1    /* by Simes, of all that is asked of a case: 1 of 10 cases that are equal goes on */
#define SCREEN_PART 0.6 /* of the time: what screening may use */

/* A run may take RUN_LIMIT seconds, and RUN_LIMIT_TIMES times as long as when its iterations were found. */
#define RUN_LIMIT 10
#define RUN_LIMIT_TIMES 20

static double elapsed(const struct csink_suite *suite)
{
	return (double)(csink_monotonic_ns() - suite->start_ns) / 1e9;
}

static void show(const struct csink_suite *suite, const char *what, uint32_t done, uint32_t of)
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

/* Fresh data. The programs of both sides are one module. */
static int begin_data(struct csink_suite_case *c)
{
	csink_gate_data_free(&c->data);
	c->data.paired = true;
	for (int side = 0; side < CSINK_GATE_NR_SIDES; side++) {
		CSINK_AUTO_FREE char *path = find_program(&c->jobs[side]);

		if (path)
			c->data.functions.programs[side] = strdup(csink_base_name(path));
	}
	return 0;
}

static int begin_case(struct csink_suite *suite, struct csink_suite_case *c)
{
	struct csink_gate_series *series = suite->series;
	const struct csink_gate_plan *plan = series->plan;
	int err = 0;

	c->plan = *plan;
	c->pin = (struct csink_gate_pin){.how = plan->pin, .cpu = plan->cpu};
	err = csink_gate_pin_init(&c->pin, true, suite->error, sizeof(suite->error));
	for (int side = 0; side < CSINK_GATE_NR_SIDES && !err; side++) {
		CSINK_AUTO_FREE char *path = find_program(&c->jobs[side]);

		c->plan.argv[side] = c->jobs[side].argv.all;
		if (plan->move && path)
			err = csink_gate_placement_add_program(&series->placement, side, path);
	}
	return err ? err : begin_data(c);
}

/* Returns 0, also where the case fails; -EINTR or -ENOMEM. */
static int make_run(struct csink_suite *suite, struct csink_suite_case *c, int side, uint32_t number)
{
	struct csink_gate_series *series = suite->series;
	const struct csink_gate_plan *plan = series->plan;
	struct csink_gate_data *data = series->data;
	int entered = csink_suite_enter(&c->jobs[side]), err;

	if (entered < 0) {
		csink_suite_case_fail(c, "%s: %s", c->jobs[side].dir, strerror(-entered));
		return 0;
	}
	series->plan = &c->plan;
	series->data = &c->data;
	*series->error = '\0';
	csink_suite_watch(suite, RUN_LIMIT + RUN_LIMIT_TIMES * c->seconds);
	err = csink_gate_turn(series, (enum csink_gate_side)side, (int32_t)number);
	csink_suite_watch(suite, 0);
	series->plan = plan;
	series->data = data;
	csink_suite_leave(&c->jobs[side], entered);
	if (err == -EINTR || err == -ENOMEM)
		return err;
	if (err)
		csink_suite_case_fail(c, "%s", *series->error ? series->error : strerror(-err));
	else
		csink_suite_divide(suite, c);
	return 0;
}

static int make_pair(struct csink_suite *suite, struct csink_suite_case *c, uint32_t number)
{
	struct csink_gate_series *series = suite->series;
	int err;

	c->new_first = number & 1 ? !c->new_first : csink_random_below(&series->random, 2);
	series->pin = c->pin;
	csink_gate_pin_draw(&series->pin, &series->random);
	err = make_run(suite, c, c->new_first, number);
	if (!err && c->state != CSINK_SUITE_FAILED)
		err = make_run(suite, c, !c->new_first, number);
	c->pin = series->pin;
	return err;
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

/* A pair of each case that is pending. @stage  of its pairs: 0 to screen, 1 to confirm. */
static int make_round(struct csink_suite *suite, uint32_t *order, uint32_t round, int stage)
{
	int err = 0;

	shuffle(&suite->series->random, order, suite->nr);
	for (uint32_t i = 0; i < suite->nr && !err; i++) {
		struct csink_suite_case *c = &suite->cases[order[i]];

		if (c->state != CSINK_SUITE_PENDING)
			continue;
		err = make_pair(suite, c, round);
		c->pairs[stage] += c->state == CSINK_SUITE_PENDING;
	}
	return err;
}

/* No round is begun that would likely end after `until` seconds. The first one is made. */
static int make_rounds(struct csink_suite *suite, uint32_t nr_rounds, double until, int stage)
{
	static const char *const words[] = {"screening, round", "confirming, round"};
	CSINK_AUTO_FREE uint32_t *order = calloc(suite->nr + 1, sizeof(*order));
	double start = elapsed(suite);
	int err = order ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < suite->nr && !err; i++)
		order[i] = i;
	for (uint32_t round = 0; round < nr_rounds && !err && count_pending(suite); round++) {
		double now = elapsed(suite);

		if (round && now + (now - start) / round > until) {
			csink_gate_note(
				suite->series,
				"the time (--max-time) was enough for %u of %u pairs of each case that was to be "
				"%s",
				round, nr_rounds, stage ? "confirmed" : "screened");
			break;
		}
		show(suite, words[stage], round + 1, nr_rounds);
		err = make_round(suite, order, round, stage);
	}
	return err;
}

/* ---- verdicts ---- */

/* Of all that was asked of a case, whether it got slower. */
static int screen_case(struct csink_suite *suite, struct csink_suite_case *c)
{
	struct csink_gate_verdicts verdicts;
	CSINK_AUTO_FREE double *p = NULL;
	int err = csink_gate_judge(&c->data, suite->series->rules, 0, &verdicts);

	if (err == -ENODATA) {
		c->state = CSINK_SUITE_UNCONFIRMED;
		return 0;
	}
	if (err)
		return err;
	p = calloc(verdicts.nr_rows + 1, sizeof(*p));
	for (uint32_t i = 0; p && i < verdicts.nr_rows; i++)
		p[i] = verdicts.rows[i].is_turned ? verdicts.rows[i].p_less : verdicts.rows[i].p_greater;
	c->screen_p = p ? csink_simes(p, verdicts.nr_rows) : NAN;
	/* Too few pairs to show anything exclude nothing. */
	if (c->screen_p > SCREEN_P && csink_smallest_p(true, c->pairs[0], 0) * verdicts.nr_rows <= SCREEN_P)
		c->state = CSINK_SUITE_QUIET;
	csink_gate_verdicts_free(&verdicts);
	return p && !isnan(c->screen_p) ? 0 : -ENOMEM;
}

static int screen(struct csink_suite *suite)
{
	double most = (double)suite->max_time_ns / 1e9 * SCREEN_PART;
	int err = make_rounds(suite, suite->screen, most, 0);

	for (uint32_t i = 0; i < suite->nr && !err; i++) {
		struct csink_suite_case *c = &suite->cases[i];

		if (c->state != CSINK_SUITE_PENDING)
			continue;
		err = screen_case(suite, c);
		/* What is confirmed was not chosen for the runs that judge it. */
		if (!err && c->state == CSINK_SUITE_PENDING)
			err = begin_data(c);
	}
	return err;
}

/* Of the rows, as they are adjusted within their families: figures of the whole, and functions. */
static double p_of_case(const struct csink_gate_verdicts *verdicts)
{
	double p = 1;

	for (uint32_t i = 0; i < verdicts->nr_rows; i++) {
		const struct csink_gate_row *row = &verdicts->rows[i];

		if (row->is_turned ? row->ratio < 1 : row->ratio > 1)
			p = fmin(p, 2 * row->q);
	}
	return p;
}

struct ranked {
	double p;
	uint32_t index;
};

static int compare_ranked(const void *a, const void *b)
{
	const struct ranked *left = a, *right = b;

	return CSINK_COMPARE(left->p, right->p) ?: CSINK_COMPARE(left->index, right->index);
}

int csink_suite_levels(const double *p, uint32_t n, double alpha, double *levels)
{
	CSINK_AUTO_FREE struct ranked *ranked = calloc(n + 1, sizeof(*ranked));
	bool goes_on = true;
	double level = alpha;

	if (!ranked)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		ranked[i] = (struct ranked){p[i], i};
	qsort(ranked, n, sizeof(*ranked), compare_ranked);
	for (uint32_t i = 0; i < n; i++) {
		/* From the first one that is not shown on, none is. */
		level = goes_on ? alpha / (n - i) : level;
		goes_on &= ranked[i].p <= level;
		levels[ranked[i].index] = level;
	}
	return 0;
}

/* Judge a case at a level of its own. Half of it is for figures of the whole, half for functions. */
static int judge_case(struct csink_suite *suite, struct csink_suite_case *c, double level)
{
	int err;

	csink_gate_verdicts_free(&c->verdicts);
	err = csink_gate_judge(&c->data, suite->series->rules, level / 2, &c->verdicts);
	if (err == -ENODATA) {
		c->state = CSINK_SUITE_UNCONFIRMED;
		return 0;
	}
	return err;
}

static int judge_all(struct csink_suite *suite)
{
	double alpha = suite->series->rules->alpha;
	CSINK_AUTO_FREE double *p = calloc(suite->nr + 1, sizeof(*p)), *levels = calloc(suite->nr + 1, sizeof(*levels));
	uint32_t nr = 0;
	int err = p && levels ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < suite->nr && !err; i++) {
		struct csink_suite_case *c = &suite->cases[i];

		if (c->state != CSINK_SUITE_PENDING)
			continue;
		err = judge_case(suite, c, alpha);
		if (!err && c->state == CSINK_SUITE_PENDING)
			p[nr++] = c->p = p_of_case(&c->verdicts);
	}
	err = err ? err : csink_suite_levels(p, nr, alpha, levels);
	nr = 0;
	for (uint32_t i = 0; i < suite->nr && !err; i++) {
		struct csink_suite_case *c = &suite->cases[i];

		if (c->state != CSINK_SUITE_PENDING)
			continue;
		err = judge_case(suite, c, levels[nr++]);
		c->state = err ? c->state : CSINK_SUITE_JUDGED;
	}
	return err;
}

/* ---- all ---- */

static int find_all_work(struct csink_suite *suite)
{
	int err = 0;

	for (uint32_t i = 0; i < suite->nr && !err; i++) {
		struct csink_suite_case *c = &suite->cases[i];

		show(suite, "trying case", i + 1, suite->nr);
		if (elapsed(suite) * 1e9 > (double)suite->max_time_ns)
			csink_suite_case_fail(c, "no time was left to try it (--max-time)");
		else
			err = csink_suite_find_work(suite, c);
		if (!err && c->state == CSINK_SUITE_PENDING)
			err = begin_case(suite, c);
	}
	return err;
}

static int run_all(struct csink_suite *suite)
{
	int err = find_all_work(suite);

	if (!err && suite->screen)
		err = screen(suite);
	if (!err && count_pending(suite))
		err = make_rounds(suite, suite->confirm, (double)suite->max_time_ns / 1e9, 1);
	return err ? err : judge_all(suite);
}

int csink_suite_run(struct csink_suite *suite)
{
	struct csink_gate_series *series = suite->series;
	int err = csink_suite_watchdog_start(suite);

	suite->start_ns = csink_monotonic_ns();
	if (err)
		return err;
	csink_random_init(&series->random, series->rules->seed);
	csink_symbols_keep_begin();
	err = run_all(suite);
	csink_symbols_keep_end();
	csink_suite_watchdog_stop(suite);
	if (series->plan->progress)
		fputs("\r\033[K", stderr);
	return err;
}
