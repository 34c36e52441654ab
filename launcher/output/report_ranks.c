/* The report of a parallel job: what functions cost in its ranks, in a table, as JSON and as comma-separated values. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "include/internal/base.h"
#include "launcher/base/json.h"
#include "launcher/output/report_impl.h"
#include "launcher/profile/rank_stats.h"

#define MAX_MODULE 20
#define MIN_NAME 20
#define PLAIN_COLUMNS 120 /* of a function's name where no terminal says how much fits */

/* ---- text ---- */

enum cell { CELL_LOST, CELL_MIN, CELL_MEAN, CELL_MAX, CELL_RANK, CELL_STDDEV, CELL_IMBALANCE, CELL_IN, NR_CELLS };

static const struct column {
	const char *title;
	uint32_t width;
	bool is_wide; /* left out where there is no room */
} columns[NR_CELLS] = {{"lost", 13, false}, {"min", 13, true},    {"mean", 13, false},      {"max", 13, false},
		       {"rank", 7, false},  {"stddev", 13, true}, {"imbalance", 11, false}, {"in", 7, true}};

/* How many columns of a terminal come before the function's name. */
static uint32_t before_width(bool is_narrow)
{
	uint32_t width = 2 + (is_narrow ? 0 : MAX_MODULE + 2);

	for (uint32_t i = 0; i < NR_CELLS; i++)
		width += is_narrow && columns[i].is_wide ? 0 : columns[i].width;
	return width;
}

static bool is_narrow(const struct printer *r)
{
	return r->o->width && r->o->width < before_width(false) + MIN_NAME;
}

static uint32_t name_width(const struct printer *r)
{
	uint32_t before = before_width(is_narrow(r));

	if (!r->o->width)
		return PLAIN_COLUMNS;
	return r->o->width > before + MIN_NAME ? r->o->width - before : MIN_NAME;
}

/* A crafted profile has values that do not fit. */
static int64_t rounded(double value)
{
	if (value >= (double)INT64_MAX)
		return INT64_MAX;
	return value <= (double)INT64_MIN ? INT64_MIN : llround(value);
}

static void format_cell(char *buf, size_t size, enum cell cell, const struct csink_spread *s,
			const struct csink_scale *scale)
{
	const int64_t values[NR_CELLS] = {[CELL_LOST] = s->lost,
					  [CELL_MIN] = s->min,
					  [CELL_MEAN] = rounded(s->mean),
					  [CELL_MAX] = s->max,
					  [CELL_STDDEV] = rounded(s->stddev)};

	if (cell == CELL_RANK)
		snprintf(buf, size, "%" PRId64, s->max_rank);
	else if (cell == CELL_IN)
		snprintf(buf, size, "%u", s->nr);
	else if (cell == CELL_IMBALANCE)
		snprintf(buf, size, "%+.1f %%", 100 * s->imbalance);
	else
		csink_format_value(buf, size, values[cell], scale);
}

static void print_about(const struct printer *r, const struct csink_rank_stats *stats)
{
	const char *unit = csink_profile_text(r->p, r->p->types[r->p->default_type].unit);

	csink_text_print(r->out, "\n%u %s, own cost by %s: lost = (max - mean) x ranks, imbalance = max / mean - 1;\n",
			 stats->nr_ranks, plural(stats->nr_ranks, "rank", "ranks"), csink_by_words[r->o->by]);
	csink_text_print(r->out, "a rank in which a row has no sample counts as 0 (in: the number of the others)\n");
	if (stats->size > stats->nr_ranks)
		csink_text_print(r->out, "%" PRId64 " of the job's %" PRId64 " ranks %s not in the profile\n",
				 stats->size - stats->nr_ranks, stats->size,
				 plural(stats->size - stats->nr_ranks, "is", "are"));
	if (stats->no_rank)
		csink_text_print(r->out, "%s of samples without a rank are left out\n",
				 csink_amount(stats->no_rank, unit).text);
	fputc('\n', r->out);
}

static void print_titles(const struct printer *r)
{
	csink_report_style(r, STYLE_BOLD);
	for (uint32_t i = 0; i < NR_CELLS; i++)
		if (!is_narrow(r) || !columns[i].is_wide)
			csink_text_print(r->out, "%*s", (int)columns[i].width, columns[i].title);
	if (!is_narrow(r))
		csink_text_print(r->out, "  %-*s", MAX_MODULE, r->o->by == CSINK_BY_THREAD ? "process" : "module");
	csink_text_print(r->out, "  %s\n", csink_by_words[r->o->by]);
	csink_report_style(r, STYLE_NONE);
}

static void print_row(const struct printer *r, const struct csink_rank_row *row, const struct csink_scale *scale)
{
	char text[MAX_TEXT], module[4 * MAX_MODULE + 8];
	uint32_t used = csink_format_text(module, sizeof(module), row->key->short_module, MAX_MODULE);

	for (uint32_t i = 0; i < NR_CELLS; i++) {
		if (is_narrow(r) && columns[i].is_wide)
			continue;
		format_cell(text, sizeof(text), i, &row->self, scale);
		csink_text_print(r->out, "%*s", (int)columns[i].width, text);
	}
	if (!is_narrow(r))
		csink_text_print(r->out, "  %s%*s", module, (int)(MAX_MODULE - used), "");
	csink_format_function(text, sizeof(text), row->key->name, name_width(r));
	fputs("  ", r->out);
	fputs(text, r->out);
	fputc('\n', r->out);
}

/* Rows that cost something in a rank by themselves; a function that only calls others has none of its own. */
static bool has_self(const struct csink_rank_row *row)
{
	return row->self.nr != 0;
}

static void print_table(const struct printer *r, const struct csink_rank_stats *stats)
{
	struct csink_scale scale;
	uint32_t nr = 0, more = 0, nr_left_out = 0;
	int64_t largest = 0;

	for (uint32_t i = 0; i < stats->nr_rows; i++)
		largest = CSINK_MAX(largest, CSINK_MAX(stats->rows[i].self.max, stats->rows[i].self.lost));
	scale = csink_scale_for(largest, csink_profile_text(r->p, r->p->types[r->p->default_type].unit));
	print_titles(r);
	for (uint32_t i = 0; i < stats->nr_rows; i++) {
		if (!has_self(&stats->rows[i]))
			continue;
		if (r->o->limit && nr >= r->o->limit) {
			more++;
			continue;
		}
		print_row(r, &stats->rows[i], &scale);
		nr++;
	}
	if (more)
		csink_text_print(r->out, "%u more %s: --all\n", more, plural(more, "row", "rows"));
	for (uint32_t i = 0; i < NR_CELLS && is_narrow(r); i++)
		nr_left_out += columns[i].is_wide;
	if (nr_left_out)
		csink_text_print(r->out, "%u more columns where there is room: a wider terminal, --csv or --json\n",
				 nr_left_out + 1);
}

int csink_report_ranks_print(FILE *out, const struct csink_profile *p, const struct csink_report_options *o)
{
	CSINK_AUTO(csink_report_done) struct printer r = {.out = out, .p = p, .o = o};
	CSINK_AUTO(csink_rank_stats_free) struct csink_rank_stats stats = {0};
	int err = csink_report_table_build_by(&r.table, p, p->default_type, o->by)
			  ?: csink_rank_stats_build(&stats, p, p->default_type, o->by);

	if (err)
		return err;
	errno = 0;
	csink_report_head(&r);
	print_about(&r, &stats);
	print_table(&r, &stats);
	return csink_report_flush(out);
}

/* ---- for machines: own cost, and that with what was called ---- */

static void csv_spread(FILE *out, const struct csink_spread *s)
{
	fprintf(out, ",%u,%" PRId64 ",%" PRId64 ",%" PRId64 ",%.17g,%" PRId64 ",%" PRId64 ",%.17g,%.17g,%" PRId64,
		s->nr, s->sum, s->min, s->min_rank, s->mean, s->max, s->max_rank, s->stddev, s->imbalance, s->lost);
}

int csink_report_ranks_csv(FILE *out, const struct csink_profile *p, const struct csink_report_options *o)
{
	CSINK_AUTO(csink_rank_stats_free) struct csink_rank_stats stats = {0};
	int err = p->nr_types ? csink_rank_stats_build(&stats, p, p->default_type, o->by) : -EINVAL;
	uint32_t nr = 0;

	if (err)
		return err;
	errno = 0;
	csink_text_print(out, "%s,module,ranks", csink_by_words[o->by]);
	for (int i = 0; i < 2; i++) {
		const char *of = i ? "total" : "self";

		csink_text_print(out, ",%s_in,%s_sum,%s_min,%s_min_rank,%s_mean,%s_max,%s_max_rank", of, of, of, of, of,
				 of, of);
		csink_text_print(out, ",%s_stddev,%s_imbalance,%s_lost", of, of, of);
	}
	fputc('\n', out);
	for (uint32_t i = 0; i < stats.nr_rows && (!o->limit || nr < o->limit); i++) {
		const struct csink_rank_row *row = &stats.rows[i];

		if (!row->total.nr && !row->self.nr)
			continue;
		nr++;
		csink_text_put_csv(out, row->key->name);
		fputc(',', out);
		csink_text_put_csv(out, row->key->short_module);
		fprintf(out, ",%u", stats.nr_ranks);
		csv_spread(out, &row->self);
		csv_spread(out, &row->total);
		fputc('\n', out);
	}
	return csink_report_flush(out);
}

static void json_spread(struct csink_json *json, const char *key, const struct csink_spread *s)
{
	csink_json_open(json, key, '{');
	csink_json_number(json, "in", s->nr);
	csink_json_number(json, "sum", s->sum);
	csink_json_number(json, "min", s->min);
	csink_json_number(json, "min_rank", s->min_rank);
	csink_json_real(json, "mean", s->mean);
	csink_json_number(json, "max", s->max);
	csink_json_number(json, "max_rank", s->max_rank);
	csink_json_real(json, "stddev", s->stddev);
	csink_json_real(json, "imbalance", s->imbalance);
	csink_json_number(json, "lost", s->lost);
	csink_json_close(json, '}');
}

int csink_report_ranks_json(FILE *out, const struct csink_profile *p, const struct csink_report_options *o)
{
	CSINK_AUTO(csink_rank_stats_free) struct csink_rank_stats stats = {0};
	int err = p->nr_types ? csink_rank_stats_build(&stats, p, p->default_type, o->by) : -EINVAL;
	struct csink_json json;
	uint32_t nr = 0;

	if (err)
		return err;
	errno = 0;
	csink_json_init(&json, out, '{');
	csink_json_text(&json, "by_type", csink_profile_text(p, p->types[p->default_type].name));
	csink_json_text(&json, "unit", csink_profile_text(p, p->types[p->default_type].unit));
	csink_json_text(&json, "by", csink_by_words[o->by]);
	csink_json_number(&json, "ranks", stats.nr_ranks);
	csink_json_known(&json, "job_ranks", stats.size > 0, stats.size);
	csink_json_number(&json, "no_rank", stats.no_rank);
	csink_json_open(&json, "rows", '[');
	for (uint32_t i = 0; i < stats.nr_rows && (!o->limit || nr < o->limit); i++) {
		const struct csink_rank_row *row = &stats.rows[i];

		if (!row->total.nr && !row->self.nr)
			continue;
		nr++;
		csink_json_open(&json, NULL, '{');
		csink_json_text(&json, "name", row->key->name);
		csink_json_text(&json, "module", row->key->short_module);
		json_spread(&json, "self", &row->self);
		json_spread(&json, "total", &row->total);
		csink_json_close(&json, '}');
	}
	csink_json_close(&json, ']');
	csink_json_close(&json, '}');
	return csink_report_flush(out);
}
