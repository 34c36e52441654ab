/* What `stat` found out, for people: see stat_result.h. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "launcher/base/format.h"
#include "launcher/base/text.h"
#include "launcher/commands/stat/stat_result.h"

#define VALUE_COLUMNS 18
#define NAME_COLUMNS 26
#define METRIC_COLUMNS 26

static const char *const state_words[] = {
	[CSINK_STAT_COUNTED] = "",
	[CSINK_STAT_NOT_SUPPORTED] = "<not supported>",
	[CSINK_STAT_NOT_COUNTED] = "<not counted>",
};

/* The reasons below the table: each once, by number. */
struct reasons {
	uint32_t nr;
	const char *texts[CSINK_STAT_MAX_EVENTS];
};

static uint32_t number_of(struct reasons *reasons, const char *text)
{
	for (uint32_t i = 0; i < reasons->nr; i++)
		if (!strcmp(reasons->texts[i], text))
			return i + 1;
	reasons->texts[reasons->nr++] = text;
	return reasons->nr;
}

/* "1,234.56 ms" and "1,234,567": the value without its unit, and the unit. */
static const char *print_value(char *buf, size_t size, double value, const struct csink_event_spec *spec)
{
	char whole[32];

	if (!strcmp(spec->rec.unit, "nanoseconds")) {
		csink_format_count(whole, sizeof(whole), (uint64_t)(value / 1e6));
		snprintf(buf, size, "%s.%02u", whole, (unsigned)((uint64_t)(value / 1e4) % 100));
		return "ms";
	}
	csink_format_count(buf, size, (uint64_t)(value + 0.5));
	return strcmp(spec->rec.unit, "count") ? spec->rec.unit : "";
}

/* "+- 0.40 %": the interval, as a part of the mean. */
static void print_spread(char *buf, size_t size, const struct csink_moments *moments)
{
	buf[0] = '\0';
	if (moments->nr < 2)
		return;
	if (moments->mean == 0)
		snprintf(buf, size, "+- 0");
	else
		snprintf(buf, size, "+- %.2f %%", 100 * csink_moments_interval(moments) / fabs(moments->mean));
}

/* A line, without the blanks at its end. */
__attribute__((format(printf, 3, 4))) static void print_line(FILE *out, const char *before, const char *fmt, ...)
{
	char line[512];
	size_t length;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	for (length = strlen(line); length && line[length - 1] == ' '; length--)
		;
	csink_text_print(out, "%s%.*s\n", before, (int)length, line);
}

static void print_row(FILE *out, const char *before, const struct csink_stat_result *result, uint32_t i,
		      struct reasons *reasons)
{
	const struct csink_stat_row *row = &result->rows[i];
	const struct csink_event_spec *spec = &result->counters->counters[i].spec;
	char value[64], name[96], metric[64] = "", spread[32], scaled[64] = "";
	const char *unit = "";

	/* A clock counts the kernel's time whatever is excluded; other events then mean user space alone. */
	snprintf(name, sizeof(name), "%s%s", spec->rec.name,
		 spec->rec.flags & CSINK_EVENT_USER_ONLY && !(spec->rec.flags & CSINK_EVENT_CPU_NS) &&
				 !strchr(spec->rec.name, ':')
			 ? ":u"
			 : "");
	if (row->state != CSINK_STAT_COUNTED) {
		print_line(out, before, "%*s     %-*s [%u]", VALUE_COLUMNS, state_words[row->state], NAME_COLUMNS, name,
			   number_of(reasons, csink_stat_reason(result, i)));
		return;
	}
	unit = print_value(value, sizeof(value), row->value.mean, spec);
	print_spread(spread, sizeof(spread), &row->value);
	if (row->metric.unit)
		snprintf(metric, sizeof(metric), "%.*f %s", row->metric.decimals, row->metric_value.mean,
			 row->metric.unit);
	if (row->share.mean < 0.9995)
		snprintf(scaled, sizeof(scaled), "%sscaled: it had a counter %.1f %% of the time", *spread ? "  " : "",
			 100 * row->share.mean);
	print_line(out, before, "%*s %-3s %-*s %-*s %s%s", VALUE_COLUMNS, value, unit, NAME_COLUMNS, name,
		   METRIC_COLUMNS, metric, spread, scaled);
	if (row->misses.unit)
		print_line(out, before, "%*s %-3s %-*s %.*f %s", VALUE_COLUMNS, "", "", NAME_COLUMNS, "",
			   row->misses.decimals, row->misses_value.mean, row->misses.unit);
}

static void print_rows(FILE *out, const struct csink_stat_result *result, const char *before, struct reasons *reasons)
{
	for (uint32_t i = 0; i < result->counters->nr; i++)
		print_row(out, before, result, i, reasons);
}

void csink_stat_print_rows(FILE *out, const struct csink_stat_result *result, const char *before)
{
	struct reasons reasons = {0};

	/* Their numbers are explained below the last table, which has the same ones. */
	print_rows(out, result, before, &reasons);
}

static void print_seconds(FILE *out, const struct csink_moments *moments, const char *what)
{
	char spread[32];

	print_spread(spread, sizeof(spread), moments);
	print_line(out, "", "%*.6f s   %-*s %-*s %s", VALUE_COLUMNS, moments->mean / 1e9, NAME_COLUMNS, what,
		   METRIC_COLUMNS, "", spread);
}

static void print_threads(FILE *out, const struct csink_stat_result *result)
{
	const struct csink_stat_threads_result *threads = result->threads;

	csink_text_print(out, "\n%10s %10s  %-15s", "pid", "tid", "thread");
	for (uint32_t i = 0; i < result->counters->nr; i++)
		if (result->rows[i].state == CSINK_STAT_COUNTED)
			csink_text_print(out, " %*s", VALUE_COLUMNS, result->counters->counters[i].spec.rec.name);
	fputc('\n', out);
	for (uint32_t k = 0; k < threads->nr; k++) {
		const struct csink_stat_thread *thread = &threads->threads[k];
		char comm[64];

		csink_format_text(comm, sizeof(comm), thread->comm, 15);
		csink_text_print(out, "%10d %10d  %-15s", thread->pid, thread->tid, comm);
		for (uint32_t i = 0; i < result->counters->nr; i++) {
			const struct csink_event_spec *spec = &result->counters->counters[i].spec;
			char value[64], cell[80];
			const char *unit;

			if (result->rows[i].state != CSINK_STAT_COUNTED)
				continue;
			if (!thread->has_counts) {
				csink_text_print(out, " %*s", VALUE_COLUMNS,
						 thread->ended ? "<lost>" : "<still running>");
				continue;
			}
			unit = print_value(value, sizeof(value), (double)thread->values[i].value, spec);
			snprintf(cell, sizeof(cell), "%s%s%s", value, *unit ? " " : "", unit);
			/* On no CPU was it ever on a counter: that is no zero. */
			csink_text_print(out, " %*s", VALUE_COLUMNS,
					 thread->values[i].state == CSINK_STAT_NOT_COUNTED &&
							 thread->values[i].enabled_ns
						 ? state_words[CSINK_STAT_NOT_COUNTED]
						 : cell);
		}
		fputc('\n', out);
	}
}

void csink_stat_print(FILE *out, const struct csink_stat_result *result)
{
	struct reasons reasons = {0};
	char command[512];

	csink_format_text(command, sizeof(command), result->argv[0], 80);
	csink_text_print(out, "\ncounted: %s", command);
	if (result->nr_runs > 1)
		csink_text_print(out, ", %u runs (mean +- 95 %% confidence interval)", result->nr_runs);
	fputs("\n\n", out);
	print_rows(out, result, "", &reasons);
	fputc('\n', out);
	if (result->wall_ns.nr) {
		print_seconds(out, &result->wall_ns, "elapsed");
		print_seconds(out, &result->user_ns, "user");
		print_seconds(out, &result->sys_ns, "system");
		print_line(out, "", "%*.3f MiB %s", VALUE_COLUMNS, (double)result->max_rss_bytes / 1048576,
			   "max resident");
	}
	if (result->threads && result->threads->has_counts)
		print_threads(out, result);
	if (reasons.nr || result->nr_notes)
		fputc('\n', out);
	for (uint32_t i = 0; i < reasons.nr; i++)
		csink_text_print(out, "[%u] %s\n", i + 1, reasons.texts[i]);
	for (uint32_t i = 0; i < result->nr_notes; i++)
		csink_text_print(out, "note: %s\n", result->notes[i]);
}
