/* The outputs of a suite: TAP 13 with a point for each case, JSON, Markdown, and the file of the verdict. */
#include <math.h>
#include <stdio.h>

#include "launcher/base/json.h"
#include "launcher/base/text.h"
#include "launcher/commands/gate/suite_result.h"

/* ---- TAP ---- */

/* The rows of a case that are no plain "unchanged", one a line. */
static void print_rows(FILE *out, const struct csink_suite_result *r, const struct csink_suite_case *c)
{
	struct csink_gate_result one = csink_suite_case_result(r, c);
	char name[512], line[1024];
	int64_t nr;

	for (uint32_t i = 0; i < c->verdicts.nr_rows; i++) {
		const struct csink_gate_row *row = &c->verdicts.rows[i];
		const char *file;

		if (row->verdict == CSINK_GATE_UNCHANGED && !row->note)
			continue;
		csink_gate_row_name(&one, row, name, sizeof(name));
		csink_gate_row_line(&one, row, line, sizeof(line));
		csink_text_print_as(out, CSINK_TEXT_YAML, "    - \"%s %s", name, line);
		file = csink_gate_row_file(&one, row, &nr);
		if (file)
			csink_text_print_as(out, CSINK_TEXT_YAML, " (%s:%lld)", file, (long long)nr);
		if (row->note)
			csink_text_print_as(out, CSINK_TEXT_YAML, "; %s", row->note);
		fputs("\"\n", out);
	}
}

static void print_point(FILE *out, const struct csink_suite_result *r, uint32_t nr)
{
	const struct csink_suite_case *c = &r->suite->cases[nr];
	struct csink_gate_result one = csink_suite_case_result(r, c);
	char line[4096], where[4096];

	csink_suite_case_line(r, c, line, sizeof(line));
	csink_text_print_as(out, CSINK_TEXT_TAP, "%sok %u - %s: %s\n", csink_suite_is_failure(r, c) ? "not " : "",
			    nr + 1, c->name, line);
	if (c->state != CSINK_SUITE_JUDGED)
		return;
	fputs("  ---\n", out);
	csink_gate_put_yaml(out, "verdict", csink_suite_word(r, c));
	fprintf(out, "  pairs: %u\n", c->pairs[1]);
	if (!c->is_by_time)
		fprintf(out, "  iterations: %llu\n", (unsigned long long)c->n);
	fprintf(out, "  p: %.3g\n", c->p);
	if (csink_gate_where(&one, NULL, where, sizeof(where)) >= 0)
		csink_gate_put_yaml(out, "where", where);
	fputs("  rows:\n", out);
	print_rows(out, r, c);
	fputs("  ...\n", out);
}

void csink_suite_print_tap(FILE *out, const struct csink_suite_result *r)
{
	char text[4096];

	fputs("TAP version 13\n", out);
	for (uint32_t i = 0; csink_suite_fact(r, i, text, sizeof(text)) >= 0; i++)
		csink_text_print(out, "# %s\n", text);
	if (r->error) {
		csink_text_print_as(out, CSINK_TEXT_TAP, "Bail out!  %s\n", r->error);
		return;
	}
	for (uint32_t i = 0; i < r->suite->nr; i++)
		print_point(out, r, i);
	fprintf(out, "1..%u\n", r->suite->nr);
}

/* ---- JSON ---- */

static void json_row(struct csink_json *json, const struct csink_gate_result *one, const struct csink_gate_row *row)
{
	csink_json_open(json, NULL, '{');
	if (row->function >= 0) {
		csink_json_text(json, "function", one->data->functions.all[row->function].name);
		csink_json_text(json, "module", one->verdicts->modules[row->function]);
		csink_json_real(json, "share", row->shares[CSINK_GATE_NEW]);
	} else {
		csink_json_text(json, "metric", one->data->metrics[row->metric].name);
	}
	csink_json_text(json, "verdict", csink_gate_verdict_words[row->verdict]);
	csink_json_real(json, "ratio", row->ratio);
	csink_json_real(json, "low", row->interval.low);
	csink_json_real(json, "high", row->interval.high);
	csink_json_real(json, "q", row->q);
	csink_json_real(json, "old", row->means[CSINK_GATE_OLD]);
	csink_json_real(json, "new", row->means[CSINK_GATE_NEW]);
	csink_json_text(json, "unit", csink_gate_row_unit(one, row));
	csink_json_close(json, '}');
}

static void json_case(struct csink_json *json, const struct csink_suite_result *r, const struct csink_suite_case *c)
{
	struct csink_gate_result one = csink_suite_case_result(r, c);

	csink_json_open(json, NULL, '{');
	csink_json_text(json, "case", c->name);
	csink_json_text(json, "verdict", csink_suite_word(r, c));
	csink_json_text(json, "error", c->state == CSINK_SUITE_FAILED ? c->error : NULL);
	csink_json_known(json, "iterations", !c->is_by_time, (int64_t)c->n);
	csink_json_number(json, "screened_pairs", c->pairs[0]);
	csink_json_number(json, "confirmed_pairs", c->pairs[1]);
	csink_json_real(json, "screen_p", c->screen_p);
	csink_json_real(json, "p", c->p);
	csink_json_open(json, "rows", '[');
	for (uint32_t i = 0; c->state == CSINK_SUITE_JUDGED && i < c->verdicts.nr_rows; i++)
		json_row(json, &one, &c->verdicts.rows[i]);
	csink_json_close(json, ']');
	csink_json_close(json, '}');
}

void csink_suite_print_json(FILE *out, const struct csink_suite_result *r)
{
	struct csink_json json;
	char headline[2048];

	csink_suite_headline(r, headline, sizeof(headline));
	csink_json_init(&json, out, 0);
	csink_json_open(&json, NULL, '{');
	csink_json_number(&json, "status", csink_suite_status(r));
	csink_json_text(&json, "headline", headline);
	csink_json_text(&json, "error", r->error);
	csink_json_text(&json, "suite", r->kind);
	csink_json_text(&json, "old", r->gate->commands[CSINK_GATE_OLD]);
	csink_json_text(&json, "new", r->gate->commands[CSINK_GATE_NEW]);
	csink_json_text(&json, "event", r->gate->event);
	csink_json_text(&json, "engine", r->gate->engine);
	csink_json_real(&json, "seconds", r->seconds);
	csink_json_number(&json, "seed", (int64_t)r->gate->rules->seed);
	csink_json_real(&json, "threshold", r->gate->rules->threshold);
	csink_json_real(&json, "alpha", r->gate->rules->alpha);
	csink_json_texts(&json, "notes", r->gate->notes, r->gate->nr_notes);
	csink_json_open(&json, "cases", '[');
	for (uint32_t i = 0; !r->error && i < r->suite->nr; i++)
		json_case(&json, r, &r->suite->cases[i]);
	csink_json_close(&json, ']');
	csink_json_close(&json, '}');
	fputc('\n', out);
}

/* ---- Markdown ---- */

void csink_suite_print_markdown(FILE *out, const struct csink_suite_result *r)
{
	char text[4096];

	csink_suite_headline(r, text, sizeof(text));
	csink_text_print_as(out, CSINK_TEXT_MARKDOWN, "### countersink gate: %s\n\n", text);
	for (uint32_t i = 0, nr = 0; !r->error && i < r->suite->nr; i++) {
		const struct csink_suite_case *c = &r->suite->cases[i];

		/* What is unchanged is in the headline's number. */
		if (!csink_suite_is_failure(r, c) && c->state == CSINK_SUITE_QUIET)
			continue;
		if (!nr++)
			fputs("| verdict | case | |\n|---|---|---|\n", out);
		csink_suite_case_line(r, c, text, sizeof(text));
		csink_text_print_as(out, CSINK_TEXT_MARKDOWN, "| %s | %s | %s |\n", csink_suite_word(r, c), c->name,
				    text);
	}
	fputc('\n', out);
	for (uint32_t i = 1; csink_suite_fact(r, i, text, sizeof(text)) >= 0; i++)
		csink_text_print_as(out, CSINK_TEXT_MARKDOWN, "- %s\n", text);
	fputc('\n', out);
}

/* ---- the verdict ---- */

void csink_suite_print_verdict(FILE *out, const struct csink_suite_result *r)
{
	static const char *const words[] = {"ok", "error", "error", "regressed", "error"};
	int status = csink_suite_status(r);
	const char *word = words[status];
	char headline[2048];
	bool slower = false, open = false;

	csink_suite_headline(r, headline, sizeof(headline));
	for (uint32_t i = 0; !r->error && i < r->suite->nr; i++) {
		slower |= csink_suite_is_slower(r, &r->suite->cases[i]);
		open |= csink_suite_word(r, &r->suite->cases[i]) == csink_gate_verdict_words[CSINK_GATE_INCONCLUSIVE];
	}
	if (!r->error && !slower && open && status != CSINK_EXIT_FAILED)
		word = csink_gate_verdict_words[CSINK_GATE_INCONCLUSIVE];
	csink_gate_put_verdict(out, word, status, headline);
}
