/* A history for people: a table for each case, then the change points, with the commands that confirm them. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "launcher/base/format.h"
#include "launcher/base/search.h"
#include "launcher/base/text.h"
#include "launcher/commands/history/history_print.h"
#include "launcher/gate/stats/change_points.h"
#include "launcher/gate/suite/suite_words.h"

#define LARGEST 10      /* functions of a case that are shown */
#define NAME_COLUMNS 38 /* of a figure or function in the table */
#define MAX_NAMED 4     /* series of a change point that are named */

/* ---- what all formats share ---- */

/* By case, figures before functions; then as they appear. */
static int compare_series(const void *a, const void *b, void *history)
{
	const struct csink_history *h = history;
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

	return CSINK_COMPARE(h->series[left].of_case, h->series[right].of_case)
		       ?: CSINK_COMPARE(h->series[left].is_function, h->series[right].is_function)
		       ?: CSINK_COMPARE(left, right);
}

/* The last line of a case: index. */
static uint32_t last_line(const struct csink_history_view *view, uint32_t of_case)
{
	uint32_t last = 0;

	for (uint32_t at = view->first[of_case]; at < view->first[of_case + 1]; at++)
		last = CSINK_MAX(last, csink_history_latest(&view->history->series[view->order[at]])->line);
	return last;
}

/* @shares  room for one of each series. */
static void choose_shown(struct csink_history_view *view, uint32_t of_case, double *shares)
{
	const struct csink_history *h = view->history;
	uint32_t last = last_line(view, of_case), nr = 0;
	double least;

	for (uint32_t at = view->first[of_case]; at < view->first[of_case + 1]; at++) {
		const struct csink_history_series *s = &h->series[view->order[at]];
		const struct csink_history_point *latest = csink_history_latest(s);

		view->is_shown[view->order[at]] = latest->line == last;
		if (s->is_function && latest->line == last && !isnan(latest->last))
			shares[nr++] = latest->last;
	}
	qsort(shares, nr, sizeof(*shares), csink_compare_doubles);
	least = nr > LARGEST ? shares[nr - LARGEST] : -INFINITY;
	for (uint32_t at = view->first[of_case]; at < view->first[of_case + 1] && !view->all; at++) {
		const struct csink_history_series *s = &h->series[view->order[at]];

		view->is_shown[view->order[at]] &=
			s->is_function ? !(csink_history_latest(s)->last < least) : csink_history_is_main(s);
	}
}

int csink_history_view_init(struct csink_history_view *view)
{
	const struct csink_history *h = view->history;
	CSINK_AUTO_FREE double *shares = calloc(h->nr_series + 1, sizeof(*shares));

	view->order = csink_sorted(h->nr_series, compare_series, (void *)h);
	view->first = calloc(h->nr_cases + 2, sizeof(*view->first));
	view->is_shown = calloc(h->nr_series + 1, sizeof(*view->is_shown));
	if (!shares || !view->order || !view->first || !view->is_shown) {
		csink_history_view_free(view);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < h->nr_series; i++)
		view->first[h->series[i].of_case + 1]++;
	for (uint32_t i = 0; i < h->nr_cases; i++)
		view->first[i + 1] += view->first[i];
	for (uint32_t i = 0; i < h->nr_cases; i++)
		choose_shown(view, i, shares);
	return 0;
}

void csink_history_view_free(struct csink_history_view *view)
{
	free(view->order);
	free(view->first);
	free(view->is_shown);
}

const char *csink_history_commit(const struct csink_history_line *line, char *buf)
{
	size_t hex = strspn(line->commit, "0123456789abcdef");
	bool is_id = !line->commit[hex] && hex >= 40;

	csink_format_text(buf, 80, line->commit, is_id ? 0 : 30);
	if (is_id)
		buf[12] = '\0';
	return buf;
}

/* "+1.2 %"; buf has room for 32. Returns buf. */
static const char *format_percent(double ratio, char *buf)
{
	if (!isfinite(ratio))
		strcpy(buf, "-");
	else if (ratio >= 10)
		snprintf(buf, 32, "x %.1f", ratio);
	else /* -0.0 is no change */
		snprintf(buf, 32, "%+.1f %%", fabs(ratio - 1) < 0.0005 ? 0 : (ratio - 1) * 100);
	return buf;
}

/* Whether a text is shown as it is, and whole. */
static bool is_visible(const char *text)
{
	char shown[8192];

	csink_format_text(shown, sizeof(shown), text, 0);
	return !strcmp(shown, text);
}

/* The options that have a case of a suite judged alone. Returns whether they are known. */
static bool append_suite(const struct csink_history_case *one, char *options, size_t size)
{
	CSINK_AUTO_FREE char *name = csink_suite_escape(one->name, ".[\\()*+?{|^$"), *pattern = NULL;

	if (!name || asprintf(&pattern, "^%s$", name) < 0)
		return false;
	csink_append(options, size, "--suite=%s --screen=0%s --cases=", one->suite, one->printed ? " --printed" : "");
	csink_append_word(options, size, pattern);
	if (one->list) {
		csink_append(options, size, " --list=");
		csink_append_word(options, size, one->list);
	}
	return true;
}

/* "PERF_GATE_OPTIONS='...' ", by which scripts/perf-gate.sh judges a case as the history's gate did; nothing, if it
 * needs none. Its text is read by a shell twice. Returns whether that is known. */
static bool append_options(const struct csink_history_case *one, char *buf, size_t size)
{
	char options[8192] = "";

	if (one->suite && !append_suite(one, options, sizeof(options)))
		return false;
	if (one->fold_native)
		csink_append(options, sizeof(options), "%s--fold-native", *options ? " " : "");
	if (!*options)
		return true;
	csink_append(buf, size, "PERF_GATE_OPTIONS=");
	csink_append_word(buf, size, options);
	csink_append(buf, size, " ");
	return strlen(options) < sizeof(options) - 1;
}

bool csink_history_confirm(const struct csink_history *h, const struct csink_history_change *change, bool bisect,
			   char *buf, size_t size)
{
	const struct csink_history_line *old = &h->lines[change->before], *new = &h->lines[change->after];
	const struct csink_history_case *one = &h->cases[change->of_case];
	const char *command = one->command;

	*buf = '\0';
	/* An option is no commit. */
	if ((bisect && new->parent && !strcmp(new->parent, old->commit)) || *old->commit == '-' || *new->commit == '-')
		return false;
	csink_append(buf, size, "%s", bisect ? "git bisect start " : "git checkout --detach ");
	csink_append_word(buf, size, new->commit);
	if (bisect) {
		csink_append(buf, size, " ");
		csink_append_word(buf, size, old->commit);
	}
	csink_append(buf, size, " && ");
	if (!append_options(one, buf, size))
		return false;
	csink_append(buf, size, "%s ", bisect ? "git bisect run perf-bisect.sh" : "perf-gate.sh");
	csink_append_word(buf, size, old->commit);
	csink_append(buf, size, " -- %s", command && is_visible(command) ? command : "COMMAND");
	/* What was cut may end within quotes. */
	return strlen(buf) < size - 1 && is_visible(buf);
}

/* ---- the table ---- */

static void print_row(FILE *out, const struct csink_history_view *view, const struct csink_history_series *s)
{
	const struct csink_history_point *last = csink_history_latest(s);
	char name[1024], ratio[32], low[32], high[32], trend[32], interval[80] = "";

	csink_format_function(name, sizeof(name), s->name, NAME_COLUMNS);
	if (isfinite(last->low) && isfinite(last->high))
		snprintf(interval, sizeof(interval), "%s to %s", format_percent(last->low, low),
			 format_percent(last->high, high));
	csink_text_print(out, "  %-*s %9s  %-20s %9s %8u %8u\n", NAME_COLUMNS, name, format_percent(last->ratio, ratio),
			 interval, format_percent(csink_history_trend(view->history, s), trend), s->nr_points,
			 s->nr_changes);
}

static void print_case(FILE *out, const struct csink_history_view *view, uint32_t of_case)
{
	const struct csink_history *h = view->history;
	const struct csink_history_line *last = &h->lines[last_line(view, of_case)];
	char commit[80];

	csink_text_print(out, "\n%s: %s against %s\n", h->cases[of_case].name, csink_history_commit(last, commit),
			 last->anchor);
	csink_text_print(out, "  %-*s %9s  %-20s %9s %8s %8s\n", NAME_COLUMNS, "", "latest", "95 % CI", "trend",
			 "lines", "changes");
	CSINK_HISTORY_EACH(view, of_case, s)
	print_row(out, view, s);
}

/* ---- change points ---- */

static void print_change(FILE *out, const struct csink_history *h, const struct csink_history_change *change,
			 uint32_t nr)
{
	const struct csink_history_line *line = &h->lines[change->line];
	uint32_t later = change->found - CSINK_MIN(change->line, change->found);
	char commit[80], percent[32], name[512], command[8192];

	csink_text_print(out, "\n%u. %s%s%.10s%s, found %u %s later: %s:", nr, csink_history_commit(line, commit),
			 line->committed ? " (" : "", line->committed ?: "", line->committed ? ")" : "", later,
			 later == 1 ? "line" : "lines", h->cases[change->of_case].name);
	for (uint32_t i = 0; i < change->nr_shifts && i < MAX_NAMED; i++) {
		csink_format_function(name, sizeof(name), h->series[change->shifts[i].series].name, 60);
		csink_text_print(out, "%s %s %s", i ? "," : "", name, format_percent(change->shifts[i].ratio, percent));
	}
	fputs(change->nr_shifts > MAX_NAMED ? ", ...\n" : "\n", out);
	if (csink_history_confirm(h, change, false, command, sizeof(command)))
		csink_text_print(out, "   confirm it: %s\n", command);
	if (csink_history_confirm(h, change, true, command, sizeof(command)))
		csink_text_print(out, "   if it is confirmed, find the commit: %s\n", command);
}

static void print_damaged(FILE *out, const struct csink_history *h)
{
	if (h->nr_damaged) {
		csink_text_print(out, "%u damaged %s skipped: line", h->nr_damaged,
				 h->nr_damaged == 1 ? "line was" : "lines were");
		for (uint32_t i = 0; i < h->nr_damaged && i < CSINK_HISTORY_DAMAGED; i++)
			csink_text_print(out, "%s%u", i ? ", " : " ", h->damaged[i]);
		fputs(h->nr_damaged > CSINK_HISTORY_DAMAGED ? ", ...\n" : "\n", out);
	}
	if (h->nr_later)
		csink_text_print(out, "%u %s skipped: written by a later version of countersink\n", h->nr_later,
				 h->nr_later == 1 ? "line was" : "lines were");
}

void csink_history_print_table(FILE *out, const struct csink_history_view *view)
{
	const struct csink_history *h = view->history;
	const struct csink_history_line *first = &h->lines[0], *last = &h->lines[h->nr_lines - 1];

	csink_text_print(out, "%u %s from %.10s to %.10s\n", h->nr_lines, h->nr_lines == 1 ? "line" : "lines",
			 first->committed ?: first->time ?: "an unknown day",
			 last->committed ?: last->time ?: "an unknown day");
	print_damaged(out, h);
	for (uint32_t i = 0; i < h->nr_cases; i++)
		print_case(out, view, i);
	if (!view->changes->nr) {
		fputs("\nno change points\n", out);
		return;
	}
	csink_text_print(
		out,
		"\n%u change %s. A change point is a question, not a verdict: of 1,000 lines of a figure that did not "
		"change, up to 2 raise one. Pairs of runs of the two commits give the answer.\n",
		view->changes->nr, view->changes->nr == 1 ? "point" : "points");
	for (uint32_t i = 0; i < view->changes->nr; i++)
		print_change(out, h, &view->changes->all[i], i + 1);
}
