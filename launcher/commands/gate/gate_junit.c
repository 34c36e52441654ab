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

static void print_attribute(FILE *out, const char *name, const char *value)
{
	fprintf(out, " %s=\"", name);
	csink_text_put(out, CSINK_TEXT_XML, value);
	fputc('"', out);
}

static void print_case(FILE *out, const struct csink_gate_result *r, const struct csink_gate_row *row)
{
	char name[512], line[1024], where[2048];
	int64_t at;
	const char *file = csink_gate_row_file(r, row, &at);

	csink_gate_row_name(r, row, name, sizeof(name));
	csink_gate_row_line(r, row, line, sizeof(line));
	fputs("    <testcase", out);
	print_attribute(out, "name", name);
	print_attribute(out, "classname", row->metric >= 0 ? "countersink.command" : "countersink.function");
	fputs(" time=\"0\">", out);
	if (csink_gate_is_failure(r, row)) {
		fputs("\n      <failure", out);
		print_attribute(out, "type", csink_gate_verdict_words[row->verdict]);
		print_attribute(out, "message", line);
		fputs(">", out);
		if (file) {
			csink_text_put(out, CSINK_TEXT_XML, file);
			fprintf(out, ":%lld: ", (long long)at);
		}
		csink_text_put(out, CSINK_TEXT_XML, row->note ? row->note : line);
		if (csink_gate_where(r, row, where, sizeof(where)) >= 0) {
			fputs("; ", out);
			csink_text_put(out, CSINK_TEXT_XML, where);
		}
		fputs("</failure>\n    ", out);
	} else if (row->verdict == CSINK_GATE_INCONCLUSIVE) {
		fputs("\n      <skipped", out);
		print_attribute(out, "message", line);
		fputs("/>\n    ", out);
	}
	fputs("</testcase>\n", out);
}

static void print_head(FILE *out, const struct csink_gate_result *r)
{
	char host[256] = "localhost", when[32] = "1970-01-01T00:00:00", text[64];
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
	fputs("  <testsuite id=\"0\" package=\"countersink\" name=\"countersink gate\"", out);
	print_attribute(out, "timestamp", when);
	print_attribute(out, "hostname", *host ? host : "localhost");
	snprintf(text, sizeof(text), "%.3f", r->seconds);
	print_attribute(out, "time", text);
	fprintf(out, " tests=\"%u\" failures=\"%u\" errors=\"%d\" skipped=\"%u\">\n", nr + (r->error != NULL), failures,
		r->error != NULL, skipped);
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
		fputs("      <property", out);
		print_attribute(out, "name", text);
		print_attribute(out, "value", value + 1 + strspn(value + 1, " "));
		fputs("/>\n", out);
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
		fputs("    <testcase name=\"runs\" classname=\"countersink.command\" time=\"0\">\n      <error "
		      "type=\"error\"",
		      out);
		print_attribute(out, "message", r->error);
		fputs("></error>\n    </testcase>\n", out);
	}
	for (uint32_t i = 0; !r->error && i < r->verdicts->nr_rows; i++)
		print_case(out, r, &r->verdicts->rows[i]);
	csink_gate_headline(r, text, sizeof(text));
	fputs("    <system-out>", out);
	csink_text_put(out, CSINK_TEXT_XML, text);
	if (csink_gate_where(r, NULL, text, sizeof(text)) >= 0) {
		fputs("&#10;where the time went: ", out);
		csink_text_put(out, CSINK_TEXT_XML, text);
	}
	fputs("</system-out>\n    <system-err></system-err>\n  </testsuite>\n</testsuites>\n", out);
}
