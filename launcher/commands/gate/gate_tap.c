/*
 * A gate's result as TAP. Version 13, which is what Debian 12's prove reads; the plan comes last, so that what was cut
 * off fails.
 */
#include <math.h>
#include <stdio.h>

#include "launcher/base/text.h"
#include "launcher/commands/gate/gate_result.h"

void csink_gate_put_yaml(FILE *out, const char *key, const char *text)
{
	csink_text_print_as(out, CSINK_TEXT_YAML, "  %s: \"%s\"\n", key, text);
}

static void yaml_number(FILE *out, const char *key, double value)
{
	if (isfinite(value))
		fprintf(out, "  %s: %.6g\n", key, value);
	else
		fprintf(out, "  %s: %s\n", key, isnan(value) ? "null" : value > 0 ? ".inf" : "-.inf");
}

static void print_yaml(FILE *out, const struct csink_gate_result *r, const struct csink_gate_row *row)
{
	int64_t line;
	const char *file = csink_gate_row_file(r, row, &line);
	char text[2048];

	fputs("  ---\n", out);
	csink_gate_put_yaml(out, "verdict", csink_gate_verdict_words[row->verdict]);
	yaml_number(out, "ratio", row->ratio);
	yaml_number(out, "low", row->interval.low);
	yaml_number(out, "high", row->interval.high);
	yaml_number(out, "q", row->q);
	yaml_number(out, "measured_ratio", row->cost_ratio);
	yaml_number(out, "old", row->means[0]);
	yaml_number(out, "new", row->means[1]);
	csink_gate_put_yaml(out, "unit", csink_gate_row_unit(r, row));
	if (row->function >= 0) {
		snprintf(text, sizeof(text), "%.1f %% instead of %.1f %%", row->shares[1] * 100, row->shares[0] * 100);
		csink_gate_put_yaml(out, "share", text);
	}
	if (file) {
		csink_gate_put_yaml(out, "file", file);
		yaml_number(out, "line", (double)line);
	}
	if (row->runs_needed)
		yaml_number(out, "runs_needed", row->runs_needed);
	if (csink_gate_where(r, row, text, sizeof(text)) >= 0)
		csink_gate_put_yaml(out, "where", text);
	if (row->note)
		csink_gate_put_yaml(out, "note", row->note);
	fputs("  ...\n", out);
}

static void print_point(FILE *out, const struct csink_gate_result *r, uint32_t nr)
{
	const struct csink_gate_row *row = &r->verdicts->rows[nr];
	char name[512], line[1024];

	csink_gate_row_name(r, row, name, sizeof(name));
	csink_gate_row_line(r, row, line, sizeof(line));
	csink_text_print_as(out, CSINK_TEXT_TAP, "%sok %u - %s %s\n", csink_gate_is_failure(r, row) ? "not " : "",
			    nr + 1, name, line);
	if (row->verdict != CSINK_GATE_UNCHANGED || row->note)
		print_yaml(out, r, row);
}

void csink_gate_print_tap(FILE *out, const struct csink_gate_result *r)
{
	char text[4096];

	fputs("TAP version 13\n", out);
	for (uint32_t i = 0; csink_gate_fact(r, i, text, sizeof(text)) >= 0; i++)
		csink_text_print(out, "# %s\n", text);
	if (r->error) {
		csink_text_print_as(out, CSINK_TEXT_TAP, "Bail out!  %s\n", r->error);
		return;
	}
	for (uint32_t i = 0; i < r->verdicts->nr_rows; i++)
		print_point(out, r, i);
	if (csink_gate_where(r, NULL, text, sizeof(text)) >= 0)
		csink_text_print(out, "# where the %s went: %s\n", csink_gate_unit_word(r), text);
	csink_gate_headline(r, text, sizeof(text));
	csink_text_print(out, "# %s\n", text);
	fprintf(out, "1..%u%s\n", r->verdicts->nr_rows, r->verdicts->nr_rows ? "" : " # SKIP nothing to compare");
}
