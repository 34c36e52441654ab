/* A suite's result in words: see suite_result.h. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "include/internal/base.h"
#include "launcher/base/format.h"
#include "launcher/commands/gate/suite_result.h"

#define MAX_NAMED 3 /* groups in the headline, and cases in a group */
#define MAX_CASE 60 /* characters of a case's name there */

struct csink_gate_result csink_suite_case_result(const struct csink_suite_result *r, const struct csink_suite_case *c)
{
	struct csink_gate_result one = *r->gate;

	one.data = &c->data;
	one.verdicts = &c->verdicts;
	one.error = NULL;
	return one;
}

static bool row_fails(const struct csink_gate_result *one, const struct csink_gate_row *row, bool slower)
{
	return slower ? row->verdict == CSINK_GATE_REGRESSED : csink_gate_is_failure(one, row);
}

static const struct csink_gate_row *find_row(const struct csink_suite_result *r, const struct csink_suite_case *c,
					     bool slower)
{
	struct csink_gate_result one = csink_suite_case_result(r, c);

	if (c->state != CSINK_SUITE_JUDGED)
		return NULL;
	for (int functions = 1; functions >= 0; functions--) {
		for (uint32_t i = 0; i < c->verdicts.nr_rows; i++) {
			const struct csink_gate_row *row = &c->verdicts.rows[i];

			if ((row->function >= 0) == functions && row_fails(&one, row, slower))
				return row;
		}
	}
	return NULL;
}

bool csink_suite_is_slower(const struct csink_suite_result *r, const struct csink_suite_case *c)
{
	return find_row(r, c, true);
}

const struct csink_gate_row *csink_suite_main_row(const struct csink_suite_result *r, const struct csink_suite_case *c)
{
	const struct csink_gate_row *row = find_row(r, c, true);

	return row ? row : find_row(r, c, false);
}

bool csink_suite_is_failure(const struct csink_suite_result *r, const struct csink_suite_case *c)
{
	return c->state == CSINK_SUITE_FAILED || csink_suite_main_row(r, c) ||
	       (c->state == CSINK_SUITE_UNCONFIRMED && r->gate->rules->strict);
}

const char *csink_suite_word(const struct csink_suite_result *r, const struct csink_suite_case *c)
{
	if (c->state == CSINK_SUITE_FAILED)
		return "error";
	if (c->state == CSINK_SUITE_QUIET)
		return csink_gate_verdict_words[CSINK_GATE_UNCHANGED];
	if (csink_suite_is_slower(r, c))
		return csink_gate_verdict_words[CSINK_GATE_REGRESSED];
	if (c->state != CSINK_SUITE_JUDGED || c->verdicts.nr_open)
		return csink_gate_verdict_words[CSINK_GATE_INCONCLUSIVE];
	return csink_gate_verdict_words[c->verdicts.counts[CSINK_GATE_IMPROVED] ? CSINK_GATE_IMPROVED
										: CSINK_GATE_UNCHANGED];
}

const struct csink_gate_row *csink_suite_cpu_row(const struct csink_suite_case *c)
{
	for (uint32_t i = 0; i < c->verdicts.nr_metric_rows; i++) {
		if (!strcmp(c->data.metrics[c->verdicts.rows[i].metric].name, c->counting ? "instructions" : "cpu"))
			return &c->verdicts.rows[i];
	}
	return NULL;
}

int csink_suite_case_line(const struct csink_suite_result *r, const struct csink_suite_case *c, char *out, size_t size)
{
	struct csink_gate_result one = csink_suite_case_result(r, c);
	const struct csink_gate_row *row = csink_suite_main_row(r, c);
	char name[512], line[1024], uneven[80] = "";

	if (c->wavers)
		snprintf(uneven, sizeof(uneven), "; equal runs differ by up to %.2g %%", 100 * c->spread);
	if (c->state == CSINK_SUITE_FAILED)
		return snprintf(out, size, "error: %s", c->error ? c->error : "not enough memory");
	if (c->state == CSINK_SUITE_QUIET)
		return snprintf(out, size, "no sign of a slowdown (%u pairs, p = %.2g)", c->pairs[0], c->screen_p);
	if (!c->pairs[0] && !c->pairs[1])
		return snprintf(out, size, "inconclusive: not run, since no time was left (--max-time)");
	if (c->state != CSINK_SUITE_JUDGED)
		return snprintf(out, size, "inconclusive: no time was left to confirm it (%u pairs, p = %.2g)",
				c->pairs[0], c->screen_p);
	if (row) {
		csink_gate_row_name(&one, row, name, sizeof(name));
		csink_gate_row_line(&one, row, line, sizeof(line));
		return snprintf(out, size, "%s %s%s", name, line, uneven);
	}
	row = csink_suite_cpu_row(c);
	if (!row)
		return snprintf(out, size, "%s", csink_suite_word(r, c));
	csink_gate_row_line(&one, row, line, sizeof(line));
	return snprintf(out, size, "%s; %s %s%s", csink_suite_word(r, c), c->data.metrics[row->metric].title, line,
			uneven);
}

/* ---- the headline ---- */

/* A function (or figure) and the slower cases that it names. */
struct group {
	const struct csink_suite_case *first;
	const struct csink_gate_row *row;
	double low, high; /* ratios */
	uint32_t nr;
};

static void name_row(const struct csink_suite_case *c, const struct csink_gate_row *row, char *out, size_t size)
{
	if (row->function >= 0)
		csink_format_function(out, size, c->data.functions.all[row->function].name, 48);
	else
		snprintf(out, size, "%s", c->data.metrics[row->metric].title);
}

/* Is the case named by the same function of the same module? */
static bool is_of(const struct csink_suite_result *r, const struct group *group, const struct csink_suite_case *c)
{
	const struct csink_gate_row *row = find_row(r, c, true);
	const struct csink_gate_function *f, *g;

	if (!row || (row->function >= 0) != (group->row->function >= 0))
		return false;
	if (row->function < 0)
		return !strcmp(c->data.metrics[row->metric].name, group->first->data.metrics[group->row->metric].name);
	f = &c->data.functions.all[row->function];
	g = &group->first->data.functions.all[group->row->function];
	return !strcmp(f->name, g->name) && !strcmp(f->module, g->module);
}

/* The cases that are named by what the slower case @at is. Without a row: it is not slower, or in an earlier group. */
static struct group gather(const struct csink_suite_result *r, uint32_t at)
{
	const struct csink_suite *suite = r->suite;
	struct group group = {.first = &suite->cases[at]};

	group.row = find_row(r, group.first, true);
	if (!group.row)
		return group;
	group.low = INFINITY;
	for (uint32_t i = 0; i < suite->nr; i++) {
		const struct csink_suite_case *c = &suite->cases[i];

		if (!is_of(r, &group, c))
			continue;
		/* It is in the group of an earlier case. */
		if (i < at)
			return (struct group){0};
		group.low = fmin(group.low, find_row(r, c, true)->ratio);
		group.high = fmax(group.high, find_row(r, c, true)->ratio);
		group.nr++;
	}
	return group;
}

static void append_group(const struct csink_suite_result *r, const struct group *group, char *out, size_t size)
{
	char function[256], name[4 * MAX_CASE + 4], low[32], high[32];
	const char *of = group->first->counting && group->row->function >= 0 ? " instructions" : "";
	uint32_t nr = 0;

	name_row(group->first, group->row, function, sizeof(function));
	csink_gate_change(group->low, low, sizeof(low));
	csink_gate_change(group->high, high, sizeof(high));
	if (group->nr == 1) {
		csink_format_text(name, sizeof(name), group->first->name, MAX_CASE);
		csink_append(out, size, "%s (%s %s%s)", name, function, low, of);
		return;
	}
	csink_append(out, size, "%s %s", function, low);
	if (strcmp(low, high) != 0)
		csink_append(out, size, " to %s", high);
	csink_append(out, size, "%s in %u cases: ", of, group->nr);
	for (uint32_t i = 0; i < r->suite->nr; i++) {
		const struct csink_suite_case *c = &r->suite->cases[i];

		if (!is_of(r, group, c))
			continue;
		csink_format_text(name, sizeof(name), c->name, MAX_CASE);
		if (nr++ < MAX_NAMED)
			csink_append(out, size, "%s%s", nr > 1 ? ", " : "", name);
	}
	csink_append(out, size, "%s", nr > MAX_NAMED ? ", ..." : "");
}

static void append_groups(const struct csink_suite_result *r, char *out, size_t size)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < r->suite->nr; i++) {
		struct group group = gather(r, i);

		if (!group.row || nr++ >= MAX_NAMED)
			continue;
		csink_append(out, size, "%s", nr > 1 ? "; " : "");
		append_group(r, &group, out, size);
	}
	csink_append(out, size, "%s", nr > MAX_NAMED ? "; ..." : "");
}

int csink_suite_headline(const struct csink_suite_result *r, char *out, size_t size)
{
	uint32_t slower = 0, failed = 0, open = 0, nr = r->suite->nr;
	const char *cases = nr == 1 ? "case" : "cases";

	if (r->error)
		return snprintf(out, size, "no verdict: %.400s", r->error);
	for (uint32_t i = 0; i < nr; i++) {
		const struct csink_suite_case *c = &r->suite->cases[i];

		slower += csink_suite_is_slower(r, c);
		failed += c->state == CSINK_SUITE_FAILED;
		open += !strcmp(csink_suite_word(r, c), "inconclusive");
	}
	if (slower) {
		snprintf(out, size, "%u of %u %s slower: ", slower, nr, cases);
		append_groups(r, out, size);
	} else {
		snprintf(out, size, "no case of %u %s slower", nr, open ? "was shown to be" : "is");
	}
	if (open)
		csink_append(out, size, "; %u inconclusive", open);
	if (failed)
		csink_append(out, size, "; %u in error", failed);
	return (int)strlen(out);
}

int csink_suite_status(const struct csink_suite_result *r)
{
	int status = CSINK_EXIT_OK;

	if (r->error)
		return r->error_status;
	for (uint32_t i = 0; i < r->suite->nr; i++) {
		const struct csink_suite_case *c = &r->suite->cases[i];

		if (c->state == CSINK_SUITE_FAILED)
			status = status == CSINK_EXIT_OK ? CSINK_EXIT_FAILED : status;
		else if (csink_suite_is_failure(r, c))
			status = CSINK_EXIT_REGRESSED;
	}
	return status;
}

/* ---- facts ---- */

static int runs_fact(const struct csink_suite_result *r, char *out, size_t size)
{
	uint32_t pairs[2] = {0, 0}, cases[2] = {0, 0};

	for (uint32_t i = 0; i < r->suite->nr; i++) {
		for (int stage = 0; stage < 2; stage++) {
			pairs[stage] = CSINK_MAX(pairs[stage], r->suite->cases[i].pairs[stage]);
			cases[stage] += r->suite->cases[i].pairs[stage] > 0;
		}
	}
	if (r->suite->is_counted)
		return snprintf(out, size, "runs: %u cases counted, at least %u times on each side, in %.1f s",
				cases[1], r->suite->series->plan->runs, r->seconds);
	return snprintf(out, size,
			"runs: %u pairs of each of %u cases to screen, %u fresh ones of %u to confirm, in %.1f s; seed "
			"%" PRIu64,
			pairs[0], cases[0], pairs[1], cases[1], r->seconds, r->gate->rules->seed);
}

int csink_suite_fact(const struct csink_suite_result *r, uint32_t nr, char *out, size_t size)
{
	const struct csink_gate_rules *rules = r->gate->rules;

	switch (nr) {
	case 0:
		return csink_suite_headline(r, out, size);
	case 1:
		return snprintf(out, size, "%s: %s", r->gate->how, r->gate->commands[CSINK_GATE_OLD]);
	case 2:
		return snprintf(out, size, "suite: %s%s%s", r->gate->commands[CSINK_GATE_NEW],
				*r->kind ? ", as of " : "", r->kind);
	}
	if (r->error)
		return nr - 3 < r->gate->nr_notes ? snprintf(out, size, "note: %s", r->gate->notes[nr - 3]) : -ENOENT;
	switch (nr) {
	case 3:
		return runs_fact(r, out, size);
	case 4:
		return snprintf(out, size, "event: %s%s%s", r->gate->event, *r->gate->engine ? ", engine " : "",
				r->gate->engine);
	case 5:
		if (r->suite->is_counted)
			return snprintf(out, size,
					"rules: threshold %.3g %%, functions from %.3g %% of a case's instructions%s",
					rules->threshold * 100, rules->min_share * 100,
					rules->strict ? ", strict" : "");
		return snprintf(out, size,
				"rules: threshold %.3g %%, functions from %.3g %% of a case's time, false positives at "
				"most %.3g %% over all cases together%s%s",
				rules->threshold * 100, rules->min_share * 100, rules->alpha * 100,
				rules->strict ? ", strict" : "", rules->folds_native ? CSINK_GATE_FOLDED : "");
	}
	return nr - 6 < r->gate->nr_notes ? snprintf(out, size, "note: %s", r->gate->notes[nr - 6]) : -ENOENT;
}
