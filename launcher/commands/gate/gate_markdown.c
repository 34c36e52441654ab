/*
 * A gate's result as Markdown, for summaries and comments, and as the annotations of GitHub's actions, which stand
 * beside the line of the source that got slower.
 */
#include <stdio.h>

#include "launcher/base/text.h"
#include "launcher/commands/gate/gate_result.h"

#define MAX_SHOWN 10 /* rows that a reader sees at once; the others are folded */
#define MAX_ROWS 100 /* GitHub takes a summary of 1 MiB at most */

const char *csink_gate_mark(enum csink_gate_verdict verdict)
{
	static const char *const marks[CSINK_GATE_NR_VERDICTS] = {"", "&#9989; ", "&#10060; ", "&#10067; "};

	return marks[verdict];
}

void csink_gate_put_link(FILE *out, const struct csink_gate_result *r)
{
	if (!r->error && r->page_link && *r->page_link)
		fprintf(out, "\n[Differential flame graph](%s)\n", r->page_link);
}

static void print_row(FILE *out, const struct csink_gate_result *r, const struct csink_gate_row *row)
{
	char name[512], change[32], means[2][64], share[64] = "";

	csink_gate_row_name(r, row, name, sizeof(name));
	csink_gate_change(row->ratio, change, sizeof(change));
	for (int side = 0; side < 2; side++)
		csink_gate_mean(r, row, side, means[side], sizeof(means[side]));
	if (row->function >= 0)
		snprintf(share, sizeof(share), "%.1f %%", row->shares[1] * 100);
	fprintf(out, "| %s%s | ", csink_gate_mark(row->verdict), csink_gate_verdict_words[row->verdict]);
	csink_text_put(out, CSINK_TEXT_MARKDOWN, name);
	fprintf(out, " | %s | %+.1f to %+.1f", change, (row->interval.low - 1) * 100, (row->interval.high - 1) * 100);
	csink_text_print_as(out, CSINK_TEXT_MARKDOWN, " | %s | %s", means[0], means[1]);
	fprintf(out, " | %s | %.2g |\n", share, row->q);
}

/* Rows from one rank to another, those first that need attention. Returns how many there are in all. */
static uint32_t print_rows(FILE *out, const struct csink_gate_result *r, uint32_t from, uint32_t to)
{
	static const enum csink_gate_verdict order[] = {CSINK_GATE_REGRESSED, CSINK_GATE_INCONCLUSIVE,
							CSINK_GATE_IMPROVED, CSINK_GATE_UNCHANGED};
	uint32_t nr = 0;

	if (from < r->verdicts->nr_rows)
		fputs("\n| verdict | what | change | 95 % CI | before | now | share | q |\n"
		      "|---|---|--:|--:|--:|--:|--:|--:|\n",
		      out);
	for (size_t k = 0; k < sizeof(order) / sizeof(*order); k++) {
		for (uint32_t i = 0; i < r->verdicts->nr_rows; i++) {
			if (r->verdicts->rows[i].verdict != order[k])
				continue;
			if (nr >= from && nr < to)
				print_row(out, r, &r->verdicts->rows[i]);
			nr++;
		}
	}
	return nr;
}

/* The rows that a reader does not see at once. */
static void print_others(FILE *out, const struct csink_gate_result *r)
{
	uint32_t nr = r->verdicts->nr_rows;

	if (nr <= MAX_SHOWN)
		return;
	fprintf(out, "\n<details><summary>%u more</summary>\n", nr - MAX_SHOWN);
	print_rows(out, r, MAX_SHOWN, MAX_ROWS);
	if (nr > MAX_ROWS)
		fprintf(out, "\n%u more are not shown.\n", nr - MAX_ROWS);
	fputs("\n</details>\n", out);
}

void csink_gate_print_markdown(FILE *out, const struct csink_gate_result *r)
{
	char text[4096];

	csink_gate_headline(r, text, sizeof(text));
	csink_text_print_as(out, CSINK_TEXT_MARKDOWN, "### countersink gate: %s\n", text);
	if (csink_gate_where(r, NULL, text, sizeof(text)) >= 0)
		csink_text_print_as(out, CSINK_TEXT_MARKDOWN, "\nWhere the %s went: %s\n", csink_gate_unit_word(r),
				    text);
	if (!r->error)
		print_rows(out, r, 0, MAX_SHOWN);
	csink_gate_put_link(out, r);
	if (!r->error)
		print_others(out, r);
	fputs("\n<details><summary>How it was measured</summary>\n\n", out);
	for (uint32_t i = 0; csink_gate_fact(r, i, text, sizeof(text)) >= 0; i++)
		csink_text_print_as(out, CSINK_TEXT_MARKDOWN, "- %s\n", text);
	for (uint32_t i = 0; !r->error && i < r->verdicts->nr_rows; i++) {
		const struct csink_gate_row *row = &r->verdicts->rows[i];

		if (!row->note)
			continue;
		csink_gate_row_name(r, row, text, sizeof(text));
		csink_text_print_as(out, CSINK_TEXT_MARKDOWN, "- %s: %s\n", text, row->note);
	}
	fputs("\n</details>\n\n", out);
}

static void print_annotation(FILE *out, const struct csink_gate_result *r, const struct csink_gate_row *row)
{
	char name[512], line[1024], where[2048];
	int64_t at;
	const char *file = csink_gate_row_file(r, row, &at);

	csink_gate_row_name(r, row, name, sizeof(name));
	csink_gate_row_line(r, row, line, sizeof(line));
	fprintf(out, "::%s ", csink_gate_is_failure(r, row) ? "error" : "warning");
	if (file)
		csink_text_print_as(out, CSINK_TEXT_GITHUB_PROPERTY, "file=%s,line=%lld,", file,
				    (long long)(at > 0 ? at : 1));
	csink_text_print_as(out, CSINK_TEXT_GITHUB, "title=countersink gate::%s %s", name, line);
	if (csink_gate_where(r, row, where, sizeof(where)) >= 0)
		csink_text_print_as(out, CSINK_TEXT_GITHUB, "; %s", where);
	fputc('\n', out);
}

bool csink_gate_has_annotation(FILE *out, uint32_t number, uint32_t nr)
{
	if (number + 1 < CSINK_GATE_ANNOTATIONS || nr <= CSINK_GATE_ANNOTATIONS)
		return true;
	if (number + 1 == CSINK_GATE_ANNOTATIONS)
		fprintf(out, "::error title=countersink gate::%u more regressed: the summary has all\n", nr - number);
	return false;
}

void csink_gate_print_github(FILE *out, const struct csink_gate_result *r)
{
	uint32_t nr = 0, number = 0;

	if (r->error) {
		csink_text_print_as(out, CSINK_TEXT_GITHUB, "::error title=countersink gate::%s\n", r->error);
		return;
	}
	for (uint32_t i = 0; i < r->verdicts->nr_rows; i++)
		nr += csink_gate_is_failure(r, &r->verdicts->rows[i]);
	for (uint32_t i = 0; i < r->verdicts->nr_rows; i++) {
		const struct csink_gate_row *row = &r->verdicts->rows[i];

		if (csink_gate_is_failure(r, row) && csink_gate_has_annotation(out, number++, nr))
			print_annotation(out, r, row);
	}
}
