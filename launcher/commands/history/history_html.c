/*
 * A history as a page of HTML (page/): the fixed parts, and between them the title and the data as JSON, so that no
 * name in it is ever more than text.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "launcher/base/json.h"
#include "launcher/commands/history/history_export.h"
#include "launcher/output/html.h"
#include "launcher/output/report.h"

/* html_pages.S: the page before and after its data, which the build makes of page/. */
extern const char csink_history_head[], csink_history_tail[];

static void put_text(FILE *out, const char *before, const char *text)
{
	fputs(before, out);
	csink_json_quote(out, text, true);
}

static void put_real(FILE *out, const char *before, double value)
{
	fputs(before, out);
	csink_json_put_real(out, value, 6);
}

static void put_lines(FILE *out, const struct csink_history *h)
{
	char commit[80];

	for (uint32_t i = 0; i < h->nr_lines; i++) {
		const struct csink_history_line *line = &h->lines[i];

		put_text(out, i ? ",\n{\"commit\":" : "{\"commit\":", line->commit);
		put_text(out, ",\"short\":", csink_history_commit(line, commit));
		put_text(out, ",\"committed\":", line->committed);
		put_text(out, ",\"time\":", line->time);
		put_text(out, ",\"anchor\":", line->anchor);
		put_text(out, ",\"cpu\":", line->cpu);
		putc('}', out);
	}
}

static void put_series(FILE *out, const struct csink_history_series *s)
{
	put_text(out, "{\"name\":", s->name);
	fprintf(out, ",\"function\":%d", s->is_function);
	put_text(out, ",\"unit\":", s->unit);
	fprintf(out, ",\"more\":%d", s->more_is_better);
	for (uint32_t i = 0; i < s->nr_points; i++) {
		fprintf(out, i ? ",[%u" : ",\"points\":[[%u", s->points[i].line);
		put_real(out, ",", s->points[i].ratio);
		put_real(out, ",", s->points[i].low);
		put_real(out, ",", s->points[i].high);
		putc(']', out);
	}
	fputs("]}", out);
}

/* Series that are shown, and those that changed. @places: set to where each is in its case. */
static void put_cases(FILE *out, const struct csink_history_view *view, uint32_t *places)
{
	const struct csink_history *h = view->history;

	for (uint32_t c = 0; c < h->nr_cases; c++) {
		uint32_t nr = 0;

		put_text(out, c ? "]},\n{\"name\":" : "{\"name\":", h->cases[c].name);
		fputs(",\"series\":[", out);
		for (uint32_t at = view->first[c]; at < view->first[c + 1]; at++) {
			uint32_t i = view->order[at];

			if (!view->is_shown[i] && !h->series[i].nr_changes)
				continue;
			fputs(nr ? ",\n" : "\n", out);
			put_series(out, &h->series[i]);
			places[i] = nr++;
		}
	}
	fputs("]}", out);
}

static void put_change(FILE *out, const struct csink_history *h, const struct csink_history_change *change,
		       const uint32_t *places)
{
	static const char *const members[] = {",\"confirm\":", ",\"bisect\":"};
	char command[8192];

	fprintf(out, "{\"case\":%u,\"line\":%u,\"later\":%u,\"shifts\":[", change->of_case, change->line,
		change->found - CSINK_MIN(change->line, change->found));
	for (uint32_t i = 0; i < change->nr_shifts; i++) {
		const struct csink_history_shift *shift = &change->shifts[i];

		fprintf(out, i ? ",[%u" : "[%u", places[shift->series]);
		put_real(out, ",", shift->ratio);
		fprintf(out, ",%u]", shift->first);
	}
	putc(']', out);
	for (int bisect = 0; bisect < 2; bisect++) {
		bool known = csink_history_confirm(h, change, bisect, command, sizeof(command));

		put_text(out, members[bisect], known ? command : NULL);
	}
	putc('}', out);
}

int csink_history_html(FILE *out, const char *title, const struct csink_history_view *view)
{
	const struct csink_history *h = view->history;
	CSINK_AUTO_FREE uint32_t *places = calloc(h->nr_series + 1, sizeof(*places));

	if (!places)
		return -ENOMEM;
	csink_html_put_head(out, csink_history_head, title);
	put_text(out, "{\"title\":", title);
	fputs(",\"lines\":[", out);
	put_lines(out, h);
	fputs("],\n\"cases\":[", out);
	put_cases(out, view, places);
	fputs("],\n\"changes\":[", out);
	for (uint32_t i = 0; i < view->changes->nr; i++) {
		fputs(i ? ",\n" : "\n", out);
		put_change(out, h, &view->changes->all[i], places);
	}
	fputs("]}\n", out);
	fputs(csink_history_tail, out);
	return csink_report_flush(out);
}
