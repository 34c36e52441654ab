/* The outputs of a suite: TAP 13 with a point for each case, Markdown, the file of the verdict, and a badge. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "launcher/base/format.h"
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
	csink_gate_put_yaml(out, "process", c->is_shared ? "suite" : "case");
	fprintf(out, c->counting ? "  counts: %u\n" : "  pairs: %u\n", c->pairs[1]);
	if (!c->is_by_time)
		fprintf(out, "  iterations: %llu\n", (unsigned long long)c->n);
	if (c->counting)
		fprintf(out, "  spread: %.3g\n", c->spread);
	else
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

/* ---- Markdown: what a reader sees at once fits on a screen, the rest is folded ---- */

#define MAX_SHOWN 12
#define MAX_CASES 200 /* GitHub takes a comment of 64 KiB at most */
#define MAX_NAME 60

static void put_interval(FILE *out, const struct csink_gate_row *row)
{
	char change[32];

	csink_gate_change(row->ratio, change, sizeof(change));
	csink_text_print(out, " | %s", change);
	if (isfinite(row->interval.low) && isfinite(row->interval.high))
		fprintf(out, " | %+.1f to %+.1f", (row->interval.low - 1) * 100, (row->interval.high - 1) * 100);
	else
		fputs(" |", out);
}

static void markdown_case(FILE *out, const struct csink_suite_result *r, const struct csink_suite_case *c)
{
	const char *word = csink_suite_word(r, c);
	const struct csink_gate_row *cpu = c->state == CSINK_SUITE_JUDGED ? csink_suite_cpu_row(c) : NULL;
	const struct csink_gate_row *row = csink_suite_main_row(r, c);
	struct csink_gate_result one = csink_suite_case_result(r, c);
	enum csink_gate_verdict verdict = CSINK_GATE_UNCHANGED;
	char text[4096];

	for (int i = 0; i < CSINK_GATE_NR_VERDICTS; i++) {
		if (word == csink_gate_verdict_words[i])
			verdict = (enum csink_gate_verdict)i;
	}
	if (c->state == CSINK_SUITE_FAILED)
		verdict = CSINK_GATE_REGRESSED;
	csink_format_text(text, sizeof(text), c->name, MAX_NAME);
	csink_text_print(out, "| %s%s | ", csink_gate_mark(verdict), word);
	csink_text_put(out, CSINK_TEXT_MARKDOWN, text);
	if (cpu)
		put_interval(out, cpu);
	else
		fputs(" | |", out);
	*text = '\0';
	if (row)
		csink_gate_row_name(&one, row, text, sizeof(text));
	else if (c->state != CSINK_SUITE_JUDGED)
		csink_suite_case_line(r, c, text, 300);
	fputs(" | ", out);
	csink_text_put(out, CSINK_TEXT_MARKDOWN, text);
	if (row)
		put_interval(out, row);
	else
		fputs(" | |", out);
	fputs(" |\n", out);
}

/* Those first that need attention. */
static int rank_of(const struct csink_suite_result *r, const struct csink_suite_case *c)
{
	const char *word = csink_suite_word(r, c);

	if (csink_suite_is_slower(r, c))
		return 0;
	if (c->state == CSINK_SUITE_FAILED)
		return 1;
	if (word == csink_gate_verdict_words[CSINK_GATE_INCONCLUSIVE])
		return 2;
	return word == csink_gate_verdict_words[CSINK_GATE_IMPROVED] ? 3 : 4;
}

/* Cases from one rank to another. */
static void markdown_cases(FILE *out, const struct csink_suite_result *r, uint32_t from, uint32_t to)
{
	uint32_t nr = 0;

	if (from < r->suite->nr)
		fputs(r->suite->is_counted
			      ? "\n| verdict | case | instructions | in all runs | what | change | in all runs |\n"
			      : "\n| verdict | case | CPU time | 95 % CI | what | change | 95 % CI |\n",
		      out);
	if (from < r->suite->nr)
		fputs("|---|---|--:|--:|---|--:|--:|\n", out);
	for (int rank = 0; rank <= 4; rank++) {
		for (uint32_t i = 0; i < r->suite->nr; i++) {
			if (rank_of(r, &r->suite->cases[i]) != rank)
				continue;
			if (nr >= from && nr < to)
				markdown_case(out, r, &r->suite->cases[i]);
			nr++;
		}
	}
}

/* All that need attention, as far as they fit; of the others only how many there are, folded. */
static uint32_t count_shown(const struct csink_suite_result *r)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < r->suite->nr; i++)
		nr += rank_of(r, &r->suite->cases[i]) < 4;
	nr = nr ? nr : r->suite->nr;
	return nr < MAX_SHOWN ? nr : MAX_SHOWN;
}

void csink_suite_print_markdown(FILE *out, const struct csink_suite_result *r)
{
	uint32_t shown = r->error ? 0 : count_shown(r), nr = r->error ? 0 : r->suite->nr;
	char text[4096];

	csink_suite_headline(r, text, sizeof(text));
	csink_text_print_as(out, CSINK_TEXT_MARKDOWN, "### countersink gate: %s\n", text);
	if (shown)
		markdown_cases(out, r, 0, shown);
	if (!r->error)
		csink_gate_put_link(out, r->gate);
	if (nr > shown) {
		fprintf(out, "\n<details><summary>%u more</summary>\n", nr - shown);
		markdown_cases(out, r, shown, MAX_CASES);
		if (nr > MAX_CASES)
			fprintf(out, "\n%u more are not shown.\n", nr - MAX_CASES);
		fputs("\n</details>\n", out);
	}
	fputs("\n<details><summary>How it was measured</summary>\n\n", out);
	for (uint32_t i = 1; csink_suite_fact(r, i, text, sizeof(text)) >= 0; i++)
		csink_text_print_as(out, CSINK_TEXT_MARKDOWN, "- %s\n", text);
	fputs("\n</details>\n\n", out);
}

/* ---- the verdict, and a badge ---- */

static const char *verdict_word(const struct csink_suite_result *r, uint32_t *nr_slower)
{
	static const char *const words[] = {"ok", "error", "error", "regressed", "error"};
	int status = csink_suite_status(r);
	bool open = false;

	*nr_slower = 0;
	for (uint32_t i = 0; !r->error && i < r->suite->nr; i++) {
		*nr_slower += csink_suite_is_slower(r, &r->suite->cases[i]);
		open |= csink_suite_word(r, &r->suite->cases[i]) == csink_gate_verdict_words[CSINK_GATE_INCONCLUSIVE];
	}
	if (!r->error && !*nr_slower && open && status != CSINK_EXIT_FAILED)
		return csink_gate_verdict_words[CSINK_GATE_INCONCLUSIVE];
	return words[status];
}

void csink_suite_print_verdict(FILE *out, const struct csink_suite_result *r)
{
	char headline[2048];
	uint32_t nr;

	csink_suite_headline(r, headline, sizeof(headline));
	csink_gate_put_verdict(out, verdict_word(r, &nr), csink_suite_status(r), headline);
}

void csink_suite_print_badge(FILE *out, const struct csink_suite_result *r)
{
	char message[64];
	uint32_t slower;
	const char *word = verdict_word(r, &slower);

	snprintf(message, sizeof(message), "%u of %u cases slower", slower, r->suite->nr);
	csink_gate_put_badge(out, word, slower ? message : !strcmp(word, "ok") ? "no case slower" : word);
}
