/* The report's tables. */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "include/internal/base.h"
#include "launcher/output/report_impl.h"

#define MAX_MODULE 20
#define NARROW_MODULE 12u
#define LEAST_MODULE 6u
#define BAR_COLUMNS 10
#define MIN_NAME 20
#define PLAIN_COLUMNS 120 /* of a function's name where no terminal says how much fits */

/* The type that is time off the CPU, or -ENOENT. */
static int off_cpu_type(const struct csink_profile *p)
{
	const char *name = csink_profile_fact(p, CSINK_FACT_OFF_CPU, 0);

	return name ? csink_profile_type_find(p, name) : -ENOENT;
}

/* Is it a column that --wall has added? */
static bool is_wall(const struct printer *r, uint32_t type)
{
	return r->o->wall && (type == r->o->wall->wall_type || type == r->o->wall->critical_type);
}

/* The type that is added up, then those that were asked for too. Sample counts are shown where there is nothing else;
 * time off the CPU has a table of its own, for functions that wait are not those that work, and so have allocations. */
static void choose_columns(struct printer *r, uint32_t type)
{
	const struct csink_profile *p = r->p;
	enum csink_own_kind kind = csink_own_kind(p, type);
	int off_cpu = off_cpu_type(p);
	uint32_t i;

	r->alloc_period = csink_own_period(p, type);
	r->alloc_bytes = r->alloc_period ? csink_own_type(p, kind, false) : -ENOENT;
	r->nr_columns = 0;
	r->columns[r->nr_columns++] = type;
	if (r->o->wall && type == p->default_type) {
		r->columns[r->nr_columns++] = r->o->wall->wall_type;
		r->columns[r->nr_columns++] = r->o->wall->critical_type;
	}
	for (i = 0; i < p->nr_types && (int)type != off_cpu && r->nr_columns < CSINK_ARRAY_SIZE(r->columns); i++) {
		if (i != type && (int)i != off_cpu && !is_wall(r, i) && r->table.sums[i] &&
		    csink_own_kind(p, i) == kind && strcmp(csink_profile_text(p, p->types[i].name), "samples"))
			r->columns[r->nr_columns++] = i;
	}
	for (i = 0; i < r->nr_columns; i++)
		r->scales[i] = csink_scale_for(r->table.sums[r->columns[i]],
					       csink_profile_text(p, p->types[r->columns[i]].unit));
	r->nr_derived = (int)type == off_cpu ? 0 : csink_derived_find(p, r->derived, CSINK_ARRAY_SIZE(r->derived));
	r->nr_left_out = 0;
}

static void print_bar(const struct printer *r, double share)
{
	static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
	uint32_t parts = CSINK_MIN(CSINK_MAX(share, 0) * BAR_COLUMNS * 8 / 100 + 0.5, BAR_COLUMNS * 8),
		 full = parts / 8, i;

	for (i = 0; i < full; i++)
		fputs(r->o->utf8 ? "█" : "#", r->out);
	if (r->o->utf8 && parts % 8) {
		fputs(eighths[parts % 8], r->out);
		i++;
	}
	for (; i < BAR_COLUMNS; i++)
		fputc(' ', r->out);
	fputs("  ", r->out);
}

static bool is_narrow(const struct printer *r)
{
	return r->o->width && r->o->width < NARROW_COLUMNS;
}

static uint32_t bar_width(const struct printer *r)
{
	return r->o->bars ? BAR_COLUMNS + 2 : 0;
}

/* Of a value with its unit: "999.999 ms" has ten characters. */
static uint32_t value_width(const struct printer *r)
{
	return is_narrow(r) ? 11 : 13;
}

/* Rows that are modules or processes have none of their own beside them. */
static bool has_module(const struct printer *r)
{
	return r->o->by != CSINK_BY_MODULE && r->o->by <= CSINK_BY_THREAD;
}

/* The columns before the function's name. */
static uint32_t before_width(const struct printer *r, uint32_t module_width)
{
	return bar_width(r) + 8 + 9 + (r->alloc_period ? 7 : 0) + 2 * value_width(r) + 14 * (r->nr_columns - 1) +
	       9 * r->nr_derived + (has_module(r) ? 2 + module_width : 0) + 2;
}

/* Of a module's name, so that a function's has some room beside it. */
static uint32_t max_module(const struct printer *r)
{
	uint32_t others = before_width(r, 0) + MIN_NAME;

	if (!is_narrow(r))
		return MAX_MODULE;
	return CSINK_MAX(LEAST_MODULE, r->o->width > others ? CSINK_MIN(r->o->width - others, NARROW_MODULE) : 0);
}

/* Leave out columns until a name has some room, what was derived first. */
static void fit_columns(struct printer *r, uint32_t module_width)
{
	while (r->o->width && before_width(r, module_width) + MIN_NAME > r->o->width &&
	       r->nr_derived + r->nr_columns > 1) {
		r->nr_derived -= r->nr_derived != 0;
		r->nr_columns -= !r->nr_derived && r->nr_columns > 1;
		r->nr_left_out++;
	}
}

/* What is left for the function's name. */
static uint32_t name_width(const struct printer *r, uint32_t module_width)
{
	uint32_t before = before_width(r, module_width);

	if (!r->o->width)
		return PLAIN_COLUMNS;
	return r->o->width > before + MIN_NAME ? r->o->width - before : MIN_NAME;
}

static void print_titles(const struct printer *r, uint32_t module_width)
{
	int width = value_width(r);
	char name[32];
	uint32_t i;

	csink_report_style(r, STYLE_BOLD);
	csink_text_print(r->out, "%*s%8s%*s%9s%*s", bar_width(r), "", "self %", width, "self", "total %", width,
			 "total");
	if (r->alloc_period)
		csink_text_print(r->out, "%7s", "+- %");
	for (i = 1; i < r->nr_columns; i++) {
		csink_format_text(name, sizeof(name), csink_profile_text(r->p, r->p->types[r->columns[i]].name), 13);
		csink_append(name, sizeof(name), "%s", is_wall(r, r->columns[i]) ? " %" : "");
		csink_text_print(r->out, " %13s", name);
	}
	for (i = 0; i < r->nr_derived; i++)
		csink_text_print(r->out, " %8s", r->derived[i].title);
	if (has_module(r))
		csink_text_print(r->out, "  %-*s", (int)module_width,
				 r->o->by == CSINK_BY_THREAD ? "process" : "module");
	csink_text_print(r->out, "  %s\n", csink_by_words[r->o->by]);
	csink_report_style(r, STYLE_NONE);
}

/* In points of the whole, of what a row has in total. Of objects there is none: small ones are sampled rarely. */
static void print_margin(const struct printer *r, const struct csink_row *row, int64_t whole)
{
	bool is_counted = csink_own_kind(r->p, r->columns[0]) == CSINK_OWN_ALLOCATED;
	double margin = csink_own_margin(row->total, is_counted ? whole : 0, r->alloc_period);

	if (row->is_pseudo || whole <= 0 || (int)r->columns[0] != r->alloc_bytes)
		csink_text_print(r->out, "%7s", "-");
	else
		csink_text_print(r->out, "%7.2f", fmin(100 * margin / (double)whole, 100));
}

static void print_values(const struct printer *r, const struct csink_row *row)
{
	int64_t whole = r->table.sums[r->columns[0]];
	int width = value_width(r);
	char text[64];
	uint32_t i;

	csink_text_print(r->out, "%8.2f%*s", csink_report_percent(row->self, whole), width,
			 csink_amount_at(row->self, &r->scales[0]).text);
	csink_text_print(r->out, "%9.2f%*s", csink_report_percent(row->total, whole), width,
			 csink_amount_at(row->total, &r->scales[0]).text);
	if (r->alloc_period)
		print_margin(r, row, whole);
	for (i = 1; i < r->nr_columns; i++) {
		int64_t value = row->extra[r->columns[i]];

		if (is_wall(r, r->columns[i]))
			csink_text_print(r->out, " %13.2f", csink_report_percent(value, r->table.sums[r->columns[i]]));
		else
			csink_text_print(r->out, " %13s", csink_amount_at(value, &r->scales[i]).text);
	}
	for (i = 0; i < r->nr_derived; i++) {
		csink_derived_format(&r->derived[i], row->extra, text, sizeof(text));
		csink_text_print(r->out, " %8s", text);
	}
}

static void print_row(const struct printer *r, const struct csink_row *row, uint32_t module_width)
{
	double share = csink_report_percent(row->self, r->table.sums[r->columns[0]]);
	char text[MAX_TEXT], name[MAX_TEXT], module[4 * MAX_MODULE + 8];
	uint32_t used;

	csink_report_style(r, row->is_pseudo ? STYLE_DIM : share >= 10 ? STYLE_HOT : STYLE_NONE);
	if (r->o->bars)
		print_bar(r, share);
	print_values(r, row);
	used = csink_format_text(module, sizeof(module), row->module, module_width);
	if (has_module(r))
		csink_text_print(r->out, "  %s%*s", module, (int)(module_width - CSINK_MIN(used, module_width)), "");
	fputs("  ", r->out);
	/* Where there is no room, the name needs it more than this. */
	snprintf(text, sizeof(text), "%s%s", row->name,
		 row->is_inlined && r->o->by == CSINK_BY_FUNCTION && !is_narrow(r) ? " (inlined)" : "");
	csink_format_function(name, sizeof(name), text, name_width(r, module_width));
	fputs(name, r->out);
	csink_report_style(r, STYLE_NONE);
	fputc('\n', r->out);
}

static void print_table(struct printer *r, uint32_t limit)
{
	uint32_t nr = r->table.nr_rows, shown, i, width = strlen(r->o->by == CSINK_BY_THREAD ? "process" : "module");
	char module[4 * MAX_MODULE + 8];
	int64_t rest = 0;

	while (nr && !r->table.rows[nr - 1].self && !r->table.rows[nr - 1].total)
		nr--;
	shown = limit ? CSINK_MIN(nr, limit) : nr;
	for (i = 0; i < shown; i++)
		width = CSINK_MAX(width,
				  csink_format_text(module, sizeof(module), r->table.rows[i].module, max_module(r)));
	fit_columns(r, width);
	print_titles(r, width);
	if (!nr && csink_own_kind(r->p, r->columns[0]) == CSINK_OWN_IN_USE)
		csink_text_print(r->out,
				 "%*s%8s  nothing that was not freed has a sample; a smaller period, as -c 16K, finds "
				 "smaller leaks\n",
				 bar_width(r), "", "");
	for (i = 0; i < shown; i++)
		print_row(r, &r->table.rows[i], width);
	for (; i < nr; i++)
		rest += r->table.rows[i].self;
	if (shown < nr)
		csink_text_print(r->out, "%*s%8.2f  in %u more %s%s: --all\n", bar_width(r), "",
				 csink_report_percent(rest, r->table.sums[r->columns[0]]), nr - shown,
				 csink_by_words[r->o->by],
				 nr - shown == 1                ? ""
				 : r->o->by == CSINK_BY_PROCESS ? "es"
								: "s");
	if (r->nr_left_out)
		csink_text_print(r->out, "%u more %s where there is room: a wider terminal, --csv or --json\n",
				 r->nr_left_out, plural(r->nr_left_out, "column", "columns"));
}

/* A table of its own for another type, with fewer rows: it is not the first question. `what`: "of all threads
 * together". */
static int print_by(struct printer *r, int type, const char *before, const char *what)
{
	int err;

	if (type < 0 || type == (int)r->p->default_type || !r->table.sums[type])
		return 0;
	csink_report_table_free(&r->table);
	err = csink_report_table_build_by(&r->table, r->p, (uint32_t)type, r->o->by);
	if (err)
		return err;
	choose_columns(r, (uint32_t)type);
	csink_text_print(r->out, "\n%s, %s%s:\n", before, csink_amount_at(r->table.sums[type], &r->scales[0]).text,
			 what);
	print_table(r, csink_report_third(r));
	return 0;
}

/* The other events that sampled: their hot functions may be missing from the first event's table. */
static int print_other_leaders(struct printer *r)
{
	const char *leader;
	char before[80];
	int err = 0;

	for (uint32_t nr = 1; !err && (leader = csink_profile_fact(r->p, CSINK_FACT_LEADER, nr)); nr++) {
		snprintf(before, sizeof(before), "By %.64s", leader);
		err = print_by(r, csink_profile_type_find(r->p, leader), before, " in all");
	}
	return err;
}

/* What is allocated, and what was in use at the end, where another table was first. */
static int print_allocations(struct printer *r, enum csink_own_kind shown)
{
	int all = csink_own_type(r->p, CSINK_OWN_ALLOCATED, false);
	int in_use = csink_own_type(r->p, CSINK_OWN_IN_USE, false), err = 0;

	if (shown == CSINK_OWN_NONE)
		err = print_by(r, all, "Allocated", " in all");
	if (err || shown == CSINK_OWN_IN_USE || in_use < 0)
		return err;
	return print_by(r, in_use,
			strncmp(csink_profile_text(r->p, r->p->types[in_use].name), "leak", 4) ? "In use at the end"
											       : "Not freed",
			", estimated");
}

int csink_report_tables(struct printer *r)
{
	enum csink_own_kind shown = csink_own_kind(r->p, r->p->default_type);
	int err;

	choose_columns(r, r->p->default_type);
	print_table(r, r->o->limit);
	err = print_other_leaders(r);
	if (!err)
		err = print_allocations(r, shown);
	if (!err)
		err = print_by(r, off_cpu_type(r->p), "Off the CPU", " of all threads together");
	return err ? err : csink_report_locks(r);
}
