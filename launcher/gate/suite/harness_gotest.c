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

#include "include/internal/base.h"
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

	(void)side;
	/* Several threads do not execute the same instructions twice. */
	if (suite->is_counted && !getenv("GOMAXPROCS"))
		csink_suite_put(&job->env, "GOMAXPROCS=1");
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

/* ---- the figures that it prints ---- */

/* The next word of a line, from *at on; 0 bytes: there is none. */
static const char *next_word(const char **at, const char *end, size_t *len)
{
	const char *word = *at;

	while (word < end && isspace((unsigned char)*word))
		word++;
	*at = word;
	while (*at < end && !isspace((unsigned char)**at))
		++*at;
	*len = (size_t)(*at - word);
	return word;
}

/* NAN: the word is something else than a number. */
static double read_word(const char *word, size_t len)
{
	char *end;
	double value = strtod(word, &end);

	return end == word + len ? value : NAN;
}

static bool is_word(const char *word, size_t len, const char *text)
{
	return strlen(text) == len && !strncmp(word, text, len);
}

#define MAX_DECLARED 32

/* Units of which lines like "Unit p99-ns better=lower" say what is better, as benchstat reads them. */
struct declared {
	uint32_t nr;
	struct {
		const char *unit;
		size_t len;
		enum csink_suite_better better;
	} all[MAX_DECLARED];
};

static void read_declared(const char *text, struct declared *declared)
{
	const char *line, *word;
	size_t len, got;

	while (declared->nr < MAX_DECLARED && (line = csink_suite_line(&text, &len))) {
		const char *at = line, *end = line + len;

		word = next_word(&at, end, &got);
		if (!is_word(word, got, "Unit"))
			continue;
		declared->all[declared->nr].unit = next_word(&at, end, &declared->all[declared->nr].len);
		while ((word = next_word(&at, end, &got)) && got) {
			bool more = is_word(word, got, "better=higher");

			if (!more && !is_word(word, got, "better=lower"))
				continue;
			declared->all[declared->nr++].better = more ? CSINK_SUITE_BETTER_MORE : CSINK_SUITE_BETTER_LESS;
			break;
		}
	}
}

/* A unit that is not declared may be that of a rate. */
static enum csink_suite_better find_better(const struct declared *declared, const char *unit, size_t len)
{
	for (uint32_t i = 0; i < declared->nr; i++) {
		if (declared->all[i].len == len && !strncmp(declared->all[i].unit, unit, len))
			return declared->all[i].better;
	}
	return len > 2 && !strncmp(unit + len - 2, "/s", 2) ? CSINK_SUITE_BETTER_MORE : CSINK_SUITE_BETTER_UNKNOWN;
}

static void print_unit(const struct declared *declared, const char *unit, size_t len, double value,
		       struct csink_suite_figures *figures)
{
	enum csink_suite_better better = find_better(declared, unit, len);
	char shown[CSINK_SUITE_MAX_UNIT + 2];

	snprintf(shown, sizeof(shown), "%.*s", (int)CSINK_MIN(len, sizeof(shown) - 1), unit);
	if (is_word(unit, len, "MB/s"))
		csink_suite_print_figure(figures, "throughput", strlen("throughput"), shown, better, value);
	else
		csink_suite_print_figure(figures, unit, len, shown, better, value);
}

/* "BenchmarkX  100  123 ns/op  4.5 MB/s  16 B/op  1 allocs/op": of the last line about the case, since one iteration is
 * made before. The time is judged as such. */
static void figures_gotest(const struct csink_suite_case *c, const char *text, struct csink_suite_figures *figures)
{
	static const struct csink_suite_figure known[] = {
		{.name = "allocated", .title = "allocated bytes", .unit = "B/op"},
		{.name = "allocations", .title = "allocations", .unit = "allocs/op"}};
	double values[] = {NAN, NAN};
	const char *rest = text, *line, *last = NULL, *end = NULL, *at, *word;
	struct declared declared = {.nr = 0};
	size_t len, name;

	read_declared(text, &declared);
	while ((line = csink_suite_line(&rest, &len))) {
		name = name_of_case(c, line, len);
		if (name) {
			last = line + name;
			end = line + len;
		}
	}
	if (!last)
		return;
	at = last;
	next_word(&at, end, &len); /* iterations */
	while ((word = next_word(&at, end, &len)) && len) {
		double value = read_word(word, len);

		word = next_word(&at, end, &len);
		if (is_word(word, len, known[0].unit))
			values[0] = value;
		else if (is_word(word, len, known[1].unit))
			values[1] = value;
		else if (len && !is_word(word, len, "ns/op"))
			print_unit(&declared, word, len, value, figures);
	}
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(known); i++) {
		if (isfinite(values[i]) && values[i] >= 0)
			csink_suite_add_figure(figures, &known[i], values[i]);
	}
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
