/*
 * A gate's result as JUnit XML, as Ant's schema has it: a suite, in it a case for each question. A case that may have
 * regressed and is no failure is skipped, with the reason.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "launcher/base/text.h"
#include "launcher/commands/gate/gate_result.h"

void csink_gate_junit_open(FILE *out, const char *class, const char *name)
{
	csink_text_print_as(out, CSINK_TEXT_XML, "    <testcase name=\"%s\" classname=\"countersink.%s\" time=\"0\">",
			    name, class);
}

void csink_gate_junit_error(FILE *out, const char *class, const char *error)
{
	csink_gate_junit_open(out, class, "runs");
	csink_text_print_as(out, CSINK_TEXT_XML,
			    "\n      <error type=\"error\" message=\"%s\"></error>\n    </testcase>\n", error);
}

void csink_gate_junit_end(FILE *out)
{
	fputs("</system-out>\n    <system-err></system-err>\n  </testsuite>\n</testsuites>\n", out);
}

static void print_case(FILE *out, const struct csink_gate_result *r, const struct csink_gate_row *row)
{
	char name[512], line[1024], where[2048];
	int64_t at;
	const char *file = csink_gate_row_file(r, row, &at);

	csink_gate_row_name(r, row, name, sizeof(name));
	csink_gate_row_line(r, row, line, sizeof(line));
	csink_gate_junit_open(out, row->metric >= 0 ? "command" : "function", name);
	if (csink_gate_is_failure(r, row)) {
		csink_text_print_as(out, CSINK_TEXT_XML, "\n      <failure type=\"%s\" message=\"%s\">",
				    csink_gate_verdict_words[row->verdict], line);
		if (file)
			csink_text_print_as(out, CSINK_TEXT_XML, "%s:%lld: ", file, (long long)at);
		csink_text_put(out, CSINK_TEXT_XML, row->note ? row->note : line);
		if (csink_gate_where(r, row, where, sizeof(where)) >= 0)
			csink_text_print_as(out, CSINK_TEXT_XML, "; %s", where);
		fputs("</failure>\n    ", out);
	} else if (row->verdict == CSINK_GATE_INCONCLUSIVE) {
		csink_text_print_as(out, CSINK_TEXT_XML, "\n      <skipped message=\"%s\"/>\n    ", line);
	}
	fputs("</testcase>\n", out);
}

void csink_gate_junit_head(FILE *out, const struct csink_gate_junit *counts)
{
	char host[256] = "localhost", when[32] = "1970-01-01T00:00:00";
	time_t now = time(NULL);
	struct tm tm;

	gethostname(host, sizeof(host) - 1);
	if (gmtime_r(&now, &tm))
		strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%S", &tm);
	fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n", out);
	csink_text_print_as(
		out, CSINK_TEXT_XML,
		"  <testsuite id=\"0\" package=\"countersink\" name=\"countersink gate\" timestamp=\"%s\" "
		"hostname=\"%s\" time=\"%.3f\" tests=\"%u\" failures=\"%u\" errors=\"%u\" skipped=\"%u\">\n",
		when, *host ? host : "localhost", counts->seconds, counts->tests, counts->failures, counts->errors,
		counts->skipped);
}

static void print_head(FILE *out, const struct csink_gate_result *r)
{
	uint32_t nr = r->error ? 0 : r->verdicts->nr_rows;
	struct csink_gate_junit counts = {
		.seconds = r->seconds, .tests = nr + (r->error != NULL), .errors = r->error != NULL};

	for (uint32_t i = 0; i < nr; i++) {
		bool failed = csink_gate_is_failure(r, &r->verdicts->rows[i]);

		counts.failures += failed;
		counts.skipped += !failed && r->verdicts->rows[i].verdict == CSINK_GATE_INCONCLUSIVE;
	}
	csink_gate_junit_head(out, &counts);
}

void csink_gate_junit_property(FILE *out, char *fact)
{
	char *value = strchr(fact, ':');

	if (!value)
		return;
	*value = '\0';
	csink_text_print_as(out, CSINK_TEXT_XML, "      <property name=\"%s\" value=\"%s\"/>\n", fact,
			    value + 1 + strspn(value + 1, " "));
}

static void print_properties(FILE *out, const struct csink_gate_result *r)
{
	char text[4096];

	fputs("    <properties>\n", out);
	for (uint32_t i = 0; csink_gate_fact(r, i, text, sizeof(text)) >= 0; i++)
		csink_gate_junit_property(out, text);
	fputs("    </properties>\n", out);
}

void csink_gate_print_junit(FILE *out, const struct csink_gate_result *r)
{
	char text[4096];

	print_head(out, r);
	print_properties(out, r);
	if (r->error)
		csink_gate_junit_error(out, "command", r->error);
	for (uint32_t i = 0; !r->error && i < r->verdicts->nr_rows; i++)
		print_case(out, r, &r->verdicts->rows[i]);
	csink_gate_headline(r, text, sizeof(text));
	csink_text_print_as(out, CSINK_TEXT_XML, "    <system-out>%s", text);
	if (csink_gate_where(r, NULL, text, sizeof(text)) >= 0)
		csink_text_print_as(out, CSINK_TEXT_XML, "&#10;where the %s went: %s", csink_gate_unit_word(r), text);
	csink_gate_junit_end(out);
}
