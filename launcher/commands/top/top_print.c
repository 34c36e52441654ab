/* The lines of a picture: see top_print.h. All that comes from the program goes through text.h. */
#include "launcher/commands/top/top_print.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "include/internal/clock.h"
#include "launcher/base/format.h"
#include "launcher/base/text.h"
#include "launcher/profile/facts.h"
#include "launcher/profile/profile.h"

#define MAX_LINE 4096
#define PLAIN_COLUMNS 160 /* where no terminal says how much fits */

enum { TINY = 32, NARROW = 72, WIDE = 100, LEAST_NAME = 8 };

/* ---- columns ---- */

struct layout {
	bool has_total, has_value, has_all, has_all_total, has_all_value;
	uint32_t module, name; /* their widths; module 0: there is none */
};

/* What a terminal of so many columns has room for. */
static struct layout layout_of(enum csink_top_view view, uint32_t columns)
{
	bool is_function = view == CSINK_TOP_FUNCTIONS;
	struct layout l = {.has_total = is_function && columns >= TINY,
			   .has_value = columns >= NARROW,
			   .has_all = columns >= TINY,
			   .has_all_total = is_function && columns >= NARROW,
			   .has_all_value = columns >= WIDE};
	uint32_t used = 7 + (l.has_total ? 7 : 0) + (l.has_value ? 9 : 0) + (l.has_all ? 8 : 0) +
			(l.has_all_total ? 7 : 0) + (l.has_all_value ? 11 : 0) + 2;

	if (view != CSINK_TOP_PHASES && columns >= NARROW)
		l.module = columns >= WIDE ? 20 : is_function ? 10 : 16;
	used += l.module ? l.module + 2 : 0;
	l.name = columns > used + LEAST_NAME ? columns - used : LEAST_NAME;
	return l;
}

/* Of a picture's first interval nothing is known yet. */
static void print_percent(FILE *out, const struct csink_top_picture *picture, int which, int64_t value, int width)
{
	if (which == CSINK_TOP_LAST && !picture->has_last)
		csink_text_print(out, "%*s", width, "-");
	else
		csink_text_print(out, "%*.1f", width, csink_top_percent(picture, which, value));
}

static void print_value(FILE *out, const struct csink_top_picture *picture, int which, int64_t value, int width)
{
	if (which == CSINK_TOP_LAST && !picture->has_last)
		csink_text_print(out, "%*s", width, "-");
	else if (picture->is_time && which == CSINK_TOP_LAST)
		csink_text_print(out, "%*.1f", width, (double)value / 1e6);
	else
		csink_text_print(out, "%*s", width, csink_amount(value, picture->unit).text);
}

void csink_top_print_titles(FILE *out, const struct csink_top_picture *picture, enum csink_top_view view,
			    uint32_t columns)
{
	static const char *const names[] = {"function", "thread", "phase"};
	struct layout l = layout_of(view, columns ? columns : PLAIN_COLUMNS);

	csink_text_print(out, "%7s", "self%");
	if (l.has_total)
		csink_text_print(out, "%7s", "total%");
	if (l.has_value)
		csink_text_print(out, "%9s", picture->is_time ? "self ms" : "self");
	if (l.has_all)
		csink_text_print(out, "%8s", "all%");
	if (l.has_all_total)
		csink_text_print(out, "%7s", "total%");
	if (l.has_all_value)
		csink_text_print(out, "%11s", "all");
	if (l.module)
		csink_text_print(out, "  %-*s", (int)l.module, view == CSINK_TOP_THREADS ? "process" : "module");
	csink_text_print(out, "  %s", names[view]);
}

void csink_top_print_row(FILE *out, const struct csink_top_picture *picture, enum csink_top_view view, uint32_t row,
			 uint32_t columns)
{
	const struct csink_diff_row *at = &picture->tables[view].rows[row];
	struct layout l = layout_of(view, columns ? columns : PLAIN_COLUMNS);
	char text[MAX_LINE];
	uint32_t used;

	print_percent(out, picture, CSINK_TOP_LAST, at->self[CSINK_TOP_LAST], 7);
	if (l.has_total)
		print_percent(out, picture, CSINK_TOP_LAST, at->total[CSINK_TOP_LAST], 7);
	if (l.has_value)
		print_value(out, picture, CSINK_TOP_LAST, at->self[CSINK_TOP_LAST], 9);
	if (l.has_all)
		print_percent(out, picture, CSINK_TOP_ALL, at->self[CSINK_TOP_ALL], 8);
	if (l.has_all_total)
		print_percent(out, picture, CSINK_TOP_ALL, at->total[CSINK_TOP_ALL], 7);
	if (l.has_all_value)
		print_value(out, picture, CSINK_TOP_ALL, at->self[CSINK_TOP_ALL], 11);
	if (l.module) {
		used = csink_format_text(text, sizeof(text), at->module, l.module);
		csink_text_print(out, "  %s%*s", text, (int)(l.module - used), "");
	}
	csink_format_function(text, sizeof(text), at->name, l.name);
	csink_text_print(out, "  %s", text);
}

/* ---- the head ---- */

static const char *plural(uint32_t nr, const char *one, const char *many)
{
	return nr == 1 ? one : many;
}

static void format_counts(const struct csink_top_picture *picture, char *line, size_t size)
{
	const char *loss;
	char samples[32];

	csink_format_count(samples, sizeof(samples), (uint64_t)picture->samples[CSINK_TOP_ALL]);
	snprintf(line, size, "%u process%s, %u thread%s, %s sample%s by %s", picture->nr_processes,
		 plural(picture->nr_processes, "", "es"), picture->nr_threads, plural(picture->nr_threads, "", "s"),
		 samples, picture->samples[CSINK_TOP_ALL] == 1 ? "" : "s", picture->event);
	if (picture->nr_unread)
		csink_append(line, size, "; %u recording%s cannot be read", picture->nr_unread,
			     plural(picture->nr_unread, "", "s"));
	for (int i = 0; (loss = csink_profile_fact(picture->profiles[CSINK_TOP_ALL], CSINK_FACT_LOSS, i)); i++)
		csink_append(line, size, "; %s", loss);
}

static void format_times(const struct csink_top_picture *picture, char *line, size_t size)
{
	const uint64_t *ns = picture->ns;

	if (!picture->has_last)
		snprintf(line, size, "the first interval has not ended");
	else if (picture->is_time)
		snprintf(line, size, "last %.1f s: %.1f %% of one CPU", (double)ns[CSINK_TOP_LAST] / CSINK_NS_PER_S,
			 csink_top_percent(picture, CSINK_TOP_LAST, picture->sums[CSINK_TOP_LAST]));
	else
		snprintf(line, size, "last %.1f s: %s", (double)ns[CSINK_TOP_LAST] / CSINK_NS_PER_S,
			 csink_amount(picture->sums[CSINK_TOP_LAST], picture->unit).text);
	if (picture->is_time)
		csink_append(line, size, "; all %.1f s: %.1f %%", (double)ns[CSINK_TOP_ALL] / CSINK_NS_PER_S,
			     csink_top_percent(picture, CSINK_TOP_ALL, picture->sums[CSINK_TOP_ALL]));
	else
		csink_append(line, size, "; all %.1f s: %s", (double)ns[CSINK_TOP_ALL] / CSINK_NS_PER_S,
			     csink_amount(picture->sums[CSINK_TOP_ALL], picture->unit).text);
}

void csink_top_print_head(FILE *out, const struct csink_top_source *source, const struct csink_top_picture *picture,
			  uint32_t line, const char *state, uint32_t columns)
{
	const char *command = csink_profile_fact(picture->profiles[CSINK_TOP_ALL], CSINK_FACT_COMMAND, 0);
	char text[MAX_LINE] = "", shown[MAX_LINE];

	if (line == 0)
		csink_append(text, sizeof(text), "countersink top: %s%s%s", state, *state ? ": " : "",
			     command ? command : source->name);
	else if (line == 1)
		format_times(picture, text, sizeof(text));
	else
		format_counts(picture, text, sizeof(text));
	csink_format_text(shown, sizeof(shown), text, columns);
	fputs(shown, out);
}
