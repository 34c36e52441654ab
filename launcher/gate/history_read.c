/*
 * Reading histories: see history_read.h. A line is taken whole or not at all, so that one that is damaged at its end
 * leaves no half of its figures.
 */
#include "launcher/gate/history_read.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "include/internal/grow.h"
#include "launcher/base/format.h"
#include "launcher/base/hash.h"
#include "launcher/base/json_read.h"
#include "launcher/base/message.h"
#include "launcher/base/search.h"

#define VERSION 1

static void free_line(struct csink_history_line *line)
{
	free(line->commit);
	free(line->parent);
	free(line->anchor);
	free(line->cpu);
	free(line->committed);
	free(line->time);
}

/* ---- checking a line before any of it is taken ---- */

struct kind {
	const char *unit;
	bool more_is_better;
};

/* "NAME":[ratio, low, high, last, unit, "more"]. What comes behind is of later versions. Returns whether it has a
 * ratio. */
static bool read_figure(const struct csink_json_value *figure, struct csink_history_point *point, struct kind *kind)
{
	double values[4] = {NAN, NAN, NAN, NAN};
	uint32_t i = 0;

	*kind = (struct kind){0};
	for (const struct csink_json_value *one = figure->first; one; one = one->next, i++) {
		if (i < CSINK_ARRAY_SIZE(values) && one->kind == CSINK_JSON_NUMBER && isfinite(one->number))
			values[i] = one->number;
		else if (i == CSINK_ARRAY_SIZE(values))
			kind->unit = one->text;
		else if (i == CSINK_ARRAY_SIZE(values) + 1)
			kind->more_is_better = one->text && !strcmp(one->text, "more");
	}
	*point = (struct csink_history_point){0, false, values[0], values[1], values[2], values[3]};
	return figure->kind == CSINK_JSON_ARRAY && values[0] > 0;
}

/* Every figure of an object, if they are figures; where there is no object, none. Returns their number, or -EBADMSG. */
static int count_figures(const struct csink_json_value *figures)
{
	struct csink_history_point point;
	struct kind kind;
	int nr = 0;

	if (figures && figures->kind != CSINK_JSON_OBJECT)
		return -EBADMSG;
	for (const struct csink_json_value *one = figures ? figures->first : NULL; one; one = one->next, nr++) {
		if (!read_figure(one, &point, &kind))
			return -EBADMSG;
	}
	return nr;
}

/* Returns 0, -EBADMSG (damaged) or -ENOTSUP (a later version). */
static int check(const struct csink_json_value *line)
{
	const struct csink_json_value *cases = csink_json_get(line, "cases");
	double version = csink_json_get_number(line, "v");
	int nr = 0;

	if (version > VERSION)
		return -ENOTSUP;
	if (version != VERSION || !csink_json_get_text(line, "commit") || !csink_json_get_text(line, "anchor") ||
	    !cases || cases->kind != CSINK_JSON_OBJECT)
		return -EBADMSG;
	for (const struct csink_json_value *one = cases->first; one; one = one->next) {
		int figures = count_figures(csink_json_get(one, "figures"));
		int functions = count_figures(csink_json_get(one, "functions"));

		if (figures < 0 || functions < 0)
			return -EBADMSG;
		nr += figures + functions;
	}
	return nr ? 0 : -EBADMSG;
}

/* ---- the history ---- */

static uint32_t add_case(struct csink_history *h, const char *name)
{
	char *copy = strdup(name);

	if (!copy || CSINK_GROW(h->cases, h->nr_cases, h->cap_cases)) {
		free(copy);
		return 0;
	}
	h->cases[h->nr_cases++] = (struct csink_history_case){.name = copy};
	return h->nr_cases;
}

static int find_case(struct csink_history *h, const char *name)
{
	uint32_t found = CSINK_TABLE_INTERN(h->known_cases, (uint32_t)csink_hash_bytes(name, strlen(name)),
					    !strcmp(h->cases[id - 1].name, name), add_case(h, name));

	return found ? (int)found - 1 : -ENOMEM;
}

static uint32_t add_series(struct csink_history *h, uint32_t of_case, bool is_function, const char *name,
			   const char *unit)
{
	char *copy = strdup(name), *unit_copy = unit ? strdup(unit) : NULL;

	if (!copy || (unit && !unit_copy) || CSINK_GROW(h->series, h->nr_series, h->cap_series)) {
		free(copy);
		free(unit_copy);
		return 0;
	}
	h->series[h->nr_series++] = (struct csink_history_series){
		.of_case = of_case, .is_function = is_function, .name = copy, .unit = unit_copy};
	return h->nr_series;
}

static bool is_series(const struct csink_history_series *s, uint32_t of_case, bool is_function, const char *name)
{
	return s->of_case == of_case && s->is_function == is_function && !strcmp(s->name, name);
}

static int take_figure(struct csink_history *h, uint32_t of_case, bool is_function,
		       const struct csink_json_value *figure)
{
	uint64_t hash = csink_hash_pair(csink_hash_bytes(figure->key, strlen(figure->key)), of_case);
	struct csink_history_point point;
	struct csink_history_series *s;
	struct kind kind;
	uint32_t found;

	read_figure(figure, &point, &kind);
	found = CSINK_TABLE_INTERN(h->known_series, (uint32_t)hash,
				   is_series(&h->series[id - 1], of_case, is_function, figure->key),
				   add_series(h, of_case, is_function, figure->key, kind.unit));
	s = found ? &h->series[found - 1] : NULL;
	/* A name that a line has twice: the first one. Functions are in the order of their shares. */
	if (s && s->nr_points && s->points[s->nr_points - 1].line == h->nr_lines)
		return 0;
	if (!s || CSINK_GROW(s->points, s->nr_points, s->cap_points))
		return -ENOMEM;
	/* As the last line has it. */
	s->more_is_better = kind.more_is_better;
	point.line = h->nr_lines;
	s->points[s->nr_points++] = point;
	return 0;
}

static int take_figures(struct csink_history *h, uint32_t of_case, bool are_functions,
			const struct csink_json_value *figures)
{
	int err = 0;

	for (const struct csink_json_value *one = figures ? figures->first : NULL; one && !err; one = one->next)
		err = take_figure(h, of_case, are_functions, one);
	return err;
}

/* It may be another author's, and is pasted into a shell: its words are quoted, so that none of its text is syntax. */
static int take_command(struct csink_history_case *of_case, const struct csink_json_value *words)
{
	char command[4096] = "";

	/* As the last line has it. */
	free(of_case->command);
	of_case->command = NULL;
	if (!words || words->kind != CSINK_JSON_ARRAY || !words->first)
		return 0;
	for (const struct csink_json_value *word = words->first; word; word = word->next) {
		csink_append(command, sizeof(command), "%s", word == words->first ? "" : " ");
		csink_append_word(command, sizeof(command), word->text ?: "");
		if (!word->text || strlen(command) == sizeof(command) - 1)
			return 0;
	}
	of_case->command = strdup(command);
	return of_case->command ? 0 : -ENOMEM;
}

/* Of a suite's case, how a gate is to find it. */
static int take_suite(struct csink_history_case *of_case, const struct csink_json_value *one)
{
	const char *suite = csink_json_get_text(one, "suite"), *list = csink_json_get_text(one, "list");

	of_case->printed = csink_json_get_true(one, "printed");
	free(of_case->suite);
	free(of_case->list);
	of_case->suite = of_case->list = NULL;
	if (!suite || !*suite)
		return 0;
	/* Without a kind that can be one, there is no command. */
	if (suite[strspn(suite, "abcdefghijklmnopqrstuvwxyz")]) {
		free(of_case->command);
		of_case->command = NULL;
		return 0;
	}
	of_case->suite = strdup(suite);
	of_case->list = list ? strdup(list) : NULL;
	return of_case->suite && (of_case->list || !list) ? 0 : -ENOMEM;
}

static int take_case(struct csink_history *h, const struct csink_json_value *one)
{
	int of_case = find_case(h, one->key);

	if (of_case < 0 || take_command(&h->cases[of_case], csink_json_get(one, "command")) ||
	    take_suite(&h->cases[of_case], one))
		return -ENOMEM;
	h->cases[of_case].fold_native = csink_json_get_true(one, "fold_native");
	return take_figures(h, (uint32_t)of_case, false, csink_json_get(one, "figures"))
		       ?: take_figures(h, (uint32_t)of_case, true, csink_json_get(one, "functions"));
}

/* Returns 0 or -ENOMEM. A text that is not known stays NULL. */
static int take_texts(struct csink_history_line *line, const struct csink_json_value *from)
{
	const struct {
		char **text;
		const char *from;
	} texts[] = {
		{&line->commit, csink_json_get_text(from, "commit")},
		{&line->parent, csink_json_get_text(from, "parent")},
		{&line->anchor, csink_json_get_text(from, "anchor")},
		{&line->committed, csink_json_get_text(from, "committed")},
		{&line->time, csink_json_get_text(from, "time")},
		{&line->cpu, csink_json_get_text(csink_json_get(from, "machine"), "cpu")},
	};

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(texts); i++) {
		*texts[i].text = texts[i].from ? strdup(texts[i].from) : NULL;
		if (texts[i].from && !*texts[i].text)
			return -ENOMEM;
	}
	return 0;
}

static int take(struct csink_history *h, const struct csink_json_value *from, uint32_t number)
{
	struct csink_history_line line = {.number = number};
	int err = CSINK_GROW(h->lines, h->nr_lines, h->cap_lines) ?: take_texts(&line, from);

	for (const struct csink_json_value *one = csink_json_get(from, "cases")->first; one && !err; one = one->next)
		err = take_case(h, one);
	if (err)
		free_line(&line);
	else
		h->lines[h->nr_lines++] = line;
	return err;
}

static int add_line(struct csink_history *h, const char *text, size_t bytes, uint32_t number)
{
	struct csink_json_value *line = csink_json_read(text, bytes);
	int err = line ? check(line) : -EBADMSG;

	if (!err)
		err = take(h, line, number);
	if (err == -EBADMSG && h->nr_damaged++ < CSINK_HISTORY_DAMAGED)
		h->damaged[h->nr_damaged - 1] = number;
	h->nr_later += err == -ENOTSUP;
	csink_json_free(line);
	return err == -ENOMEM ? err : 0;
}

/* ---- order ---- */

/* By the time of the commit, else that of the measurement; then as the file has them. Jobs end in any order. */
static int compare_lines(const void *a, const void *b, void *history)
{
	const struct csink_history *h = history;
	const struct csink_history_line *left = &h->lines[*(const uint32_t *)a],
					*right = &h->lines[*(const uint32_t *)b];
	const char *when[2] = {left->committed ?: left->time ?: "", right->committed ?: right->time ?: ""};

	return strcmp(when[0], when[1]) ?: CSINK_COMPARE(left->number, right->number);
}

static int compare_points(const void *a, const void *b)
{
	const struct csink_history_point *left = a, *right = b;

	return CSINK_COMPARE(left->line, right->line);
}

static int sort(struct csink_history *h)
{
	CSINK_AUTO_FREE uint32_t *order = csink_sorted(h->nr_lines, compare_lines, h);
	CSINK_AUTO_FREE uint32_t *places = calloc(h->nr_lines + 1, sizeof(*places));
	struct csink_history_line *sorted = calloc(h->nr_lines + 1, sizeof(*sorted));

	if (!order || !places || !sorted) {
		free(sorted);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < h->nr_lines; i++) {
		sorted[i] = h->lines[order[i]];
		places[order[i]] = i;
	}
	free(h->lines);
	h->lines = sorted;
	h->cap_lines = h->nr_lines + 1;
	for (uint32_t i = 0; i < h->nr_series; i++) {
		struct csink_history_series *s = &h->series[i];

		for (uint32_t k = 0; k < s->nr_points; k++)
			s->points[k].line = places[s->points[k].line];
		qsort(s->points, s->nr_points, sizeof(*s->points), compare_points);
	}
	return 0;
}

/* ---- the file ---- */

static int read_lines(FILE *file, struct csink_history *h)
{
	CSINK_AUTO_FREE char *text = NULL;
	uint32_t number = 0, cap = 0;
	int c = 0, err = 0;

	while (!err && c != EOF) {
		uint32_t bytes = 0, blank = 0;

		while (!err && (c = getc_unlocked(file)) != EOF && c != '\n') {
			err = CSINK_GROW(text, bytes, cap);
			if (err)
				break;
			text[bytes] = (char)c;
			blank += c == ' ' || c == '\r' || c == '\t';
			bytes += bytes <= CSINK_HISTORY_LINE_BYTES;
		}
		number++;
		if (!err && bytes > blank)
			err = add_line(h, text, bytes <= CSINK_HISTORY_LINE_BYTES ? bytes : 0, number);
	}
	return err ?: ferror(file) ? -(errno ?: EIO) : 0;
}

int csink_history_read_stream(FILE *file, struct csink_history *h)
{
	int err;

	*h = (struct csink_history){0};
	errno = 0;
	err = read_lines(file, h);
	if (!err)
		err = sort(h);
	if (err)
		csink_history_free(h);
	return err;
}

int csink_history_read(const char *path, struct csink_history *h, char *why, size_t why_bytes)
{
	bool is_stdin = !strcmp(path, "-");
	CSINK_AUTO_FCLOSE FILE *opened = is_stdin ? NULL : fopen(path, "re");
	int err = is_stdin || opened ? 0 : -errno;

	if (!err)
		err = csink_history_read_stream(is_stdin ? stdin : opened, h);
	if (err)
		return csink_why(err, why, why_bytes, "%s: %s", path, strerror(-err));
	if (h->nr_lines)
		return 0;
	csink_why(0, why, why_bytes,
		  h->nr_damaged || h->nr_later ? "%s: none of its lines is of a history (%u damaged, %u of a later "
						 "version): it is written by countersink gate --history"
					       : "%s: it has no lines: it is written by countersink gate --history",
		  path, h->nr_damaged, h->nr_later);
	csink_history_free(h);
	return -ENODATA;
}

void csink_history_free(struct csink_history *h)
{
	for (uint32_t i = 0; i < h->nr_lines; i++)
		free_line(&h->lines[i]);
	for (uint32_t i = 0; i < h->nr_cases; i++) {
		free(h->cases[i].name);
		free(h->cases[i].command);
		free(h->cases[i].suite);
		free(h->cases[i].list);
	}
	for (uint32_t i = 0; i < h->nr_series; i++) {
		free(h->series[i].name);
		free(h->series[i].unit);
		free(h->series[i].points);
	}
	free(h->lines);
	free(h->cases);
	free(h->series);
	csink_table_free(&h->known_cases);
	csink_table_free(&h->known_series);
	*h = (struct csink_history){0};
}

const struct csink_history_point *csink_history_latest(const struct csink_history_series *s)
{
	return &s->points[s->nr_points - 1];
}

bool csink_history_is_worse(const struct csink_history_series *s, double ratio)
{
	return s->more_is_better ? ratio < 1 : ratio > 1;
}

bool csink_history_is_main(const struct csink_history_series *s)
{
	return !s->is_function && (!strcmp(s->name, "cpu") || !strcmp(s->name, "instructions"));
}
