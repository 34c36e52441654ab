/*
 * JMH, of Java. A run is one process without forks (-f 0), since the gate makes a process for each run, and measures
 * one single shot of as many calls as are asked for, after a shot of warm-up of as many. What it prints and writes is
 * read as its documentation has it. A benchmark with parameters is one case, with all of their combinations.
 */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/base/json_read.h"
#include "launcher/gate/suite/harness.h"

#define SPECIAL "\\.^$|?*+()[]{}" /* of Java's regular expressions */

/* "package.Class.method", and nothing else in the line. */
static size_t name_of(const char *line, size_t len)
{
	bool has_dot = false;

	while (len && isspace((unsigned char)line[len - 1]))
		len--;
	for (size_t i = 0; i < len; i++) {
		if (!isalnum((unsigned char)line[i]) && !strchr("._$", line[i]) && !(line[i] & 0x80))
			return 0;
		has_dot |= line[i] == '.';
	}
	return has_dot ? len : 0;
}

static int list_jmh(struct csink_suite *suite, int side)
{
	static const char *const more[] = {"-l", NULL};

	return csink_suite_list_lines(suite, side, more, name_of);
}

static void choose_jmh(struct csink_suite *suite, const struct csink_suite_case *c, int side, uint64_t n,
		       struct csink_suite_job *job)
{
	static char *const fixed[] = {"-bm", "ss",   "-i",   "1",   "-wi",  "1",    "-f",
				      "0",   "-foe", "true", "-rf", "json", "-rff", NULL};
	struct csink_suite_words *argv = &job->argv;
	char *name = csink_suite_escape(c->name, SPECIAL);

	(void)side;
	argv->lacked_memory |= !name;
	csink_suite_put(argv, "^%s$", name ? name : "");
	free(name);
	csink_suite_put(argv, "-bs");
	csink_suite_put(argv, "%" PRIu64, n);
	csink_suite_put(argv, "-wbs");
	csink_suite_put(argv, "%" PRIu64, n);
	csink_suite_put_all(argv, fixed);
	csink_suite_put(argv, "%s", suite->report);
}

/* "ms/op": in seconds; NAN: no time. */
static double unit_of(const char *unit)
{
	static const struct {
		const char *unit;
		double seconds;
	} known[] = {{"ns/op", 1e-9}, {"us/op", 1e-6}, {"ms/op", 1e-3}, {"s/op", 1}, {"min/op", 60}};

	for (size_t i = 0; unit && i < CSINK_ARRAY_SIZE(known); i++) {
		if (!strcmp(unit, known[i].unit))
			return known[i].seconds;
	}
	return NAN;
}

/* What the rows of the case have made, and the seconds that it took. */
static double read_rows(const struct csink_suite_case *c, const char *report, double *seconds)
{
	struct csink_json_value *json = report ? csink_json_read(report, strlen(report)) : NULL;
	double made = 0;

	*seconds = 0;
	for (const struct csink_json_value *row = csink_json_first(json); row; row = row->next) {
		const struct csink_json_value *metric = csink_json_get(row, "primaryMetric");
		const char *name = csink_json_get_text(row, "benchmark");
		double unit = unit_of(csink_json_get_text(metric, "scoreUnit"));

		if (!name || strcmp(name, c->name) != 0)
			continue;
		made += csink_json_get_number(row, "measurementIterations") *
			csink_json_get_number(row, "measurementBatchSize");
		*seconds += csink_json_get_number(metric, "score") * unit;
	}
	csink_json_free(json);
	return made;
}

static double count_jmh(struct csink_suite_case *c, const char *out, const char *report, char *why, size_t size)
{
	double seconds, made = read_rows(c, report, &seconds);

	(void)out;
	if (!isnan(made))
		return made;
	return csink_why(-1, why, size, "its report (-rf json) has no iterations of the benchmark");
}

static double seconds_jmh(const struct csink_suite_case *c, const char *out, const char *report)
{
	double seconds;

	(void)out;
	read_rows(c, report, &seconds);
	return seconds;
}

const struct csink_suite_harness csink_suite_jmh = {
	.name = "jmh",
	.list = list_jmh,
	.choose = choose_jmh,
	.count = count_jmh,
	.seconds = seconds_jmh,
};
