/* A suite's result as JUnit XML: a case for each of its own. Inconclusive ones are skipped, with the reason. */
#include <string.h>

#include "launcher/base/text.h"
#include "launcher/commands/gate/suite_result.h"

static bool is_skipped(const struct csink_suite_result *r, const struct csink_suite_case *c)
{
	return !csink_suite_is_failure(r, c) &&
	       csink_suite_word(r, c) == csink_gate_verdict_words[CSINK_GATE_INCONCLUSIVE];
}

static void print_head(FILE *out, const struct csink_suite_result *r)
{
	struct csink_gate_junit counts = {.seconds = r->seconds};

	if (r->error)
		counts.tests = counts.errors = 1;
	for (uint32_t i = 0; !r->error && i < r->suite->nr; i++) {
		const struct csink_suite_case *c = &r->suite->cases[i];

		counts.tests++;
		counts.errors += c->state == CSINK_SUITE_FAILED;
		counts.failures += c->state != CSINK_SUITE_FAILED && csink_suite_is_failure(r, c);
		counts.skipped += is_skipped(r, c);
	}
	csink_gate_junit_head(out, &counts);
}

static void print_case(FILE *out, const struct csink_suite_result *r, const struct csink_suite_case *c)
{
	struct csink_gate_result one = csink_suite_case_result(r, c);
	const struct csink_gate_row *row = csink_suite_main_row(r, c);
	const char *file = NULL, *word = c->state == CSINK_SUITE_FAILED ? "error" : "failure";
	char line[4096], where[4096];
	int64_t at;

	csink_suite_case_line(r, c, line, sizeof(line));
	csink_gate_junit_open(out, "case", c->name);
	if (csink_suite_is_failure(r, c)) {
		csink_text_print_as(out, CSINK_TEXT_XML, "\n      <%s type=\"%s\" message=\"%s\">", word,
				    csink_suite_word(r, c), line);
		file = row ? csink_gate_row_file(&one, row, &at) : NULL;
		if (file)
			csink_text_print_as(out, CSINK_TEXT_XML, "%s:%lld: ", file, (long long)at);
		csink_text_put(out, CSINK_TEXT_XML, line);
		if (c->state == CSINK_SUITE_JUDGED && csink_gate_where(&one, NULL, where, sizeof(where)) >= 0)
			csink_text_print_as(out, CSINK_TEXT_XML, "; %s", where);
		csink_text_print_as(out, CSINK_TEXT_XML, "</%s>\n    ", word);
	} else if (is_skipped(r, c)) {
		csink_text_print_as(out, CSINK_TEXT_XML, "\n      <skipped message=\"%s\"/>\n    ", line);
	}
	fputs("</testcase>\n", out);
}

void csink_suite_print_junit(FILE *out, const struct csink_suite_result *r)
{
	char text[4096];

	print_head(out, r);
	fputs("    <properties>\n", out);
	for (uint32_t i = 1; csink_suite_fact(r, i, text, sizeof(text)) >= 0; i++)
		csink_gate_junit_property(out, text);
	fputs("    </properties>\n", out);
	if (r->error)
		csink_gate_junit_error(out, "case", r->error);
	for (uint32_t i = 0; !r->error && i < r->suite->nr; i++)
		print_case(out, r, &r->suite->cases[i]);
	csink_suite_headline(r, text, sizeof(text));
	csink_text_print_as(out, CSINK_TEXT_XML, "    <system-out>%s", text);
	csink_gate_junit_end(out);
}
