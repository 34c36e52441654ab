/*
 * Figures that a harness itself reports of a case: memory that it counts, and, with --printed, the rates that it
 * prints. They are figures of the case as those are that a command reports (reported.h): judged by ranks, among the
 * same questions. What is not judged is in a note, with the reason. In the launcher's one thread.
 */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "include/internal/base.h"
#include "launcher/base/format.h"
#include "launcher/gate/reported.h"
#include "launcher/gate/suite/harness.h"

#define MAX_NAMED 5 /* in a note */

#define NO_NUMBER "it was not a number from 0 up in every run"
#define ZERO "0 of what is better when it is more has no ratio"
#define NO_DIRECTION                                                                                                   \
	"it is not known whether more or less is better (a figure that the command writes to " CSINK_GATE_FIGURES      \
	" has that)"
#define NO_NAME "its name is not of 1 to 39 letters, digits and -_.%/ or blanks"
#define NO_UNIT "its unit is longer than 15 bytes"
#define TOO_MANY "there are too many figures"
#define SECOND "another reported figure has its name"

/* ---- what a harness adds ---- */

void csink_suite_add_figure(struct csink_suite_figures *figures, const struct csink_suite_figure *figure, double value)
{
	figures->all[figures->nr] = *figure;
	figures->all[figures->nr++].value = value;
}

/* A name has no such bytes; a title may. Returns false if it can be neither. */
static bool set_names(struct csink_suite_figure *figure, const char *title, size_t len)
{
	bool fits = len && len < 40;

	snprintf(figure->title, sizeof(figure->title), "%.*s", (int)CSINK_MIN(len, 60UL), title);
	for (size_t i = 0; i < len && fits; i++) {
		fits = isalnum((unsigned char)title[i]) || strchr("-_.%/ ", title[i]);
		figure->name[i] = strchr("%/ ", title[i]) ? '_' : title[i];
	}
	return fits;
}

/* Returns NULL: there is no room. */
static struct csink_suite_figure *find_place(struct csink_suite_figures *figures, const char *title)
{
	for (uint32_t i = 0; i < figures->nr; i++) {
		if (figures->all[i].is_printed && !strcmp(figures->all[i].title, title))
			return &figures->all[i];
	}
	return figures->nr < CSINK_SUITE_MAX_FIGURES - CSINK_SUITE_OWN_FIGURES ? &figures->all[figures->nr++] : NULL;
}

void csink_suite_print_figure(struct csink_suite_figures *figures, const char *title, size_t len, const char *unit,
			      enum csink_suite_better better, double value)
{
	struct csink_suite_figure made = {.value = value, .is_printed = true}, *place;
	bool fits = set_names(&made, title, len);

	made.more_is_better = better == CSINK_SUITE_BETTER_MORE;
	if (!fits)
		made.why = NO_NAME;
	else if (better == CSINK_SUITE_BETTER_UNKNOWN)
		made.why = NO_DIRECTION;
	else if (strlen(unit) >= sizeof(made.unit))
		made.why = NO_UNIT;
	else if (!isfinite(value) || value < 0)
		made.why = NO_NUMBER;
	else if (made.more_is_better && value == 0)
		made.why = ZERO;
	snprintf(made.unit, sizeof(made.unit), "%s", unit);
	place = find_place(figures, made.title);
	if (place)
		*place = made;
	else if (!*figures->surplus)
		memcpy(figures->surplus, made.title, sizeof(figures->surplus));
}

/* ---- what becomes of it ---- */

/* Remember one for the notes, once. */
static void leave_out(struct csink_suite *suite, const char *why, const char *name, const char *of)
{
	struct csink_suite_unjudged one = {.why = why};

	snprintf(one.name, sizeof(one.name), "%.45s%s%.40s", name, of ? " of " : "", of ? of : "");
	for (uint32_t i = 0; i < suite->nr_unjudged; i++) {
		if (!strcmp(suite->unjudged[i].why, why) && !strcmp(suite->unjudged[i].name, one.name))
			return;
	}
	if (suite->nr_unjudged < CSINK_SUITE_MAX_UNJUDGED)
		suite->unjudged[suite->nr_unjudged++] = one;
}

/* Returns NULL, or why it cannot be a figure of the run. */
static const char *take_figure(struct csink_gate_data *data, struct csink_gate_run *run,
			       const struct csink_suite_figure *figure)
{
	const char *why = figure->why ? figure->why : csink_gate_reported_refuse(figure->name);
	uint32_t had = data->nr_metrics;
	int index;

	if (why)
		return why;
	index = csink_gate_metric_find(data, figure->name, figure->title, figure->unit);
	if (index < 0)
		return TOO_MANY;
	if ((uint32_t)index == had) {
		data->metrics[index].is_reported = true;
		data->metrics[index].more_is_better = figure->more_is_better;
	} else if (!data->metrics[index].is_reported) {
		return CSINK_GATE_REPORTED_TAKEN;
	} else if (isfinite(run->metrics[index])) {
		return SECOND;
	}
	run->metrics[index] = figure->value;
	return NULL;
}

void csink_suite_take_figures(struct csink_suite *suite, struct csink_suite_case *c, const char *text)
{
	struct csink_suite_figures figures = {.nr = 0};

	if (text)
		suite->harness->figures(c, text, &figures);
	if (*figures.surplus && suite->printed)
		leave_out(suite, TOO_MANY, figures.surplus, NULL);
	for (uint32_t i = 0; i < figures.nr; i++) {
		const struct csink_suite_figure *figure = &figures.all[i];
		const char *why;

		if (figure->is_printed && !suite->printed)
			continue;
		why = take_figure(&c->data, &c->data.runs[c->data.nr_runs - 1], figure);
		if (why)
			leave_out(suite, why, figure->title, NULL);
	}
}

/* ---- the notes ---- */

static bool is_left_out(const struct csink_suite *suite, const char *name)
{
	for (uint32_t i = 0; i < suite->nr_unjudged; i++) {
		if (!strncmp(suite->unjudged[i].name, name, sizeof(suite->unjudged[i].name)))
			return true;
	}
	return false;
}

/* One that some run has, and another one does not. */
static void find_one_sided(struct csink_suite *suite, const struct csink_suite_case *c,
			   const struct csink_gate_data *data, uint32_t metric)
{
	static const char *const alone[] = {"the old side alone has it", "the new side alone has it"};
	uint32_t nr[CSINK_GATE_NR_SIDES] = {0, 0}, has[CSINK_GATE_NR_SIDES] = {0, 0};
	const char *why = NULL;

	for (uint32_t i = 0; i < data->nr_runs; i++) {
		nr[data->runs[i].side]++;
		has[data->runs[i].side] += isfinite(data->runs[i].metrics[metric]) != 0;
	}
	if (!nr[0] || !nr[1])
		return;
	if (has[0] && has[1])
		why = has[0] < nr[0] || has[1] < nr[1] ? "some runs have none" : NULL;
	else if (has[0] || has[1])
		why = alone[has[1] != 0];
	if (why && !is_left_out(suite, data->metrics[metric].title))
		leave_out(suite, why, data->metrics[metric].title, c->name);
}

static void find_missing(struct csink_suite *suite, const struct csink_suite_case *c,
			 const struct csink_gate_data *data)
{
	for (uint32_t m = 0; m < data->nr_metrics; m++) {
		if (data->metrics[m].is_reported)
			find_one_sided(suite, c, data, m);
	}
}

/* All that have the reason of the first of them, which are taken out. */
static void note_reason(struct csink_suite *suite, uint32_t first)
{
	const char *why = suite->unjudged[first].why;
	char names[1024] = "";
	uint32_t nr = 0;

	for (uint32_t i = first; i < suite->nr_unjudged; i++) {
		struct csink_suite_unjudged *one = &suite->unjudged[i];

		if (!one->why || strcmp(one->why, why) != 0)
			continue;
		if (nr++ < MAX_NAMED)
			csink_append(names, sizeof(names), "%s%s", nr > 1 ? ", " : "", one->name);
		if (i > first)
			one->why = NULL;
	}
	csink_gate_note(suite->series, "%s not judged, since %s: %s%s",
			nr > 1 ? "reported figures that are" : "a reported figure that is", why, names,
			nr > MAX_NAMED ? ", ..." : "");
	suite->unjudged[first].why = NULL;
}

void csink_suite_note_figures(struct csink_suite *suite)
{
	for (uint32_t i = 0; i < suite->nr; i++) {
		find_missing(suite, &suite->cases[i], &suite->cases[i].screening.data);
		find_missing(suite, &suite->cases[i], &suite->cases[i].data);
	}
	for (uint32_t i = 0; i < suite->nr_unjudged; i++) {
		if (suite->unjudged[i].why)
			note_reason(suite, i);
	}
	suite->nr_unjudged = 0;
}
