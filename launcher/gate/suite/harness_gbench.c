/*
 * google-benchmark. From 1.8 on --benchmark_min_time=Nx gives an exact number of iterations. Before, the least time 0
 * gives one iteration, and as many of these as repetitions are asked for; of cases that are cheap, repetitions cost
 * more than iterations do, and a time is given, after which iterations differ from run to run.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/base/json_read.h"
#include "launcher/gate/suite/harness.h"

/* Its filters are extended regular expressions, where these need a backslash, and no other byte may have one. */
#define SPECIAL ".[\\()*+?{|^$"

#define CHEAPEST_REPETITION 50e-6 /* seconds of an iteration */

static int list_with(struct csink_suite *suite, int side, const char *more, struct csink_suite_answer *answer)
{
	struct csink_suite_job job = {.dir = (char *)suite->dirs[side]};
	int err;

	csink_suite_put_all(&job.argv, suite->argv[side]);
	csink_suite_put(&job.argv, "--benchmark_list_tests=true");
	if (more)
		csink_suite_put(&job.argv, "%s", more);
	err = csink_suite_ask(suite, &job, CSINK_SUITE_ASK_SECONDS, answer);
	csink_suite_words_free(&job.argv);
	return err;
}

static bool is_list(const struct csink_suite_answer *answer)
{
	return !answer->exec_errno && !answer->timed_out && !answer->status && answer->out_bytes;
}

/* A program that ignores the words lists the same, whatever filter it gets. */
static int is_gbench(struct csink_suite *suite)
{
	struct csink_suite_answer all, none;
	int err = list_with(suite, CSINK_GATE_NEW, NULL, &all);
	bool is;

	if (err)
		return err;
	if (all.exec_errno)
		err = csink_why(-ENOENT, suite->error, sizeof(suite->error), "%.200s cannot be executed: %s",
				suite->argv[CSINK_GATE_NEW][0], strerror(all.exec_errno));
	is = is_list(&all);
	csink_suite_answer_free(&all);
	if (err || !is)
		return err;
	err = list_with(suite, CSINK_GATE_NEW, "--benchmark_filter=^no case has this name$", &none);
	if (err)
		return err;
	is = !none.status && !none.timed_out && !none.out_bytes;
	csink_suite_answer_free(&none);
	return is;
}

static int list_gbench(struct csink_suite *suite, int side)
{
	static const char *const more[] = {"--benchmark_list_tests=true", NULL};
	struct csink_suite_answer answer, exact;
	const char *at, *line;
	size_t len;
	int err = csink_suite_ask_list(suite, side, more, &answer);

	if (err)
		return err;
	at = answer.out;
	while (!err && (line = csink_suite_line(&at, &len))) {
		if (len && !csink_suite_case_add(suite, side, line, len))
			err = -ENOMEM;
	}
	csink_suite_answer_free(&answer);
	err = err ? err : list_with(suite, side, "--benchmark_min_time=1x", &exact);
	if (err)
		return err;
	suite->takes_iterations = (side == CSINK_GATE_OLD || suite->takes_iterations) && is_list(&exact);
	csink_suite_answer_free(&exact);
	return 0;
}

static void choose_gbench(struct csink_suite *suite, const struct csink_suite_case *c, int side, uint64_t n,
			  struct csink_suite_job *job)
{
	struct csink_suite_words *argv = &job->argv;
	char *name = csink_suite_escape(c->name, SPECIAL);

	(void)side;
	argv->lacked_memory |= !name;
	csink_suite_put(argv, "--benchmark_filter=^%s$", name ? name : "");
	free(name);
	if (suite->takes_iterations) {
		csink_suite_put(argv, "--benchmark_min_time=%" PRIu64 "x", n);
	} else if (c->is_by_time) {
		csink_suite_put(argv, "--benchmark_min_time=%.6f", (double)n / 1e9);
	} else {
		csink_suite_put(argv, "--benchmark_min_time=0");
		csink_suite_put(argv, "--benchmark_repetitions=%" PRIu64, n);
	}
	if (!*suite->report)
		return;
	csink_suite_put(argv, "--benchmark_out=%s", suite->report);
	csink_suite_put(argv, "--benchmark_out_format=json");
}

static bool is_of(const struct csink_json_value *row, const struct csink_suite_case *c)
{
	const char *name = csink_json_get_text(row, "run_name"), *type = csink_json_get_text(row, "run_type");

	name = name ? name : csink_json_get_text(row, "name");
	return name && !strcmp(name, c->name) && !(type && !strcmp(type, "aggregate"));
}

static double count_gbench(const struct csink_suite_case *c, const char *out, const char *report, char *why,
			   size_t size)
{
	struct csink_json_value *json = report ? csink_json_read(report, strlen(report)) : NULL;
	const struct csink_json_value *rows = csink_json_get(json, "benchmarks");
	double iterations = 0;

	(void)out;
	/* With no match there is an empty file, and status 0. */
	if (report && *report && !json) {
		csink_why(0, why, size, "its report (--benchmark_out) is no JSON");
		return -1;
	}
	for (const struct csink_json_value *row = rows ? rows->first : NULL; row; row = row->next) {
		const struct csink_json_value *failed = csink_json_get(row, "error_occurred");
		const char *message = csink_json_get_text(row, "error_message");

		if (!is_of(row, c))
			continue;
		if (failed && failed->kind == CSINK_JSON_TRUE) {
			csink_why(0, why, size, "the benchmark reports an error: %s", message ? message : "");
			iterations = -1;
			break;
		}
		iterations += fmax(0, csink_json_get_number(row, "iterations"));
	}
	csink_json_free(json);
	return iterations;
}

static double cheapest_gbench(const struct csink_suite *suite)
{
	return suite->takes_iterations ? 0 : CHEAPEST_REPETITION;
}

const struct csink_suite_harness csink_suite_gbench = {
	.name = "gbench",
	.is_kind = is_gbench,
	.list = list_gbench,
	.choose = choose_gbench,
	.count = count_gbench,
	.cheapest = cheapest_gbench,
};
