/* What is on the terminal: see top_screen.h. A line is never longer than the terminal is wide. */
#include "launcher/commands/top/top_screen.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/clock.h"
#include "launcher/base/format.h"
#include "launcher/base/text.h"
#include "launcher/commands/top/top_print.h"

#define LEAST_INTERVAL_NS (CSINK_NS_PER_S / 10)
#define MOST_INTERVAL_NS (3600 * CSINK_NS_PER_S)

enum { LEAST_ROWS_WITH_HEAD = 9, MAX_LINE = 1024 };

static const char *const help[] = {
	"q          quit",
	"h ?        this help",
	"f t p      functions, threads, phases",
	"s < >      sort by the next column, to the left, to the right",
	"up down    select a row; its whole name is below (j k)",
	"PgUp PgDn  a screen up or down; Home, End (g G)",
	"space      pause; what happens meanwhile is in the next interval",
	"+ - d      interval: twice, half, ask for it",
	"",
	"self%  total%: of one CPU, in the last interval. all%  total%: since the",
	"start. Total includes functions that were called.",
};

/* ---- keys ---- */

static void set_interval(struct csink_top_screen *s, uint64_t ns)
{
	s->interval_ns = CSINK_MIN(CSINK_MAX(ns, LEAST_INTERVAL_NS), MOST_INTERVAL_NS);
}

static void take_answer(struct csink_top_screen *s, int key)
{
	size_t len = strlen(s->answer);
	double seconds;

	if (((key >= '0' && key <= '9') || key == '.') && len + 1 < sizeof(s->answer)) {
		s->answer[len] = (char)key;
		s->answer[len + 1] = 0;
	} else if (key == CSINK_KEY_ERASE && len) {
		s->answer[len - 1] = 0;
	} else if (key == CSINK_KEY_ENTER || key == 'q') {
		seconds = strtod(s->answer, NULL);
		if (key == CSINK_KEY_ENTER && seconds > 0)
			set_interval(s, (uint64_t)(CSINK_MIN(seconds, 1e6) * CSINK_NS_PER_S));
		s->is_asking = false;
	}
}

static void set_view(struct csink_top_screen *s, enum csink_top_view view)
{
	s->view = s->view == view ? CSINK_TOP_FUNCTIONS : view;
	s->first = 0;
	s->selected = -1;
}

static void sort_by_next(struct csink_top_screen *s, int step)
{
	s->sort = (enum csink_top_sort)((s->sort + CSINK_NR_TOP_SORTS + step) % CSINK_NR_TOP_SORTS);
}

static void select_row(struct csink_top_screen *s, int64_t row)
{
	s->selected = CSINK_MIN(CSINK_MAX(row, 0), (int64_t)s->nr_rows - 1);
}

static void move(struct csink_top_screen *s, int key)
{
	int64_t page = CSINK_MAX(s->height, 1U), at = CSINK_MAX(s->selected, (int64_t)s->first);

	if (key == CSINK_KEY_UP || key == 'k')
		select_row(s, at - 1);
	else if (key == CSINK_KEY_DOWN || key == 'j')
		select_row(s, s->selected < 0 ? at : at + 1);
	else if (key == CSINK_KEY_PAGE_UP)
		select_row(s, at - page);
	else if (key == CSINK_KEY_PAGE_DOWN)
		select_row(s, at + page);
	else if (key == CSINK_KEY_HOME || key == 'g')
		select_row(s, 0);
	else if (key == CSINK_KEY_END || key == 'G')
		select_row(s, (int64_t)s->nr_rows - 1);
}

enum csink_top_wish csink_top_screen_key(struct csink_top_screen *s, int key)
{
	if (s->is_asking) {
		take_answer(s, key);
		return CSINK_TOP_GO_ON;
	}
	if (key == 'q' || key == 'Q')
		return CSINK_TOP_QUIT;
	if (s->shows_help) {
		s->shows_help = false;
		return CSINK_TOP_GO_ON;
	}
	switch (key) {
	case 'h':
	case '?':
		s->shows_help = true;
		break;
	case 'f':
		set_view(s, CSINK_TOP_FUNCTIONS);
		break;
	case 't':
		set_view(s, CSINK_TOP_THREADS);
		break;
	case 'p':
		set_view(s, CSINK_TOP_PHASES);
		break;
	case 's':
	case '>':
	case CSINK_KEY_RIGHT:
		sort_by_next(s, 1);
		break;
	case '<':
	case CSINK_KEY_LEFT:
		sort_by_next(s, -1);
		break;
	case ' ':
		s->is_paused = !s->is_paused;
		return s->is_paused ? CSINK_TOP_GO_ON : CSINK_TOP_NOW;
	case '+':
		set_interval(s, s->interval_ns * 2);
		break;
	case '-':
		set_interval(s, s->interval_ns / 2);
		break;
	case 'd':
		s->is_asking = true;
		s->answer[0] = 0;
		break;
	default:
		move(s, key);
	}
	return CSINK_TOP_GO_ON;
}

/* ---- drawing ---- */

struct drawing {
	FILE *out;
	struct csink_top_screen *s;
	const struct csink_top_terminal *terminal;
	uint32_t left; /* lines that are not written yet */
};

/* The next line begins, empty; none if the terminal is full. Behind a line's last column nothing could be erased. */
static bool begin_line(struct drawing *d)
{
	if (!d->left)
		return false;
	fputs(d->left-- < d->terminal->rows ? "\r\n\033[K" : "\033[K", d->out);
	return true;
}

static void put_line(struct drawing *d, const char *text)
{
	char shown[MAX_LINE];

	if (!begin_line(d))
		return;
	csink_format_text(shown, sizeof(shown), text, d->terminal->columns);
	csink_text_print(d->out, "%s", shown);
}

static void style(const struct drawing *d, const char *sequence)
{
	if (d->terminal->has_styles)
		fputs(sequence, d->out);
}

static const char *state_of(const struct csink_top_screen *s)
{
	return s->has_ended ? "the run has ended" : s->is_paused ? "paused" : "";
}

/* A row's first column marks the selected one. */
static uint32_t columns_of_rows(const struct drawing *d)
{
	return CSINK_MAX(d->terminal->columns, 2U) - 1;
}

static void draw_head(struct drawing *d)
{
	for (uint32_t i = 0; i < CSINK_TOP_HEAD_LINES; i++) {
		if (!begin_line(d))
			return;
		csink_top_print_head(d->out, d->s->source, d->s->picture, i, state_of(d->s), d->terminal->columns);
	}
}

static void draw_titles(struct drawing *d)
{
	if (!begin_line(d))
		return;
	style(d, "\033[7m\033[K"); /* to the end of the line */
	fputc(' ', d->out);
	csink_top_print_titles(d->out, d->s->picture, d->s->view, columns_of_rows(d));
	style(d, "\033[0m");
}

static void draw_rows(struct drawing *d)
{
	struct csink_top_screen *s = d->s;

	s->height = d->left ? d->left - 1 : 0; /* but for the last line */
	if (s->selected >= 0 && s->selected < s->first)
		s->first = (uint32_t)s->selected;
	if (s->selected >= 0 && s->selected >= (int64_t)s->first + s->height)
		s->first = (uint32_t)s->selected - CSINK_MAX(s->height, 1U) + 1;
	for (uint32_t i = 0; i < s->height && s->first + i < s->nr_rows; i++) {
		bool is_selected = s->selected == (int64_t)s->first + i;

		begin_line(d);
		style(d, is_selected ? "\033[1m" : "");
		fputc(is_selected ? '>' : ' ', d->out);
		csink_top_print_row(d->out, s->picture, s->view, s->first + i, columns_of_rows(d));
		style(d, is_selected ? "\033[0m" : "");
	}
}

static void draw_last_line(struct drawing *d)
{
	const struct csink_top_screen *s = d->s;
	const struct csink_diff_row *row = s->selected >= 0 ? &s->picture->tables[s->view].rows[s->selected] : NULL;
	char text[MAX_LINE] = "";

	while (d->left > 1)
		put_line(d, "");
	if (s->is_asking)
		csink_append(text, sizeof(text), "interval in seconds: %s_", s->answer);
	else if (row)
		csink_append(text, sizeof(text), "%s%s%s", row->name, *row->module ? "  " : "", row->module);
	else
		csink_append(text, sizeof(text), "q quit  h help  sort: %s  every %.1f s  %u rows",
			     csink_top_sort_words[s->sort], (double)s->interval_ns / CSINK_NS_PER_S, s->nr_rows);
	put_line(d, text);
}

static void draw(struct drawing *d)
{
	struct csink_top_screen *s = d->s;

	fputs("\033[H", d->out);
	s->nr_rows = csink_top_picture_sort(s->picture, s->view, s->sort);
	/* The picture may be a new one, with fewer rows. */
	s->selected = CSINK_MIN(s->selected, (int64_t)s->nr_rows - 1);
	s->first = CSINK_MIN(s->first, CSINK_MAX(s->nr_rows, 1U) - 1);
	if (s->shows_help) {
		for (size_t i = 0; i < CSINK_ARRAY_SIZE(help); i++)
			put_line(d, help[i]);
	} else {
		if (d->terminal->rows >= LEAST_ROWS_WITH_HEAD)
			draw_head(d);
		if (s->picture->samples[CSINK_TOP_ALL]) {
			draw_titles(d);
			draw_rows(d);
		} else {
			s->nr_rows = 0;
			s->selected = -1;
			put_line(d, "no sample yet");
		}
	}
	draw_last_line(d);
}

int csink_top_screen_draw(struct csink_top_screen *screen, const struct csink_top_terminal *terminal)
{
	struct drawing d = {.s = screen, .terminal = terminal, .left = terminal->rows};
	char *text = NULL;
	size_t bytes;
	int err;

	d.out = open_memstream(&text, &bytes);
	if (!d.out)
		return -ENOMEM;
	draw(&d);
	err = fclose(d.out) ? -ENOMEM : csink_top_terminal_write(text, bytes);
	free(text);
	return err;
}
