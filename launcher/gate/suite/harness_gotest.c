/*
 * The test program of a Go package (go test -c). Sub-benchmarks are known only when they have run, so all of them run
 * once to be listed. A name's parts between slashes are matched one by one, each by a regular expression.
 */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/gate/suite/harness.h"

#define SPECIAL "\\.+*?()|[]{}^$" /* of Go's regexp.QuoteMeta */

static bool is_name(const char *line, size_t len)
{
	static const char *const kinds[] = {"Benchmark", "Test", "Example", "Fuzz"};

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(kinds); i++) {
		if (len >= strlen(kinds[i]) && !strncmp(line, kinds[i], strlen(kinds[i])))
			return true;
	}
	return false;
}

/* Are there only names of Go's tests, and at least one? */
static bool is_list(const char *text)
{
	const char *line;
	size_t len, nr = 0;

	for (; (line = csink_suite_line(&text, &len)); nr++) {
		if (!is_name(line, len))
			return false;
	}
	return nr;
}

static int is_gotest(struct csink_suite *suite)
{
	static const char *const more[] = {"-test.list=.*", NULL};
	struct csink_suite_answer answer;
	int err = csink_suite_ask_side(suite, CSINK_GATE_NEW, more, &answer);
	bool is;

	if (err)
		return err;
	is = csink_suite_answer_is_ok(&answer) && is_list(answer.out);
	csink_suite_answer_free(&answer);
	return is;
}

/* "BenchmarkX/y-2   100   123 ns/op": the length of the name, with the number of CPUs; 0: no such line. */
static size_t name_of(const char *line, size_t len)
{
	size_t name = 0, at;
	char *end;

	while (name < len && !isspace((unsigned char)line[name]))
		name++;
	at = name + strspn(line + name, " \t");
	if (strncmp(line, "Benchmark", 9) != 0 || at == name || at >= len || !isdigit((unsigned char)line[at]))
		return 0;
	strtod(line + at, &end);
	return *end == ' ' || *end == '\t' ? name : 0;
}

static int list_gotest(struct csink_suite *suite, int side)
{
	static const char *const more[] = {"-test.run=^$", "-test.bench=.", "-test.benchtime=1x", "-test.cpu=1", NULL};

	return csink_suite_list_lines(suite, side, more, name_of);
}

static void choose_gotest(struct csink_suite *suite, const struct csink_suite_case *c, int side, uint64_t n,
			  struct csink_suite_job *job)
{
	char *name = csink_suite_escape(c->name, SPECIAL), *pattern = calloc(3, strlen(c->name) + 4), *out = pattern;

	(void)suite;
	(void)side;
	if (name && pattern) {
		out = stpcpy(out, "^");
		for (const char *at = name; *at; at++) {
			if (*at == '/')
				out = stpcpy(out, "$/^");
			else
				*out++ = *at;
		}
		strcpy(out, "$");
	}
	job->argv.lacked_memory |= !name || !pattern;
	csink_suite_put(&job->argv, "-test.run=^$");
	csink_suite_put(&job->argv, "-test.bench=%s", pattern ? pattern : "");
	csink_suite_put(&job->argv, "-test.benchtime=%" PRIu64 "x", n);
	csink_suite_put(&job->argv, "-test.benchmem");
	free(name);
	free(pattern);
}

/* The length of the name in a line about the case, with the number of CPUs that may be behind it; 0: it is none. */
static size_t name_of_case(const struct csink_suite_case *c, const char *line, size_t len)
{
	size_t own = strlen(c->name), name = name_of(line, len);

	if (name < own || !name || strncmp(line, c->name, own) != 0)
		return 0;
	return name == own || (line[own] == '-' && own + 1 + strspn(line + own + 1, "0123456789") == name) ? name : 0;
}

static double count_gotest(struct csink_suite_case *c, const char *out, const char *report, char *why, size_t size)
{
	double sum = 0;
	const char *line;
	size_t len, name;

	(void)report;
	(void)why;
	(void)size;
	while (out && (line = csink_suite_line(&out, &len))) {
		name = name_of_case(c, line, len);
		sum += name ? strtod(line + name, NULL) : 0;
	}
	return sum;
}

/* "BenchmarkX  100  123 ns/op  4.5 MB/s  16 B/op  1 allocs/op": of the last line about the case, since one iteration is
 * made before. */
static uint32_t figures_gotest(const struct csink_suite_case *c, const char *text,
			       struct csink_suite_figure figures[CSINK_SUITE_MAX_FIGURES])
{
	static const struct csink_suite_figure known[] = {{"allocated", "allocated bytes", "B/op", NAN},
							  {"allocations", "allocations", "allocs/op", NAN}};
	double values[] = {NAN, NAN};
	uint32_t nr = 0;
	const char *line;
	size_t len, name;

	while ((line = csink_suite_line(&text, &len))) {
		name = name_of_case(c, line, len);
		for (const char *at = line + name; name && at < line + len;) {
			char *end;
			double value = strtod(at, &end);
			size_t unit = end > at && *end == ' ' ? strcspn(end + 1, " \t\n") : 0;

			for (size_t i = 0; i < CSINK_ARRAY_SIZE(known); i++) {
				if (unit == strlen(known[i].unit) && !strncmp(end + 1, known[i].unit, unit))
					values[i] = value;
			}
			at = end > at ? end : at + 1;
		}
	}
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(known); i++) {
		figures[nr] = known[i];
		figures[nr].value = values[i];
		nr += !isnan(values[i]);
	}
	return nr;
}

const struct csink_suite_harness csink_suite_gotest = {
	.name = "gotest",
	.is_kind = is_gotest,
	.list = list_gotest,
	.choose = choose_gotest,
	.count = count_gotest,
	.figures = figures_gotest,
	.prints_number = true,
};
