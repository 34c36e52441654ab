/*
 * Exports of a history: see history_export.h. What other programs keep themselves, commit by commit, gets the last line
 * of each case (Bencher Metric Format, github-action-benchmark, Perfherder); CSV has all lines.
 */
#include "launcher/commands/history/history_export.h"

#include <math.h>
#include <string.h>

#include "include/internal/base.h"
#include "launcher/base/json.h"
#include "launcher/base/text.h"
#include "launcher/output/report.h"

/* {CASE: {MEASURE: {value, lower_value, upper_value}}} */
static void write_bmf(FILE *out, const struct csink_history_view *view)
{
	struct csink_json json;

	csink_json_init(&json, out, '{');
	for (uint32_t c = 0; c < view->history->nr_cases; c++) {
		csink_json_open(&json, view->history->cases[c].name, '{');
		CSINK_HISTORY_EACH(view, c, s)
		{
			const struct csink_history_point *last = csink_history_latest(s);

			csink_json_open(&json, s->name, '{');
			csink_json_real(&json, "value", last->ratio);
			if (isfinite(last->low))
				csink_json_real(&json, "lower_value", last->low);
			if (isfinite(last->high))
				csink_json_real(&json, "upper_value", last->high);
			csink_json_close(&json, '}');
		}
		csink_json_close(&json, '}');
	}
	csink_json_close(&json, '}');
}

/* customSmallerIsBetter: [{name, value, unit, range, extra}]. What is better the other way round has no place there. */
static void write_github(FILE *out, const struct csink_history_view *view)
{
	const struct csink_history *h = view->history;
	struct csink_json json;
	char name[4096], range[64];

	csink_json_init(&json, out, '[');
	for (uint32_t c = 0; c < h->nr_cases; c++) {
		CSINK_HISTORY_EACH(view, c, s)
		{
			const struct csink_history_point *last = csink_history_latest(s);

			if (s->more_is_better)
				continue;
			csink_json_open(&json, NULL, '{');
			snprintf(name, sizeof(name), "%s: %s", h->cases[c].name, s->name);
			csink_json_text(&json, "name", name);
			csink_json_real(&json, "value", last->ratio);
			csink_json_text(&json, "unit", "x");
			if (isfinite(last->low) && isfinite(last->high)) {
				snprintf(range, sizeof(range), "%.4f to %.4f", last->low, last->high);
				csink_json_text(&json, "range", range);
			}
			snprintf(name, sizeof(name), "ratio to %s", h->lines[last->line].anchor);
			csink_json_text(&json, "extra", name);
			csink_json_close(&json, '}');
		}
	}
	csink_json_close(&json, ']');
}

/* {framework, suites: [{name, subtests: [{name, value, unit, lowerIsBetter}]}]} */
static void write_perfherder(FILE *out, const struct csink_history_view *view)
{
	const struct csink_history *h = view->history;
	struct csink_json json;

	csink_json_init(&json, out, '{');
	csink_json_open(&json, "framework", '{');
	csink_json_text(&json, "name", "countersink");
	csink_json_close(&json, '}');
	csink_json_open(&json, "suites", '[');
	for (uint32_t c = 0; c < h->nr_cases; c++) {
		csink_json_open(&json, NULL, '{');
		csink_json_text(&json, "name", h->cases[c].name);
		csink_json_bool(&json, "lowerIsBetter", true);
		csink_json_open(&json, "subtests", '[');
		CSINK_HISTORY_EACH(view, c, s)
		{
			csink_json_open(&json, NULL, '{');
			csink_json_text(&json, "name", s->name);
			csink_json_real(&json, "value", csink_history_latest(s)->ratio);
			csink_json_text(&json, "unit", "ratio");
			csink_json_bool(&json, "lowerIsBetter", !s->more_is_better);
			csink_json_close(&json, '}');
		}
		csink_json_close(&json, ']');
		csink_json_close(&json, '}');
	}
	csink_json_close(&json, ']');
	csink_json_close(&json, '}');
}

/* ---- CSV ---- */

static void put_text(FILE *out, const char *text)
{
	csink_text_put_csv(out, text ?: "");
	putc(',', out);
}

static void put_real(FILE *out, double value, char behind)
{
	if (isfinite(value))
		fprintf(out, "%.6g", value);
	putc(behind, out);
}

static void write_csv(FILE *out, const struct csink_history_view *view)
{
	const struct csink_history *h = view->history;

	fputs("commit,committed,time,anchor,cpu,case,kind,name,ratio,low,high,value,unit,change\n", out);
	for (uint32_t c = 0; c < h->nr_cases; c++) {
		CSINK_HISTORY_EACH(view, c, s)
		{
			for (uint32_t i = 0; i < s->nr_points; i++) {
				const struct csink_history_point *point = &s->points[i];
				const struct csink_history_line *line = &h->lines[point->line];

				put_text(out, line->commit);
				put_text(out, line->committed);
				put_text(out, line->time);
				put_text(out, line->anchor);
				put_text(out, line->cpu);
				put_text(out, h->cases[c].name);
				put_text(out, s->is_function ? "function" : "figure");
				put_text(out, s->name);
				put_real(out, point->ratio, ',');
				put_real(out, point->low, ',');
				put_real(out, point->high, ',');
				put_real(out, point->last, ',');
				put_text(out, s->is_function ? "share" : s->unit);
				fputs(point->is_changed ? "1\n" : "0\n", out);
			}
		}
	}
}

int csink_history_export(FILE *out, const char *format, const struct csink_history_view *view)
{
	static const struct {
		const char *name;
		void (*write)(FILE *out, const struct csink_history_view *view);
	} formats[] = {
		{"bmf", write_bmf}, {"github", write_github}, {"perfherder", write_perfherder}, {"csv", write_csv}};

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(formats); i++) {
		if (!strcmp(format, formats[i].name))
			formats[i].write(out, view);
	}
	return csink_report_flush(out);
}
