/*
 * Prints the report (report.h): the verdict in one line, what must be known to believe it, the table of functions, and
 * what to do next. Facts come from the profile's comments; a profile of others has none, and then fewer lines are said.
 */
#include "launcher/output/report.h"

#include <errno.h>
#include <inttypes.h>
#include <langinfo.h>
#include <locale.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "launcher/output/format.h"
#include "launcher/output/report_table.h"
#include "launcher/profile/facts.h"
#include "launcher/profile/profile.h"

#define MAX_TEXT 4096
#define MAX_MODULE 20
#define NARROW_MODULE 12
#define NARROW_COLUMNS 110 /* of a terminal: below, the bars and long module names give way to functions */
#define LABEL_COLUMNS 12
#define BAR_COLUMNS 10
#define PLAIN_COLUMNS 120 /* of a function's name where no terminal says how much fits */

struct printer {
	FILE *out;
	const struct csink_profile *p;
	const struct csink_report_options *o;
	struct csink_report_table table;
	struct csink_scale scales[8]; /* of the columns */
	uint32_t columns[8];          /* types: the default one first */
	uint32_t nr_columns;
};

enum style { STYLE_BOLD, STYLE_DIM, STYLE_WARN, STYLE_HOT };
static const char *const styles[] = {"\033[1m", "\033[2m", "\033[33m", "\033[31m"};

static void style(const struct printer *r, enum style what)
{
	if (r->o->color)
		fputs(styles[what], r->out);
}

static void plain(const struct printer *r)
{
	if (r->o->color)
		fputs("\033[0m", r->out);
}

/* ---- facts ---- */

static bool fact_number(const struct csink_profile *p, const char *key, int64_t *value)
{
	const char *text = csink_profile_fact(p, key, 0);
	char *end;

	if (!text)
		return false;
	errno = 0;
	*value = strtoll(text, &end, 10);
	return end != text && !errno && *value >= 0;
}

/* The type that is CPU time, or -ENOENT. */
static int cpu_type(const struct csink_profile *p)
{
	const char *name = csink_profile_fact(p, CSINK_FACT_CPU_TYPE, 0);

	return name ? csink_profile_type_find(p, name) : -ENOENT;
}

/* "  label       text", the text made fit for a terminal and never wrapped by us. */
__attribute__((format(printf, 3, 4))) static void line(const struct printer *r, const char *label, const char *fmt, ...)
{
	char text[MAX_TEXT], safe[MAX_TEXT];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	csink_format_text(safe, sizeof(safe), text, 0);
	fputs("  ", r->out);
	style(r, STYLE_DIM);
	fprintf(r->out, "%-*s", LABEL_COLUMNS, label);
	plain(r);
	if (!strcmp(label, "warning"))
		style(r, STYLE_WARN);
	fputs(safe, r->out);
	if (!strcmp(label, "warning"))
		plain(r);
	fputc('\n', r->out);
}

/* All texts of a key, joined. Returns whether there is any. */
static bool join_facts(const struct csink_profile *p, const char *key, char *buf, size_t size)
{
	const char *text;
	uint32_t nr;
	size_t used = 0;

	*buf = 0;
	for (nr = 0; (text = csink_profile_fact(p, key, nr)) && used < size - 1; nr++)
		used += snprintf(buf + used, size - used, "%s%s", nr ? "; " : "", text);
	return nr != 0;
}

static void print_joined(const struct printer *r, const char *label, const char *key, const char *before,
			 const char *after)
{
	char text[MAX_TEXT];

	if (join_facts(r->p, key, text, sizeof(text)))
		line(r, label, "%s%s%s", before, text, after);
}

static void print_each(const struct printer *r, const char *label, const char *key)
{
	const char *text;
	uint32_t nr;

	for (nr = 0; (text = csink_profile_fact(r->p, key, nr)); nr++)
		line(r, label, "%s", text);
}

/* ---- the head ---- */

static const char *plural(int64_t n, const char *one, const char *many)
{
	return n == 1 ? one : many;
}

static size_t add(char *buf, size_t size, size_t used, const char *fmt, ...) __attribute__((format(printf, 4, 5)));

static size_t add(char *buf, size_t size, size_t used, const char *fmt, ...)
{
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = used < size ? vsnprintf(buf + used, size - used, fmt, ap) : 0;
	va_end(ap);
	return CSINK_MIN(used + (len > 0 ? len : 0), size - 1);
}

static size_t add_value(char *buf, size_t size, size_t used, int64_t value, const char *unit)
{
	struct csink_scale scale = csink_scale_for(value, unit);
	char text[64];

	csink_format_value(text, sizeof(text), value, &scale);
	return add(buf, size, used, "%s", text);
}

/* "1.234 s of CPU time in 0.412 s, 2 processes, 8 threads; 1,230 samples of task-clock" */
static void print_verdict(const struct printer *r)
{
	const struct csink_profile *p = r->p;
	const char *leader = csink_profile_fact(p, CSINK_FACT_LEADER, 0);
	int cpu = cpu_type(p), samples = csink_profile_type_find(p, "samples");
	const struct csink_profile_type *type = &p->types[cpu < 0 ? (int)p->default_type : cpu];
	char text[MAX_TEXT] = "", safe[MAX_TEXT], count[32];
	int64_t processes, threads, sum = r->table.sums[type - p->types];
	size_t used = 0;

	used = add_value(text, sizeof(text), used, sum, csink_profile_text(p, type->unit));
	used = add(text, sizeof(text), used, " of %s", cpu < 0 ? csink_profile_text(p, type->name) : "CPU time");
	if (p->duration_ns > 0) {
		used = add(text, sizeof(text), used, " in ");
		used = add_value(text, sizeof(text), used, p->duration_ns, "nanoseconds");
	}
	if (fact_number(p, CSINK_FACT_PROCESSES, &processes) && processes)
		used = add(text, sizeof(text), used, ", %" PRId64 " %s", processes,
			   plural(processes, "process", "processes"));
	if (fact_number(p, CSINK_FACT_THREADS, &threads) && threads)
		used = add(text, sizeof(text), used, ", %" PRId64 " %s", threads, plural(threads, "thread", "threads"));
	if (samples >= 0 && (leader || cpu < 0)) {
		csink_format_count(count, sizeof(count), r->table.sums[samples]);
		used = add(text, sizeof(text), used, "; %s %s", count,
			   plural(r->table.sums[samples], "sample", "samples"));
		if (leader)
			add(text, sizeof(text), used, " by %s", leader);
	} else if (cpu >= 0) {
		add(text, sizeof(text), used, "; nothing was sampled");
	}
	csink_format_text(safe, sizeof(safe), text, 0);
	style(r, STYLE_BOLD);
	fprintf(r->out, "%s\n", safe);
	plain(r);
}

/* How much of what the kernel accounted the samples show. */
static void print_coverage(const struct printer *r)
{
	const struct csink_profile *p = r->p;
	int64_t user, sys, rss, whole, sampled;
	char total[64], user_text[64], sys_text[64], more[96] = "";
	int cpu = cpu_type(p);
	struct csink_scale scale;
	const char *rest;

	if (cpu < 0)
		return;
	sampled = r->table.sums[cpu] - r->table.pseudo_sums[cpu];
	rest = r->table.pseudo_sums[cpu] ? "; the rest is in [brackets]" : "";
	if (!fact_number(p, CSINK_FACT_USER, &user) || !fact_number(p, CSINK_FACT_SYS, &sys)) {
		whole = r->table.sums[cpu];
		scale = csink_scale_for(whole, "nanoseconds");
		csink_format_value(total, sizeof(total), whole, &scale);
		if (whole > 0)
			line(r, "accounted", "samples cover %.1f %% of %s of CPU time%s", 100.0 * sampled / whole,
			     total, rest);
		return;
	}
	whole = user + sys;
	scale = csink_scale_for(whole, "nanoseconds");
	csink_format_value(total, sizeof(total), whole, &scale);
	csink_format_value(user_text, sizeof(user_text), user, &scale);
	csink_format_value(sys_text, sizeof(sys_text), sys, &scale);
	if (fact_number(p, CSINK_FACT_MAXRSS, &rss) && rss) {
		add(more, sizeof(more), 0, "; max RSS ");
		add_value(more, sizeof(more), strlen(more), rss, "bytes");
	}
	if (whole > 0)
		line(r, "accounted", "samples cover %.1f %% of %s (%s user + %s sys)%s%s", 100.0 * sampled / whole,
		     total, user_text, sys_text, r->table.pseudo_sums[cpu] ? "; the rest is in [brackets]" : "", more);
	else
		line(r, "accounted", "the kernel accounted no CPU time%s", more);
}

static void print_sampling(const struct printer *r)
{
	const struct csink_profile *p = r->p;
	const char *leader = csink_profile_fact(p, CSINK_FACT_LEADER, 0);
	const char *reason = csink_profile_fact(p, CSINK_FACT_EVENT_REASON, 0);
	char text[MAX_TEXT], every[64] = "";
	struct csink_scale scale;

	if (leader && p->period > 0) {
		scale = csink_scale_for(p->period, csink_profile_text(p, p->period_type.unit));
		memcpy(every, " every ", sizeof(" every "));
		csink_format_value(every + strlen(every), sizeof(every) - strlen(every), p->period, &scale);
	}
	if (leader)
		line(r, "event", "%s%s%s%s", leader, every, reason ? ": " : "", reason ? reason : "");
	if (leader && join_facts(p, CSINK_FACT_ENGINE, text, sizeof(text)))
		line(r, "engine", "%s", text);
	if (leader && join_facts(p, CSINK_FACT_UNWIND, text, sizeof(text)))
		line(r, "stacks", "%s", text);
	print_joined(r, "warning", CSINK_FACT_REFUSED, "could not be counted: ", "");
	print_joined(r, "warning", CSINK_FACT_USER_ONLY, "the kernel's part is not counted by ",
		     " (perf_event_paranoid)");
	print_joined(r, "note", CSINK_FACT_SCALED, "shared a counter, so the counts are estimates: ", "");
}

static void print_counters(const struct printer *r)
{
	const char *text, *end;
	struct csink_scale scale;
	char name[64], unit[32], value[64];
	uint32_t nr;
	int64_t n;

	for (nr = 0; (text = csink_profile_fact(r->p, CSINK_FACT_COUNTER, nr)); nr++) {
		if (sscanf(text, "%63s %" SCNd64 " %31s", name, &n, unit) != 3)
			continue;
		end = strstr(text, "enabled 0 ns");
		scale = csink_scale_for(n, unit);
		csink_format_value(value, sizeof(value), n, &scale);
		line(r, "counted", "%s %s%s in the whole tree", name, value, end ? " (never scheduled)" : "");
	}
	print_joined(r, "counted", CSINK_FACT_UNCOUNTED, "nothing from outside: ", "");
}

static void print_head(const struct printer *r)
{
	const char *command = csink_profile_fact(r->p, CSINK_FACT_COMMAND, 0);
	const char *status = csink_profile_fact(r->p, CSINK_FACT_EXIT, 0);

	print_verdict(r);
	if (command)
		line(r, "command", "%.512s%s%s%s", command, status && strcmp(status, "status 0") ? " (exit: " : "",
		     status && strcmp(status, "status 0") ? status : "",
		     status && strcmp(status, "status 0") ? ")" : "");
	print_sampling(r);
	print_coverage(r);
	print_counters(r);
	print_joined(r, "lost", CSINK_FACT_LOSS, "", "");
	print_joined(r, "unprofiled", CSINK_FACT_UNPROFILED, "", "");
	print_each(r, "warning", CSINK_FACT_WARNING);
	print_each(r, "note", CSINK_FACT_NOTE);
}

/* ---- the table ---- */

/* The type that is time off the CPU, or -ENOENT. */
static int off_cpu_type(const struct csink_profile *p)
{
	const char *name = csink_profile_fact(p, CSINK_FACT_OFF_CPU, 0);

	return name ? csink_profile_type_find(p, name) : -ENOENT;
}

/* The type that is added up, then those that were asked for too. Sample counts are shown where there is nothing else;
 * time off the CPU has a table of its own, for those who wait are not those who work. */
static void choose_columns(struct printer *r, uint32_t type)
{
	const struct csink_profile *p = r->p;
	int off_cpu = off_cpu_type(p);
	uint32_t i;

	r->nr_columns = 0;
	r->columns[r->nr_columns++] = type;
	for (i = 0; i < p->nr_types && (int)type != off_cpu && r->nr_columns < CSINK_ARRAY_SIZE(r->columns); i++) {
		if (i != type && (int)i != off_cpu && r->table.sums[i] &&
		    strcmp(csink_profile_text(p, p->types[i].name), "samples"))
			r->columns[r->nr_columns++] = i;
	}
	for (i = 0; i < r->nr_columns; i++)
		r->scales[i] = csink_scale_for(r->table.sums[r->columns[i]],
					       csink_profile_text(p, p->types[r->columns[i]].unit));
}

static double percent(int64_t part, int64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
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

static uint32_t max_module(const struct printer *r)
{
	return r->o->width && r->o->width < NARROW_COLUMNS ? NARROW_MODULE : MAX_MODULE;
}

/* Width of the columns before the function's name. */
static uint32_t fixed_width(const struct printer *r, uint32_t module_width)
{
	return (r->o->bars ? BAR_COLUMNS + 2 : 0) + 8 + 13 + 9 + 13 + 14 * (r->nr_columns - 1) + 2 + module_width + 2;
}

static void print_titles(const struct printer *r, uint32_t module_width)
{
	char name[32];
	uint32_t i;

	style(r, STYLE_BOLD);
	fprintf(r->out, "%*s%8s%13s%9s%13s", r->o->bars ? BAR_COLUMNS + 2 : 0, "", "self %", "self", "total %",
		"total");
	for (i = 1; i < r->nr_columns; i++) {
		csink_format_text(name, sizeof(name), csink_profile_text(r->p, r->p->types[r->columns[i]].name), 13);
		fprintf(r->out, " %13s", name);
	}
	fprintf(r->out, "  %-*s  %s\n", (int)module_width, "module", "function");
	plain(r);
}

static void print_row(const struct printer *r, const struct csink_row *row, uint32_t module_width)
{
	int64_t whole = r->table.sums[r->columns[0]];
	double share = percent(row->self, whole);
	uint32_t fixed = fixed_width(r, module_width), i;
	char text[MAX_TEXT], name[MAX_TEXT], module[4 * MAX_MODULE + 8];

	if (row->is_pseudo)
		style(r, STYLE_DIM);
	else if (share >= 10)
		style(r, STYLE_HOT);
	if (r->o->bars)
		print_bar(r, share);
	fprintf(r->out, "%8.2f", share);
	csink_format_value(text, sizeof(text), row->self, &r->scales[0]);
	fprintf(r->out, "%13s%9.2f", text, percent(row->total, whole));
	csink_format_value(text, sizeof(text), row->total, &r->scales[0]);
	fprintf(r->out, "%13s", text);
	for (i = 1; i < r->nr_columns; i++) {
		csink_format_value(text, sizeof(text), row->extra[r->columns[i]], &r->scales[i]);
		fprintf(r->out, " %13s", text);
	}
	i = csink_format_text(module, sizeof(module), row->module, max_module(r));
	fprintf(r->out, "  %s%*s  ", module, (int)(module_width - CSINK_MIN(i, module_width)), "");
	snprintf(text, sizeof(text), "%s%s", row->name, row->is_inlined ? " (inlined)" : "");
	fixed = r->o->width ? CSINK_MAX((int)r->o->width - (int)fixed, 20) : PLAIN_COLUMNS;
	csink_format_function(name, sizeof(name), text, fixed);
	fputs(name, r->out);
	if (row->is_pseudo || share >= 10)
		plain(r);
	fputc('\n', r->out);
}

static void print_table(struct printer *r, uint32_t limit)
{
	uint32_t nr = r->table.nr_rows, shown, i, width = strlen("module");
	char module[4 * MAX_MODULE + 8];
	int64_t rest = 0;

	while (nr && !r->table.rows[nr - 1].self && !r->table.rows[nr - 1].total)
		nr--;
	shown = limit ? CSINK_MIN(nr, limit) : nr;
	for (i = 0; i < shown; i++)
		width = CSINK_MAX(width,
				  csink_format_text(module, sizeof(module), r->table.rows[i].module, max_module(r)));
	print_titles(r, width);
	for (i = 0; i < shown; i++)
		print_row(r, &r->table.rows[i], width);
	for (; i < nr; i++)
		rest += r->table.rows[i].self;
	if (shown < nr)
		fprintf(r->out, "%*s%8.2f  in %u more %s: --all\n", r->o->bars ? BAR_COLUMNS + 2 : 0, "",
			percent(rest, r->table.sums[r->columns[0]]), nr - shown,
			plural(nr - shown, "function", "functions"));
}

/* A file's name as a shell takes it. */
static void print_shell_word(FILE *out, const char *word)
{
	static const char harmless[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./+,:=@%";
	char safe[MAX_TEXT];

	csink_format_text(safe, sizeof(safe), word, 0);
	if (*safe && strspn(safe, harmless) == strlen(safe)) {
		fputs(safe, out);
		return;
	}
	fputc('\'', out);
	for (const char *c = safe; *c; c++)
		fputs(*c == '\'' ? "'\\''" : (char[]){*c, 0}, out);
	fputc('\'', out);
}

/* ---- all together ---- */

static bool is_utf8(void)
{
	locale_t locale = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
	bool yes = locale && !strcmp(nl_langinfo_l(CODESET, locale), "UTF-8");

	if (locale)
		freelocale(locale);
	return yes;
}

void csink_report_options_init(struct csink_report_options *o, FILE *out)
{
	const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR"), *force = getenv("CLICOLOR_FORCE");
	bool is_terminal = isatty(fileno(out)) && !(term && !strcmp(term, "dumb"));
	struct winsize size;
	const char *columns = getenv("COLUMNS");

	*o = (struct csink_report_options){.limit = CSINK_REPORT_DEFAULT_ROWS};
	o->color = is_terminal;
	if (force && *force && strcmp(force, "0"))
		o->color = true;
	if (no_color && *no_color)
		o->color = false;
	o->utf8 = is_utf8();
	if (!is_terminal)
		return;
	if (!ioctl(fileno(out), TIOCGWINSZ, &size))
		o->width = size.ws_col;
	if (columns && atoi(columns) > 0)
		o->width = atoi(columns);
	o->bars = !o->width || o->width >= NARROW_COLUMNS;
}

/* Where threads waited, with fewer rows: it is the second question. */
static int print_off_cpu(struct printer *r)
{
	int type = off_cpu_type(r->p), err;
	struct csink_scale scale;
	char sum[64];

	if (type < 0 || type == (int)r->p->default_type || !r->table.sums[type])
		return 0;
	csink_report_table_release(&r->table);
	err = csink_report_table_build(&r->table, r->p, type);
	if (err)
		return err;
	choose_columns(r, type);
	scale = r->scales[0];
	csink_format_value(sum, sizeof(sum), r->table.sums[type], &scale);
	fprintf(r->out, "\nOff the CPU, %s of all threads together:\n", sum);
	print_table(r, r->o->limit ? (r->o->limit + 2) / 3 : 0);
	return 0;
}

int csink_report_print(FILE *out, const struct csink_profile *p, const struct csink_report_options *o)
{
	struct printer r = {.out = out, .p = p, .o = o};
	int err = p->nr_types ? csink_report_table_build(&r.table, p, p->default_type) : -EINVAL;
	uint32_t nr_rows = r.table.nr_rows;

	if (err)
		return err;
	choose_columns(&r, p->default_type);
	errno = 0;
	print_head(&r);
	if (nr_rows) {
		fputc('\n', out);
		print_table(&r, o->limit);
		err = print_off_cpu(&r);
	} else {
		fprintf(out, "\nNo samples: there is no function to show.\n");
	}
	if (o->file && nr_rows) {
		fputs("\nnext: go tool pprof -http : ", out);
		print_shell_word(out, o->file);
		fputc('\n', out);
	}
	csink_report_table_release(&r.table);
	if (err)
		return err;
	if (fflush(out) || ferror(out))
		return errno ? -errno : -EIO;
	return 0;
}
