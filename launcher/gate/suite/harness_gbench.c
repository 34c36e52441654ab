/*
 * google-benchmark. From 1.8 on --benchmark_min_time=Nx gives an exact number of iterations. Before, the least time 0
 * gives one iteration, and as many of these as repetitions are asked for; of cases that are cheap, repetitions cost
 * more than iterations do, and a time is given, after which iterations differ from run to run.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
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
		bool is_counted = suite->is_counted;

		csink_suite_put(argv, "--benchmark_min_time=0");
		csink_suite_put(argv, "--benchmark_repetitions=%" PRIu64, n + is_counted);
		/* To print each one takes as many instructions as its time has digits. Of a single one, there is
		 * nothing to aggregate: one more is made. */
		if (is_counted)
			csink_suite_put(argv, "--benchmark_report_aggregates_only=true");
	}
	if (!*suite->report)
		return;
	csink_suite_put(argv, "--benchmark_out=%s", suite->report);
	csink_suite_put(argv, "--benchmark_out_format=json");
}

static bool has_name(const struct csink_json_value *row, const struct csink_suite_case *c)
{
	const char *name = csink_json_get_text(row, "run_name");

	name = name ? name : csink_json_get_text(row, "name");
	return name && !strcmp(name, c->name);
}

static bool is_of(const struct csink_json_value *row, const struct csink_suite_case *c)
{
	const char *type = csink_json_get_text(row, "run_type");

	return has_name(row, c) && !(type && !strcmp(type, "aggregate"));
}

/* Of repetitions that are reported together alone, as choose_gbench asks for: how many there were, without the first.
 * Each of them may have a number of iterations of its own. */
static double count_together(const struct csink_json_value *row, const struct csink_suite_case *c)
{
	for (; row; row = row->next) {
		const char *name = csink_json_get_text(row, "aggregate_name");

		if (has_name(row, c) && name && !strcmp(name, "mean"))
			return fmax(0, csink_json_get_number(row, "iterations") - 1);
	}
	return 0;
}

/* ---- the figures that it reports ---- */

#define MAX_COUNTERS 16
#define MAX_ROW 64 /* values of a row that are looked at */

/* Counters of a case of which it was printed that they are rates, which its JSON does not say. */
struct own {
	uint32_t nr;
	struct {
		char name[40];
		enum csink_suite_better better;
	} rates[MAX_COUNTERS];
};

/* Is a number of a row a counter? */
static bool is_counter(const struct csink_json_value *value)
{
	static const char *const others[] = {"family_index",    "per_family_instance_index",
					     "repetitions",     "repetition_index",
					     "threads",         "iterations",
					     "real_time",       "cpu_time",
					     "error_occurred",  "skipped",
					     "allocs_per_iter", "max_bytes_used",
					     "net_heap_growth", "total_allocated_bytes"};

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(others); i++) {
		if (!strcmp(value->key, others[i]))
			return false;
	}
	return value->kind == CSINK_JSON_NUMBER || value->kind == CSINK_JSON_NULL;
}

/* "  frames=12.3k/s  per=4.1us  deep=3": a rate, the time of one, or something else. */
static enum csink_suite_better find_better(const char *printed, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = printed; len && (at = strstr(at, name)) != NULL; at += len) {
		size_t value = strcspn(at + len, " \t\r\n");

		if (at == printed || at[-1] != ' ' || at[len] != '=' || !memchr("0123456789", at[len + 1], 10))
			continue;
		if (at[len + value - 1] != 's')
			return CSINK_SUITE_BETTER_UNKNOWN;
		return at[len + value - 2] == '/' ? CSINK_SUITE_BETTER_MORE : CSINK_SUITE_BETTER_LESS;
	}
	return CSINK_SUITE_BETTER_UNKNOWN;
}

static enum csink_suite_better get_better(const struct own *own, const char *name)
{
	if (!strcmp(name, "items_per_second") || !strcmp(name, "bytes_per_second"))
		return CSINK_SUITE_BETTER_MORE;
	for (uint32_t i = 0; own && i < own->nr; i++) {
		if (!strcmp(own->rates[i].name, name))
			return own->rates[i].better;
	}
	return CSINK_SUITE_BETTER_UNKNOWN;
}

static void learn_rates(struct csink_suite_case *c, const struct csink_json_value *row, const char *printed)
{
	struct own *own = c->own = c->own ? c->own : calloc(1, sizeof(*own));
	const struct csink_json_value *value = csink_json_first(row);

	for (uint32_t i = 0; own && value && i < MAX_ROW; i++, value = value->next) {
		enum csink_suite_better better;

		if (own->nr == MAX_COUNTERS || !is_counter(value) || strlen(value->key) >= sizeof(own->rates[0].name) ||
		    get_better(own, value->key))
			continue;
		better = find_better(printed, value->key);
		if (!better)
			continue;
		snprintf(own->rates[own->nr].name, sizeof(own->rates[0].name), "%s", value->key);
		own->rates[own->nr++].better = better;
	}
}

static double count_gbench(struct csink_suite_case *c, const char *out, const char *report, char *why, size_t size)
{
	struct csink_json_value *json = report ? csink_json_read(report, strlen(report)) : NULL;
	const struct csink_json_value *row = csink_json_first(csink_json_get(json, "benchmarks"));
	double iterations = 0;

	/* With no match there is an empty file, and status 0. */
	if (report && *report && !json) {
		csink_why(0, why, size, "its report (--benchmark_out) is no JSON");
		return -1;
	}
	for (; row; row = row->next) {
		const char *message = csink_json_get_text(row, "error_message");

		if (!is_of(row, c))
			continue;
		if (out && !iterations)
			learn_rates(c, row, out);
		if (csink_json_get_true(row, "error_occurred")) {
			csink_why(0, why, size, "the benchmark reports an error: %s", message ? message : "");
			iterations = -1;
			break;
		}
		iterations += fmax(0, csink_json_get_number(row, "iterations"));
	}
	if (!iterations)
		iterations = count_together(csink_json_first(csink_json_get(json, "benchmarks")), c);
	csink_json_free(json);
	return iterations;
}

/* A counter of the whole run, from all repetitions of the case. Of a rate it is what was done, by the time that this
 * took: a harmonic mean, if each iteration does as much. NAN: some repetition has no such number. */
static double join_rows(const struct csink_json_value *row, const struct csink_suite_case *c, const char *name,
			enum csink_suite_better better)
{
	double sum = 0, iterations = 0;

	for (; row; row = row->next) {
		double n = csink_json_get_number(row, "iterations"), value;

		if (!is_of(row, c))
			continue;
		value = csink_json_get_number(row, name);
		iterations += n;
		sum += better == CSINK_SUITE_BETTER_MORE ? n / value : n * value;
		if (!(n > 0 && value >= 0))
			return NAN;
	}
	return better == CSINK_SUITE_BETTER_MORE ? iterations / sum : sum / iterations;
}

static void print_counters(const struct csink_suite_case *c, const struct csink_json_value *row,
			   struct csink_suite_figures *figures)
{
	const struct csink_json_value *value = csink_json_first(row);

	for (uint32_t i = 0; value && i < MAX_ROW; i++, value = value->next) {
		enum csink_suite_better better;
		const char *unit;

		if (!is_counter(value))
			continue;
		better = get_better(c->own, value->key);
		unit = better == CSINK_SUITE_BETTER_LESS         ? "s"
		       : !strcmp(value->key, "bytes_per_second") ? "bytes/s"
		       : !strcmp(value->key, "items_per_second") ? "items/s"
								 : "1/s";
		csink_suite_print_figure(figures, value->key, strlen(value->key), unit, better,
					 better ? join_rows(row, c, value->key, better) : NAN);
	}
}

/* Of a program with a memory manager (benchmark::RegisterMemoryManager()), or with counters. */
static void figures_gbench(const struct csink_suite_case *c, const char *text, struct csink_suite_figures *figures)
{
	static const struct {
		const char *key;
		struct csink_suite_figure figure;
	} known[] = {
		{"allocs_per_iter", {.name = "allocations", .title = "allocations", .unit = "allocs/op"}},
		{"max_bytes_used", {.name = "allocated-peak", .title = "peak allocated bytes", .unit = "bytes"}},
	};
	struct csink_json_value *json = csink_json_read(text, strlen(text));
	const struct csink_json_value *row = csink_json_first(csink_json_get(json, "benchmarks"));

	while (row && !is_of(row, c))
		row = row->next;
	for (size_t i = 0; row && i < CSINK_ARRAY_SIZE(known); i++) {
		double value = csink_json_get_number(row, known[i].key);

		if (value >= 0)
			csink_suite_add_figure(figures, &known[i].figure, value);
	}
	print_counters(c, row, figures);
	csink_json_free(json);
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
