/* Verdicts about the cases of a suite, at one rate of errors over all of them: see suite.h. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "include/internal/cleanup.h"
#include "launcher/base/search.h"
#include "launcher/gate/suite/suite.h"

/* If the pairs of a case show a sign of a slowdown, or are too few, it stays pending. Returns 0 or -ENOMEM. */
static int screen_case(struct csink_suite *suite, struct csink_suite_case *c, double most_p)
{
	struct csink_gate_verdicts *verdicts = &c->screening.verdicts;
	CSINK_AUTO_FREE double *p = NULL;
	int err;

	csink_gate_verdicts_free(verdicts);
	err = csink_gate_judge(&c->data, suite->series->rules, 0, verdicts);
	c->screening.is_judged = !err;
	if (err == -ENODATA) {
		c->state = CSINK_SUITE_UNCONFIRMED;
		return 0;
	}
	if (err)
		return err;
	p = calloc(verdicts->nr_rows + 1, sizeof(*p));
	for (uint32_t i = 0; p && i < verdicts->nr_rows; i++)
		p[i] = verdicts->rows[i].is_turned ? verdicts->rows[i].p_less : verdicts->rows[i].p_greater;
	c->screen_p = p ? csink_simes(p, verdicts->nr_rows) : NAN;
	/* Too few pairs to show anything exclude nothing. */
	if (c->screen_p > most_p && csink_smallest_p(true, c->pairs[0], 0) * verdicts->nr_rows <= most_p)
		c->state = CSINK_SUITE_QUIET;
	return p && !isnan(c->screen_p) ? 0 : -ENOMEM;
}

int csink_suite_screen_pending(struct csink_suite *suite, double most_p)
{
	int err = 0;

	for (uint32_t i = 0; i < suite->nr && !err; i++) {
		if (suite->cases[i].state == CSINK_SUITE_PENDING)
			err = screen_case(suite, &suite->cases[i], most_p);
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

CSINK_COMPARE_BY(compare_ranked, struct ranked, p, index)

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

/* For the levels of the others: a case that was shown to be slower takes no part of alpha any more, and one that was
 * settled otherwise, or is given up, keeps its part. */
static double p_at_look(const struct csink_suite_case *c)
{
	if (c->state == CSINK_SUITE_PENDING)
		return c->p;
	return c->state == CSINK_SUITE_JUDGED && c->verdicts.counts[CSINK_GATE_REGRESSED] ? 0 : 1;
}

/* Judge the pending cases at this look's part of alpha. Returns 0 or -ENOMEM. */
static int judge_pending(struct csink_suite *suite, double alpha)
{
	CSINK_AUTO_FREE double *p = calloc(suite->nr + 1, sizeof(*p)), *levels = calloc(suite->nr + 1, sizeof(*levels));
	uint32_t nr = 0;
	int err = p && levels ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < suite->nr && !err; i++) {
		struct csink_suite_case *c = &suite->cases[i];

		if (!c->is_asked)
			continue;
		if (c->state == CSINK_SUITE_PENDING)
			err = judge_case(suite, c, alpha);
		if (!err && c->state == CSINK_SUITE_PENDING)
			c->p = p_of_case(&c->verdicts);
		p[nr++] = p_at_look(c);
	}
	err = err ? err : csink_suite_levels(p, nr, alpha, levels);
	nr = 0;
	for (uint32_t i = 0; i < suite->nr && !err; i++) {
		struct csink_suite_case *c = &suite->cases[i];

		nr += c->is_asked;
		if (c->state == CSINK_SUITE_PENDING)
			err = judge_case(suite, c, levels[nr - 1]);
	}
	return err;
}

void csink_suite_ask_pending(struct csink_suite *suite)
{
	suite->looks = (struct csink_gate_looks){0};
	for (uint32_t i = 0; i < suite->nr; i++)
		suite->cases[i].is_asked = suite->cases[i].state == CSINK_SUITE_PENDING;
}

/* Whether its slower function is known: the time is for the other cases then. */
static bool is_named(const struct csink_suite_case *c)
{
	for (uint32_t i = c->verdicts.nr_metric_rows; i < c->verdicts.nr_rows; i++) {
		if (c->verdicts.rows[i].verdict == CSINK_GATE_REGRESSED)
			return true;
	}
	return false;
}

int csink_suite_look(struct csink_suite *suite, double fraction, double more)
{
	const struct csink_gate_rules *rules = suite->series->rules;
	int err = judge_pending(suite, csink_gate_looks_level(&suite->looks, rules->alpha, fraction));

	for (uint32_t i = 0; i < suite->nr && !err; i++) {
		struct csink_suite_case *c = &suite->cases[i];

		if (c->state != CSINK_SUITE_PENDING)
			continue;
		c->decision = csink_gate_looks_decide(&c->verdicts, rules, c->pairs[1], more);
		if (c->decision != CSINK_GATE_GO_ON || is_named(c))
			c->state = CSINK_SUITE_JUDGED;
	}
	return err;
}
