/*
 * `countersink gate --suite`: all cases of a benchmark harness, at one rate of false positives. Settings and outputs
 * are here; launcher/gate/suite/ lists the cases, makes the runs and judges them, or counts their instructions.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/clock.h"
#include "launcher/base/format.h"
#include "launcher/base/message.h"
#include "launcher/base/outfile.h"
#include "launcher/base/text.h"
#include "launcher/commands/gate/gate_output.h"
#include "launcher/commands/gate/gate_suite.h"
#include "launcher/commands/gate/suite_result.h"
#include "launcher/gate/gate_command.h"
#include "launcher/gate/suite/harness.h"
#include "launcher/output/report.h"
#include "launcher/session/open_profile.h"

#define MAX_PAIRS 1000
#define COUNTED_SECONDS 0.01 /* that a run of a case is to take, where instructions are counted */

static const enum csink_gate_opt only_suites[] = {
	CSINK_GATE_OPT_VS_DIR,     CSINK_GATE_OPT_LIST,    CSINK_GATE_OPT_CASES,
	CSINK_GATE_OPT_LIST_CASES, CSINK_GATE_OPT_SCREEN,  CSINK_GATE_OPT_CONFIRM,
	CSINK_GATE_OPT_RUN_TIME,   CSINK_GATE_OPT_PROCESS, CSINK_GATE_OPT_PRINTED,
};
static const enum csink_gate_opt never_suites[] = {
	CSINK_GATE_OPT_BASELINE,
	CSINK_GATE_OPT_UPDATE_BASELINE,
	CSINK_GATE_OPT_WARMUP,
};
static const enum csink_gate_opt only_measured[] = {
	CSINK_GATE_OPT_SCREEN,  CSINK_GATE_OPT_CONFIRM, CSINK_GATE_OPT_PROCESS,
	CSINK_GATE_OPT_PRINTED, CSINK_GATE_OPT_HISTORY, CSINK_GATE_OPT_HTML,
};

bool csink_gate_is_suite(const struct csink_gate_settings *set)
{
	return *csink_gate_option_text(set, CSINK_GATE_OPT_SUITE);
}

static bool is_given(const struct csink_gate_settings *set, enum csink_gate_opt option)
{
	return set->options->values[option].source == CSINK_FROM_OPTION;
}

/* Options that are for measured suites alone, and those that are for counted ones alone. */
static int check_counted(const struct csink_gate_settings *set)
{
	bool is_counted = strcmp(csink_gate_option_text(set, CSINK_GATE_OPT_DETERMINISTIC), "no") != 0;
	char name[CSINK_OPTION_NAME];

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(only_measured) && is_counted; i++) {
		csink_option_name(&set->options->table[only_measured[i]], name);
		if (is_given(set, only_measured[i]))
			return csink_fail(-EINVAL,
					  "option --%s: not with --suite --deterministic (see countersink help gate)",
					  name);
	}
	if (!is_counted && is_given(set, CSINK_GATE_OPT_RUNS))
		return csink_fail(-EINVAL, "option --runs: with --suite, only of counted cases (--deterministic)");
	return 0;
}

int csink_gate_suite_check(const struct csink_gate_settings *set)
{
	bool is_suite = csink_gate_is_suite(set);
	char name[CSINK_OPTION_NAME];

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(only_suites) && !is_suite; i++) {
		csink_option_name(&set->options->table[only_suites[i]], name);
		if (is_given(set, only_suites[i]))
			return csink_fail(-EINVAL, "option --%s: it is for suites of benchmarks (--suite)", name);
	}
	if (is_suite && *csink_gate_option_text(set, CSINK_GATE_OPT_HISTORY) && is_given(set, CSINK_GATE_OPT_SCREEN) &&
	    strcmp(csink_gate_option_text(set, CSINK_GATE_OPT_SCREEN), "0") != 0)
		return csink_fail(-EINVAL,
				  "option --screen: not with --history, which has every case judged: pairs that "
				  "were chosen by what they show would bias its ratio");
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(never_suites) && is_suite; i++) {
		csink_option_name(&set->options->table[never_suites[i]], name);
		if (is_given(set, never_suites[i]))
			return csink_fail(-EINVAL, "option --%s: not with --suite (see countersink help gate)", name);
	}
	return is_suite ? check_counted(set) : 0;
}

/* ---- settings ---- */

/* "30ms", "500us", "1s", "0.03". */
static int resolve_time(const struct csink_gate_settings *set, double *out)
{
	static const struct {
		const char *unit;
		double factor;
	} units[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"us", 1e-6}};
	const char *text = csink_gate_option_text(set, CSINK_GATE_OPT_RUN_TIME);
	char *end;
	double value = strtod(text, &end);

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(units); i++) {
		if (end > text && !strcmp(end, units[i].unit) && isfinite(value) && value * units[i].factor >= 1e-4 &&
		    value * units[i].factor <= 3600) {
			*out = value * units[i].factor;
			return 0;
		}
	}
	return csink_gate_refuse(set, CSINK_GATE_OPT_RUN_TIME, "no time from 100us to 3600s (30ms, 0.5s)");
}

static int resolve_pairs(const struct csink_gate_settings *set, enum csink_gate_opt option, uint32_t least,
			 uint32_t *out)
{
	const char *what = least ? "no number of pairs from 2 to 1000" : "no number of pairs up to 1000";

	if (csink_gate_resolve_count(set, option, MAX_PAIRS, what, out))
		return -EINVAL;
	return *out < least ? csink_gate_refuse(set, option, what) : 0;
}

static enum csink_suite_process process_of(const char *word)
{
	return !strcmp(word, "case")    ? CSINK_SUITE_PROCESS_CASE
	       : !strcmp(word, "suite") ? CSINK_SUITE_PROCESS_SUITE
					: CSINK_SUITE_PROCESS_AUTO;
}

/* Counts do not get better by long runs, as times do. */
static void shorten(const struct csink_gate_settings *set, struct csink_suite *suite)
{
	if (set->plan.counting && set->options->values[CSINK_GATE_OPT_RUN_TIME].source == CSINK_FROM_DEFAULT)
		suite->run_seconds = COUNTED_SECONDS;
}

static int resolve(const struct csink_gate_settings *set, struct csink_suite *suite)
{
	suite->printed = csink_gate_option_flag(set, CSINK_GATE_OPT_PRINTED);
	if (resolve_time(set, &suite->run_seconds) || resolve_pairs(set, CSINK_GATE_OPT_SCREEN, 0, &suite->screen) ||
	    resolve_pairs(set, CSINK_GATE_OPT_CONFIRM, 2, &suite->confirm))
		return -EINVAL;
	if (*csink_gate_option_text(set, CSINK_GATE_OPT_HISTORY))
		suite->screen = 0;
	suite->is_counted = set->plan.counting;
	shorten(set, suite);
	suite->process = process_of(csink_gate_option_text(set, CSINK_GATE_OPT_PROCESS));
	suite->list = csink_gate_option_given(set, CSINK_GATE_OPT_LIST);
	suite->chosen = csink_gate_option_given(set, CSINK_GATE_OPT_CASES);
	suite->dirs[CSINK_GATE_OLD] = csink_gate_option_given(set, CSINK_GATE_OPT_VS_DIR);
	if (suite->dirs[CSINK_GATE_OLD] && !csink_is_directory(suite->dirs[CSINK_GATE_OLD]))
		return csink_gate_refuse(set, CSINK_GATE_OPT_VS_DIR, "no directory");
	for (int side = 0; side < CSINK_GATE_NR_SIDES; side++)
		suite->argv[side] = set->plan.argv[side];
	suite->max_time_ns = set->plan.max_time_ns;
	return 0;
}

/* ---- outputs ---- */

struct printing {
	void (*print)(FILE *, const struct csink_suite_result *);
	const struct csink_suite_result *result;
};

static int print_result(FILE *out, void *arg)
{
	const struct printing *p = arg;

	p->print(out, p->result);
	return 0;
}

static bool write_file(const char *path, unsigned int how, void (*print)(FILE *, const struct csink_suite_result *),
		       const struct csink_suite_result *result)
{
	struct printing p = {print, result};

	return csink_gate_write(path, how, print_result, &p);
}

/* Annotations for GitHub's page of a change: one a case that fails, or the reason why there is no verdict. */
static void annotate(const struct csink_suite_result *r)
{
	uint32_t nr = 0, number = 0;
	char line[4096];

	if (r->error)
		csink_text_print_as(stderr, CSINK_TEXT_GITHUB, "::error title=countersink gate::%s\n", r->error);
	for (uint32_t i = 0; !r->error && i < r->suite->nr; i++)
		nr += csink_suite_is_failure(r, &r->suite->cases[i]);
	for (uint32_t i = 0; !r->error && i < r->suite->nr; i++) {
		const struct csink_suite_case *c = &r->suite->cases[i];

		if (!csink_suite_is_failure(r, c) || !csink_gate_has_annotation(stderr, number++, nr))
			continue;
		csink_suite_case_line(r, c, line, sizeof(line));
		csink_text_print_as(stderr, CSINK_TEXT_GITHUB, "::error title=countersink gate::%s: %s\n", c->name,
				    line);
	}
	fflush(stderr);
}

static int write_result(const struct csink_gate_settings *set, struct csink_suite_result *r, bool written)
{
	static const struct {
		enum csink_gate_opt option;
		unsigned int how;
		void (*print)(FILE *out, const struct csink_suite_result *r);
	} formats[] = {
		{CSINK_GATE_OPT_TAP, 0, csink_suite_print_tap},
		{CSINK_GATE_OPT_JUNIT, 0, csink_suite_print_junit},
		{CSINK_GATE_OPT_JSON, 0, csink_suite_print_json},
		{CSINK_GATE_OPT_MARKDOWN, CSINK_OUTFILE_APPEND, csink_suite_print_markdown},
		{CSINK_GATE_OPT_BADGE, 0, csink_suite_print_badge},
	};
	char headline[2048];

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(formats); i++)
		written &=
			write_file(csink_gate_option_text(set, formats[i].option), formats[i].how, formats[i].print, r);
	written &= write_file(csink_gate_summary_file(), CSINK_OUTFILE_APPEND, csink_suite_print_markdown, r);
	if (csink_gate_option_flag(set, CSINK_GATE_OPT_GITHUB) || csink_gate_is_in_actions())
		annotate(r);
	if (!written && !r->error) {
		/* What the runs have shown is not lost with a file. */
		csink_suite_headline(r, headline, sizeof(headline));
		csink_say("the output is incomplete; the verdict: %s", headline);
		r->error = "an output could not be written";
		r->error_status = CSINK_EXIT_FAILED;
	}
	written &= write_file(csink_gate_option_text(set, CSINK_GATE_OPT_VERDICT), 0, csink_suite_print_verdict, r);
	return written ? csink_suite_status(r) : CSINK_EXIT_FAILED;
}

/* The runs that confirmed, of all cases together. */
static bool write_page(const struct csink_gate_settings *set, const struct csink_suite *suite,
		       const struct csink_suite_result *r)
{
	const char *path = csink_gate_option_text(set, CSINK_GATE_OPT_HTML);
	struct csink_html_side sides[CSINK_GATE_NR_SIDES];
	uint32_t nr = 0;

	if (!*path || r->error)
		return true;
	for (uint32_t i = 0; i < suite->nr; i++)
		nr += suite->cases[i].pairs[1];
	for (int side = 0; side < CSINK_GATE_NR_SIDES; side++)
		sides[side] = (struct csink_html_side){suite->series->kept[side], r->gate->commands[side], nr};
	return csink_gate_write_page(path, suite->series, sides);
}

/* The cases that were judged, each with its ratios. */
static bool append_history(const struct csink_suite_result *r, const struct csink_gate_history *history)
{
	const struct csink_suite *suite = r->suite;
	struct csink_gate_result *results = calloc(suite->nr + 1, sizeof(*results));
	struct csink_gate_case *cases = calloc(suite->nr + 1, sizeof(*cases));
	char headline[2048];
	uint32_t nr = 0;
	bool written;

	for (uint32_t i = 0; results && cases && i < suite->nr; i++) {
		if (suite->cases[i].state != CSINK_SUITE_JUDGED)
			continue;
		results[nr] = csink_suite_case_result(r, &suite->cases[i]);
		cases[nr] = (struct csink_gate_case){suite->cases[i].name, r->kind, suite->list, &results[nr],
						     suite->printed};
		nr++;
	}
	csink_suite_headline(r, headline, sizeof(headline));
	written =
		results && cases && csink_gate_write_history(history, suite->argv[CSINK_GATE_NEW], cases, nr, headline);
	free(results);
	free(cases);
	return written;
}

/* ---- running ---- */

/* As a shell reads it. */
static void print_word(const char *word)
{
	size_t size = 4 * strlen(word) + 4;
	char *quoted = calloc(1, size);

	if (quoted)
		csink_append_word(quoted, size, word);
	csink_text_print(stdout, "%s", quoted ? quoted : word);
	free(quoted);
}

static void print_variable(const char *variable)
{
	size_t name = strcspn(variable, "=");

	csink_text_print(stdout, "%.*s", (int)name, variable);
	if (variable[name]) {
		putchar('=');
		print_word(variable + name + 1);
	}
	putchar(' ');
}

static void print_job(const struct csink_suite_job *job)
{
	size_t size = 64;
	char *line;

	for (uint32_t i = 0; i < job->argv.nr; i++)
		size += 4 * strlen(job->argv.all[i]) + 3;
	line = malloc(size);
	if (!line)
		return;
	if (job->dir) {
		fputs("cd ", stdout);
		print_word(job->dir);
		fputs(" && ", stdout);
	}
	if (job->prepare) {
		fputs("sh -c ", stdout);
		print_word(job->prepare);
		fputs(" && ", stdout);
	}
	for (uint32_t i = 0; i < job->env.nr; i++)
		print_variable(job->env.all[i]);
	csink_text_print(stdout, "%s\n", csink_gate_command_print(job->argv.all, line, size));
	free(line);
}

/* Print what would be run, with one iteration: their real number is found by runs, and none is made here. */
static int list_cases(struct csink_suite *suite)
{
	static const char *const sides[] = {"old", "new"};

	for (uint32_t i = 0; i < suite->nr; i++) {
		struct csink_suite_case *c = &suite->cases[i];

		csink_text_print(stdout, "%s\n", c->name);
		for (int side = 0; side < CSINK_GATE_NR_SIDES; side++) {
			int err = csink_suite_command(suite, c, side, 1, &c->jobs[side]);

			if (err)
				return err;
			printf("\t%s: ", sides[side]);
			print_job(&c->jobs[side]);
		}
	}
	return csink_report_flush(stdout);
}

static void fail(struct csink_suite_result *r, struct csink_suite *suite, int err)
{
	if (!*suite->error)
		snprintf(suite->error, sizeof(suite->error), "%s", strerror(-err));
	r->error = suite->error;
	r->error_status = err == -ENODATA ? CSINK_EXIT_NO_CASES : CSINK_EXIT_FAILED;
	csink_say("%s", suite->error);
}

/* Returns what to exit with. */
static int run(struct csink_gate_settings *set, struct csink_suite *suite, const struct csink_gate_history *history,
	       struct csink_gate_result *gate, struct csink_suite_result *r)
{
	struct csink_gate_series *series = suite->series;
	uint64_t start_ns = csink_monotonic_ns();
	bool page_written;
	int status, err = csink_suite_find_kind(suite, csink_gate_option_text(set, CSINK_GATE_OPT_SUITE));

	r->kind = suite->harness ? suite->harness->name : "";
	err = err ? err : csink_suite_check_counted(suite);
	err = err ? err : csink_suite_list(suite);
	if (!err && csink_gate_option_flag(set, CSINK_GATE_OPT_LIST_CASES)) {
		err = list_cases(suite);
		if (!err)
			return CSINK_EXIT_OK;
	}
	err = err ? err : csink_suite_run(suite);
	if (err == -EINTR)
		return csink_fail(CSINK_EXIT_SIGNAL + series->signal, "interrupted by %s: no verdict",
				  strsignal(series->signal));
	if (err)
		fail(r, suite, err);
	r->seconds = (double)(csink_monotonic_ns() - start_ns) / 1e9;
	page_written = write_page(set, suite, r);
	gate->notes = series->notes;
	gate->nr_notes = series->nr_notes;
	status = write_result(set, r, page_written);
	/* After the verdict, which no history changes. */
	if (*history->path && !r->error && !append_history(r, history))
		return CSINK_EXIT_FAILED;
	return status;
}

int csink_gate_suite_run(struct csink_gate_settings *set, struct csink_gate_series *series,
			 const struct csink_gate_history *history, struct csink_gate_result *result)
{
	struct csink_suite suite = {.series = series, .watchdog_fd = -1, .start_ns = csink_monotonic_ns()};
	struct csink_suite_result r = {.suite = &suite, .gate = result, .kind = ""};
	char why[CSINK_WHY_BYTES];
	int status;

	if (resolve(set, &suite))
		return CSINK_EXIT_USAGE;
	if (csink_gate_runner_start(&set->runner, why, sizeof(why)))
		return csink_fail(CSINK_EXIT_FAILED, "%s", why);
	/* What both sides run is moved only where both are one. */
	series->placement.two_sides =
		suite.dirs[CSINK_GATE_OLD] || suite.argv[CSINK_GATE_OLD] != suite.argv[CSINK_GATE_NEW];
	csink_suite_make_directory(&suite);
	status = run(set, &suite, history, result, &r);
	csink_suite_free(&suite);
	return status;
}
