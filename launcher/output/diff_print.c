/* See diff_print.h. */
#include "launcher/output/diff_print.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "include/internal/base.h"
#include "launcher/base/format.h"
#include "launcher/base/json.h"
#include "launcher/output/report_impl.h"

#define MIN_NAME 20
#define MODULE_COLUMNS 16
#define PLAIN_COLUMNS 160

static double value_of(const struct csink_diff *diff, const int64_t values[2], uint32_t side)
{
	return (double)values[side] * diff->factors[side];
}

static double share_of(const struct csink_diff *diff, const int64_t values[2], uint32_t side)
{
	return csink_report_percent(values[side], diff->sums[side]);
}

static const char *const per_texts[CSINK_NR_PERS] = {"a run", "a second", "B scaled to the sum of A"};

/* ---- people ---- */

static void format(char *buf, size_t size, double value, const struct csink_scale *scale, bool with_sign)
{
	snprintf(buf, size, with_sign ? "%+.*f%s%s" : "%.*f%s%s", scale->decimals, value / scale->divisor,
		 *scale->unit ? " " : "", scale->unit);
}

static void print_head(const struct printer *r, const struct csink_diff *diff, const struct csink_diff_options *o,
		       const struct csink_scale *scale)
{
	double a = value_of(diff, diff->sums, 0), b = value_of(diff, diff->sums, 1);
	char before[64], after[64];

	format(before, sizeof(before), a, scale, false);
	format(after, sizeof(after), b, scale, false);
	csink_report_style(r, STYLE_BOLD);
	csink_text_print(r->out, "%s of %s, then %s", before, o->event, after);
	if (a > 0)
		csink_text_print(r->out, ": %+.2f %%", 100 * (b - a) / a);
	csink_text_print(r->out, " (%s)\n", per_texts[o->per]);
	csink_report_style(r, STYLE_NONE);
	for (uint32_t i = 0; i < 2; i++)
		csink_text_print(r->out, "  %c           %s\n", 'A' + (char)i, o->files[i]);
	fputc('\n', r->out);
}

static void print_row(const struct printer *r, const struct csink_diff *diff, const struct csink_diff_row *row,
		      const struct csink_scale *scale, bool has_module)
{
	double share[2] = {share_of(diff, row->self, 0), share_of(diff, row->self, 1)};
	double points = share[1] - share[0];
	uint32_t before = 14 + 2 * 13 + 3 * 8 + 2 + (has_module ? MODULE_COLUMNS + 2 : 0), columns = PLAIN_COLUMNS;
	char text[3][64], module[128], name[MAX_TEXT];

	format(text[0], sizeof(text[0]), csink_diff_change(diff, row), scale, true);
	format(text[1], sizeof(text[1]), value_of(diff, row->self, 0), scale, false);
	format(text[2], sizeof(text[2]), value_of(diff, row->self, 1), scale, false);
	csink_report_style(r, fabs(points) < 1 ? STYLE_NONE : points > 0 ? STYLE_HOT : STYLE_BOLD);
	csink_text_print(r->out, "%14s%13s%13s%8.2f%8.2f%+8.2f  ", text[0], text[1], text[2], share[0], share[1],
			 points);
	if (has_module) {
		uint32_t used = csink_format_text(module, sizeof(module), row->module, MODULE_COLUMNS);

		csink_text_print(r->out, "%s%*s  ", module, (int)(MODULE_COLUMNS - CSINK_MIN(used, MODULE_COLUMNS)),
				 "");
	}
	if (r->o->width)
		columns = r->o->width > before + MIN_NAME ? r->o->width - before : MIN_NAME;
	csink_format_function(name, sizeof(name), row->name, columns);
	fputs(name, r->out);
	csink_report_style(r, STYLE_NONE);
	fputc('\n', r->out);
}

int csink_diff_print(FILE *out, const struct csink_diff *diff, const struct csink_diff_options *o)
{
	struct printer r = {.out = out, .o = &o->report};
	double largest = fmax(fabs(value_of(diff, diff->sums, 0)), fabs(value_of(diff, diff->sums, 1)));
	struct csink_scale scale = csink_scale_for(largest < 9e18 ? (int64_t)largest : INT64_MAX, o->unit);
	bool has_module = !o->of_stacks && o->report.by != CSINK_BY_MODULE && o->report.by <= CSINK_BY_THREAD;
	uint32_t i, nr = diff->nr_rows, shown;
	double rest = 0;

	errno = 0;
	print_head(&r, diff, o, &scale);
	while (nr && !diff->rows[nr - 1].self[0] && !diff->rows[nr - 1].self[1])
		nr--;
	shown = o->report.limit ? CSINK_MIN(nr, o->report.limit) : nr;
	csink_report_style(&r, STYLE_BOLD);
	csink_text_print(out, "%14s%13s%13s%8s%8s%8s  ", "change", "self A", "self B", "A %", "B %", "points");
	if (has_module)
		csink_text_print(out, "%-*s  ", MODULE_COLUMNS, "module");
	csink_text_print(out, "%s\n", o->of_stacks ? "stack" : csink_by_words[o->report.by]);
	csink_report_style(&r, STYLE_NONE);
	for (i = 0; i < shown; i++)
		print_row(&r, diff, &diff->rows[i], &scale, has_module);
	for (; i < nr; i++)
		rest += csink_diff_change(diff, &diff->rows[i]);
	if (shown < nr) {
		char text[64];

		format(text, sizeof(text), rest, &scale, true);
		csink_text_print(out, "%14s  in %u more: --all\n", text, nr - shown);
	}
	return csink_report_flush(out);
}

/* ---- machines ---- */

void csink_diff_json_head(struct csink_json *json, const struct csink_diff *diff, const struct csink_diff_options *o)
{
	static const char *const keys[] = {"a", "b"};

	csink_json_text(json, "event", o->event);
	csink_json_text(json, "unit", o->unit);
	csink_json_text(json, "per", csink_per_words[o->per]);
	for (uint32_t i = 0; i < 2; i++) {
		csink_json_open(json, keys[i], '{');
		csink_json_text(json, "file", o->files[i]);
		csink_json_number(json, "sum", diff->sums[i]);
		csink_json_real(json, "normalised", value_of(diff, diff->sums, i));
		csink_json_close(json, '}');
	}
}

static void json_pair(struct csink_json *json, const char *key, const struct csink_diff *diff, const int64_t values[2])
{
	double a = value_of(diff, values, 0), b = value_of(diff, values, 1);

	csink_json_open(json, key, '{');
	csink_json_number(json, "a", values[0]);
	csink_json_number(json, "b", values[1]);
	csink_json_real(json, "change", b - a);
	csink_json_real(json, "change_percent", a > 0 ? 100 * (b - a) / a : NAN);
	csink_json_real(json, "share_a", share_of(diff, values, 0));
	csink_json_real(json, "share_b", share_of(diff, values, 1));
	csink_json_real(json, "points", share_of(diff, values, 1) - share_of(diff, values, 0));
	csink_json_close(json, '}');
}

void csink_diff_json(struct csink_json *json, const char *key, const struct csink_diff *diff,
		     const struct csink_diff_options *o)
{
	uint32_t i, nr = o->report.limit ? CSINK_MIN(diff->nr_rows, o->report.limit) : diff->nr_rows;

	csink_json_open(json, key, '[');
	for (i = 0; i < nr; i++) {
		const struct csink_diff_row *row = &diff->rows[i];

		csink_json_open(json, NULL, '{');
		csink_json_text(json, "name", row->name);
		if (*row->module)
			csink_json_text(json, "module", row->module);
		json_pair(json, "self", diff, row->self);
		json_pair(json, "total", diff, row->total);
		csink_json_close(json, '}');
	}
	csink_json_close(json, ']');
}
