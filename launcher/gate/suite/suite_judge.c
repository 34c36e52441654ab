/* Verdicts about the cases of a suite, at one rate of errors over all of them: see suite.h. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "include/internal/cleanup.h"
#include "launcher/base/search.h"
#include "launcher/gate/suite/suite.h"

#define SCREEN_P 0.1 /* by Simes, of all that is asked of a case: 1 of 10 cases that are equal goes on */

int csink_suite_screen_case(struct csink_suite *suite, struct csink_suite_case *c)
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

int csink_suite_judge(struct csink_suite *suite)
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
