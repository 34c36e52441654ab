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
#include "launcher/base/hash.h"
#include "launcher/base/json_read.h"
#include "launcher/base/message.h"
#include "launcher/base/search.h"

#define VERSION 1

/* ---- one line, before it is taken ---- */

struct figure {
	char *case_name, *name, *unit;
	bool is_function;
	struct csink_history_point point;
};

struct parsed {
	struct csink_history_line line;
	double version;
	struct {
		char *name, *command;
	} * cases;
	uint32_t nr_cases, cap_cases;
	struct figure *figures; /* name and unit are theirs, case_name is that of cases */
	uint32_t nr_figures, cap_figures;
	bool lacked_memory;
};

static void free_line(struct csink_history_line *line)
{
	free(line->commit);
	free(line->parent);
	free(line->anchor);
	free(line->cpu);
	free(line->kernel);
	free(line->committed);
	free(line->time);
}

static void free_parsed(struct parsed *p)
{
	free_line(&p->line);
	for (uint32_t i = 0; i < p->nr_cases; i++) {
		free(p->cases[i].name);
		free(p->cases[i].command);
	}
	for (uint32_t i = 0; i < p->nr_figures; i++) {
		free(p->figures[i].name);
		free(p->figures[i].unit);
	}
	free(p->cases);
	free(p->figures);
}

static void read_over(struct csink_json_reader *r, char **text)
{
	free(*text);
	*text = csink_json_read_text(r);
}

/* "NAME":[ratio, low, high, last, unit]. What comes behind is of later versions. */
static void read_figure(struct csink_json_reader *r, struct parsed *p, char *key, bool is_function)
{
	struct figure figure = {.case_name = p->cases[p->nr_cases - 1].name, .name = key, .is_function = is_function};
	double values[4] = {NAN, NAN, NAN, NAN};

	csink_json_read_open(r, '[');
	for (uint32_t i = 0; csink_json_read_element(r); i++) {
		if (i < CSINK_ARRAY_SIZE(values))
			values[i] = csink_json_read_real(r);
		else if (i == CSINK_ARRAY_SIZE(values) && !is_function)
			figure.unit = csink_json_read_text(r);
		else
			csink_json_read_skip(r);
	}
	figure.point = (struct csink_history_point){0, values[0], values[1], values[2], values[3]};
	if (!(values[0] > 0))
		r->is_bad = true;
	if (CSINK_GROW(p->figures, p->nr_figures, p->cap_figures)) {
		p->lacked_memory = true;
		free(key);
		free(figure.unit);
		return;
	}
	p->figures[p->nr_figures++] = figure;
}

static void read_figures(struct csink_json_reader *r, struct parsed *p, bool are_functions)
{
	char *key;

	csink_json_read_open(r, '{');
	while (!p->lacked_memory && csink_json_read_member(r, &key))
		read_figure(r, p, key, are_functions);
}

/* Takes the name. */
static void read_case(struct csink_json_reader *r, struct parsed *p, char *name)
{
	char *key;

	if (CSINK_GROW(p->cases, p->nr_cases, p->cap_cases)) {
		p->lacked_memory = true;
		free(name);
		return;
	}
	p->cases[p->nr_cases].command = NULL;
	p->cases[p->nr_cases++].name = name;
	csink_json_read_open(r, '{');
	while (!p->lacked_memory && csink_json_read_member(r, &key)) {
		if (!strcmp(key, "figures"))
			read_figures(r, p, false);
		else if (!strcmp(key, "functions"))
			read_figures(r, p, true);
		else if (!strcmp(key, "command"))
			read_over(r, &p->cases[p->nr_cases - 1].command);
		else
			csink_json_read_skip(r);
		free(key);
	}
}

static void read_machine(struct csink_json_reader *r, struct parsed *p)
{
	char *key;

	csink_json_read_open(r, '{');
	while (csink_json_read_member(r, &key)) {
		if (!strcmp(key, "cpu"))
			read_over(r, &p->line.cpu);
		else if (!strcmp(key, "kernel"))
			read_over(r, &p->line.kernel);
		else
			csink_json_read_skip(r);
		free(key);
	}
}

static void read_member(struct csink_json_reader *r, struct parsed *p, const char *key)
{
	const struct {
		const char *key;
		char **text;
	} texts[] = {
		{"commit", &p->line.commit},       {"parent", &p->line.parent}, {"anchor", &p->line.anchor},
		{"committed", &p->line.committed}, {"time", &p->line.time},
	};
	char *name;

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(texts); i++) {
		if (strcmp(key, texts[i].key) != 0)
			continue;
		read_over(r, texts[i].text);
		return;
	}
	if (!strcmp(key, "v")) {
		p->version = csink_json_read_real(r);
	} else if (!strcmp(key, "machine")) {
		read_machine(r, p);
	} else if (!strcmp(key, "cases")) {
		csink_json_read_open(r, '{');
		while (!p->lacked_memory && csink_json_read_member(r, &name))
			read_case(r, p, name);
	} else {
		csink_json_read_skip(r);
	}
}

/* Returns 0, -EBADMSG (damaged), -ENOTSUP (a later version) or -ENOMEM. */
static int parse(const char *text, size_t bytes, struct parsed *p)
{
	struct csink_json_reader r;
	char *key;

	csink_json_read_init(&r, text, bytes);
	csink_json_read_open(&r, '{');
	while (!p->lacked_memory && csink_json_read_member(&r, &key)) {
		read_member(&r, p, key);
		free(key);
	}
	if (p->lacked_memory)
		return -ENOMEM;
	if (p->version > VERSION && csink_json_read_end(&r))
		return -ENOTSUP;
	if (!csink_json_read_end(&r) || p->version != VERSION || !p->line.commit || !p->line.anchor || !p->nr_figures)
		return -EBADMSG;
	return 0;
}

/* ---- the history ---- */

static uint32_t add_case(struct csink_history *h, const char *name)
{
	char *copy = strdup(name);

	if (!copy || CSINK_GROW(h->cases, h->nr_cases, h->cap_cases)) {
		free(copy);
		return 0;
	}
	h->cases[h->nr_cases++] = (struct csink_history_case){copy, NULL};
	return h->nr_cases;
}

static int find_case(struct csink_history *h, const char *name)
{
	uint32_t found = CSINK_TABLE_INTERN(h->known_cases, (uint32_t)csink_hash_bytes(name, strlen(name)),
					    !strcmp(h->cases[id - 1].name, name), add_case(h, name));

	return found ? (int)found - 1 : -ENOMEM;
}

static uint32_t add_series(struct csink_history *h, uint32_t of_case, struct figure *figure)
{
	if (CSINK_GROW(h->series, h->nr_series, h->cap_series))
		return 0;
	h->series[h->nr_series++] = (struct csink_history_series){
		.of_case = of_case, .is_function = figure->is_function, .name = figure->name, .unit = figure->unit};
	figure->name = figure->unit = NULL;
	return h->nr_series;
}

static bool is_series(const struct csink_history_series *s, uint32_t of_case, const struct figure *figure)
{
	return s->of_case == of_case && s->is_function == figure->is_function && !strcmp(s->name, figure->name);
}

/* Takes the figure's name and unit, where the series is new. */
static struct csink_history_series *find_series(struct csink_history *h, uint32_t of_case, struct figure *figure)
{
	uint64_t hash = csink_hash_pair(csink_hash_bytes(figure->name, strlen(figure->name)), of_case);
	uint32_t found =
		CSINK_TABLE_INTERN(h->known_series, (uint32_t)hash, is_series(&h->series[id - 1], of_case, figure),
				   add_series(h, of_case, figure));

	return found ? &h->series[found - 1] : NULL;
}

static int take_figure(struct csink_history *h, struct figure *figure)
{
	int of_case = find_case(h, figure->case_name);
	struct csink_history_series *s = of_case < 0 ? NULL : find_series(h, (uint32_t)of_case, figure);

	if (!s || CSINK_GROW(s->points, s->nr_points, s->cap_points))
		return -ENOMEM;
	s->points[s->nr_points] = figure->point;
	s->points[s->nr_points++].line = h->nr_lines;
	return 0;
}

/* The command as the last line has it. */
static int take_command(struct csink_history *h, const char *name, const char *command)
{
	int of_case = find_case(h, name);
	char *copy = of_case < 0 ? NULL : strdup(command ?: name);

	if (!copy)
		return -ENOMEM;
	free(h->cases[of_case].command);
	h->cases[of_case].command = copy;
	return 0;
}

static int take(struct csink_history *h, struct parsed *p, uint32_t number)
{
	int err = CSINK_GROW(h->lines, h->nr_lines, h->cap_lines);

	for (uint32_t i = 0; !err && i < p->nr_cases; i++)
		err = take_command(h, p->cases[i].name, p->cases[i].command);
	for (uint32_t i = 0; !err && i < p->nr_figures; i++)
		err = take_figure(h, &p->figures[i]);
	if (err)
		return err;
	p->line.number = number;
	h->lines[h->nr_lines++] = p->line;
	p->line = (struct csink_history_line){0};
	return 0;
}

static int add_line(struct csink_history *h, const char *text, size_t bytes, uint32_t number)
{
	struct parsed p = {.version = NAN};
	int err = parse(text, bytes, &p);

	if (!err)
		err = take(h, &p, number);
	if (err == -EBADMSG && h->nr_damaged++ < CSINK_HISTORY_DAMAGED)
		h->damaged[h->nr_damaged - 1] = number;
	h->nr_later += err == -ENOTSUP;
	free_parsed(&p);
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

bool csink_history_is_main(const struct csink_history_series *s)
{
	return !s->is_function && (!strcmp(s->name, "cpu") || !strcmp(s->name, "instructions"));
}
