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

#define LIST "--benchmark_list_tests=true"

static const char *const list_all[] = {LIST, NULL};

static bool is_list(const struct csink_suite_answer *answer)
{
	return csink_suite_answer_is_ok(answer) && answer->out_bytes;
}

/* A program that ignores the words lists the same, whatever filter it gets. */
static int is_gbench(struct csink_suite *suite)
{
	static const char *const of_none[] = {LIST, "--benchmark_filter=^no case has this name$", NULL};
	struct csink_suite_answer all, none;
	int err = csink_suite_ask_side(suite, CSINK_GATE_NEW, list_all, &all);
	bool is;

	if (err)
		return err;
	if (all.exec_errno)
		err = CSINK_SUITE_WHY(suite, -ENOENT, "%.200s cannot be executed: %s", suite->argv[CSINK_GATE_NEW][0],
				      strerror(all.exec_errno));
	is = is_list(&all);
	csink_suite_answer_free(&all);
	if (err || !is)
		return err;
	err = csink_suite_ask_side(suite, CSINK_GATE_NEW, of_none, &none);
	if (err)
		return err;
	is = csink_suite_answer_is_ok(&none) && !none.out_bytes;
	csink_suite_answer_free(&none);
	return is;
}

static int list_gbench(struct csink_suite *suite, int side)
{
	static const char *const with_number[] = {LIST, "--benchmark_min_time=1x", NULL};
	struct csink_suite_answer exact;
	int err = csink_suite_list_lines(suite, side, list_all, NULL);

	err = err ? err : csink_suite_ask_side(suite, side, with_number, &exact);
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

static double count_gbench(struct csink_suite_case *c, const char *out, const char *report, char *why, size_t size)
{
	struct csink_json_value *json = report ? csink_json_read(report, strlen(report)) : NULL;
	const struct csink_json_value *row = csink_json_first(csink_json_get(json, "benchmarks"));
	double iterations = 0;

	(void)out;
	/* With no match there is an empty file, and status 0. */
	if (report && *report && !json) {
		csink_why(0, why, size, "its report (--benchmark_out) is no JSON");
		return -1;
	}
	for (; row; row = row->next) {
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

/* Of a program with a memory manager (benchmark::RegisterMemoryManager()). */
static uint32_t figures_gbench(const struct csink_suite_case *c, const char *text,
			       struct csink_suite_figure figures[CSINK_SUITE_MAX_FIGURES])
{
	static const struct {
		const char *key;
		struct csink_suite_figure figure;
	} known[] = {
		{"allocs_per_iter", {"allocations", "allocations", "allocs/op", NAN}},
		{"max_bytes_used", {"allocated-peak", "peak allocated bytes", "bytes", NAN}},
	};
	struct csink_json_value *json = csink_json_read(text, strlen(text));
	const struct csink_json_value *row = csink_json_first(csink_json_get(json, "benchmarks"));
	uint32_t nr = 0;

	while (row && !is_of(row, c))
		row = row->next;
	for (size_t i = 0; row && i < CSINK_ARRAY_SIZE(known); i++) {
		figures[nr] = known[i].figure;
		figures[nr].value = csink_json_get_number(row, known[i].key);
		nr += figures[nr].value >= 0;
	}
	csink_json_free(json);
	return nr;
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
	.figures = figures_gbench,
	.cheapest = cheapest_gbench,
};
