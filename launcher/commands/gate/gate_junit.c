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

/* A case, up to what it has of its own. */
static void open_case(FILE *out, const char *class, const char *name)
{
	csink_text_print_as(out, CSINK_TEXT_XML, "    <testcase name=\"%s\" classname=\"countersink.%s\" time=\"0\">",
			    name, class);
}

static void print_case(FILE *out, const struct csink_gate_result *r, const struct csink_gate_row *row)
{
	char name[512], line[1024], where[2048];
	int64_t at;
	const char *file = csink_gate_row_file(r, row, &at);

	csink_gate_row_name(r, row, name, sizeof(name));
	csink_gate_row_line(r, row, line, sizeof(line));
	open_case(out, row->metric >= 0 ? "command" : "function", name);
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

static void print_head(FILE *out, const struct csink_gate_result *r)
{
	char host[256] = "localhost", when[32] = "1970-01-01T00:00:00";
	uint32_t failures = 0, skipped = 0, nr = r->error ? 0 : r->verdicts->nr_rows;
	time_t now = time(NULL);
	struct tm tm;

	gethostname(host, sizeof(host) - 1);
	if (gmtime_r(&now, &tm))
		strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%S", &tm);
	for (uint32_t i = 0; i < nr; i++) {
		bool failed = csink_gate_is_failure(r, &r->verdicts->rows[i]);

		failures += failed;
		skipped += !failed && r->verdicts->rows[i].verdict == CSINK_GATE_INCONCLUSIVE;
	}
	csink_text_print_as(
		out, CSINK_TEXT_XML,
		"  <testsuite id=\"0\" package=\"countersink\" name=\"countersink gate\" timestamp=\"%s\" "
		"hostname=\"%s\" time=\"%.3f\" tests=\"%u\" failures=\"%u\" errors=\"%d\" skipped=\"%u\">\n",
		when, *host ? host : "localhost", r->seconds, nr + (r->error != NULL), failures, r->error != NULL,
		skipped);
}

static void print_properties(FILE *out, const struct csink_gate_result *r)
{
	char text[4096], *value;

	fputs("    <properties>\n", out);
	for (uint32_t i = 0; csink_gate_fact(r, i, text, sizeof(text)) >= 0; i++) {
		value = strchr(text, ':');
		if (!value)
			continue;
		*value = '\0';
		csink_text_print_as(out, CSINK_TEXT_XML, "      <property name=\"%s\" value=\"%s\"/>\n", text,
				    value + 1 + strspn(value + 1, " "));
	}
	fputs("    </properties>\n", out);
}

void csink_gate_print_junit(FILE *out, const struct csink_gate_result *r)
{
	char text[4096];

	fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n", out);
	print_head(out, r);
	print_properties(out, r);
	if (r->error) {
		open_case(out, "command", "runs");
		csink_text_print_as(out, CSINK_TEXT_XML,
				    "\n      <error type=\"error\" message=\"%s\"></error>\n    </testcase>\n",
				    r->error);
	}
	for (uint32_t i = 0; !r->error && i < r->verdicts->nr_rows; i++)
		print_case(out, r, &r->verdicts->rows[i]);
	csink_gate_headline(r, text, sizeof(text));
	csink_text_print_as(out, CSINK_TEXT_XML, "    <system-out>%s", text);
	if (csink_gate_where(r, NULL, text, sizeof(text)) >= 0)
		csink_text_print_as(out, CSINK_TEXT_XML, "&#10;where the time went: %s", text);
	fputs("</system-out>\n    <system-err></system-err>\n  </testsuite>\n</testsuites>\n", out);
}
