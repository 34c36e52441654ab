/* Making the runs of a gate: see series.h. */
#include "launcher/gate/series.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/clock.h"
#include "launcher/base/message.h"
#include "launcher/base/text.h"
#include "launcher/profile/merge.h"
#include "launcher/profile/profile.h"
#include "launcher/session/find_program.h"
#include "launcher/symbols/symbols_kept.h"

void csink_gate_note(struct csink_gate_series *series, const char *fmt, ...)
{
	va_list ap;
	char *text;
	uint32_t i;
	int len;

	va_start(ap, fmt);
	len = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (len < 0)
		return;
	for (i = 0; i < series->nr_notes && strcmp(series->notes[i], text); i++)
		;
	if (i < series->nr_notes || i == CSINK_GATE_MAX_NOTES)
		free(text);
	else
		series->notes[series->nr_notes++] = text;
}

/* ---- the order of things ---- */

static void show_progress(const struct csink_gate_series *series, uint32_t made, uint32_t planned)
{
	double spent = (double)(csink_monotonic_ns() - series->start_ns) / 1e9;
	double left = made ? spent / made * (planned - made) : 0;

	if (!series->plan->progress)
		return;
	if (made)
		csink_text_print(stderr, "\r\033[Kgate: %u of %u%s, %.0f s left", made, planned,
				 series->plan->look_again ? " or more" : "", left);
	else
		csink_text_print(stderr, "\r\033[Kgate: warming up");
	fflush(stderr);
}

static void end_progress(const struct csink_gate_series *series)
{
	if (series->plan->progress)
		fputs("\r\033[K", stderr);
}

static int warm_up(struct csink_gate_series *series)
{
	int err = 0;

	for (uint32_t i = 0; i < series->plan->warmup; i++) {
		for (int side = 0; side < CSINK_GATE_NR_SIDES && !err; side++) {
			if (series->plan->argv[side])
				err = csink_gate_turn(series, (enum csink_gate_side)side, -1);
		}
	}
	return err;
}

/* The nth pair. Two pairs are ABBA or BAAB, as a coin falls for the first. */
static int make_pair(struct csink_gate_series *series, uint32_t n, bool *new_first)
{
	int err;

	csink_gate_pin_draw(&series->pin, &series->random);
	if (!series->plan->argv[CSINK_GATE_OLD])
		return csink_gate_turn(series, CSINK_GATE_NEW, (int32_t)n);
	if (n & 1)
		*new_first = !*new_first;
	else
		*new_first = csink_random_below(&series->random, 2);
	err = csink_gate_turn(series, *new_first ? CSINK_GATE_NEW : CSINK_GATE_OLD, (int32_t)n);
	return err ? err : csink_gate_turn(series, *new_first ? CSINK_GATE_OLD : CSINK_GATE_NEW, (int32_t)n);
}

static bool is_out_of_time(const struct csink_gate_series *series, uint32_t made)
{
	uint64_t spent = csink_monotonic_ns() - series->start_ns;

	return made >= 2 && spent + spent / made > series->plan->max_time_ns;
}

/* How much of the time is spent; all of it, where no pair will follow. */
static double spent_fraction(const struct csink_gate_series *series, uint32_t made)
{
	double spent = (double)(csink_monotonic_ns() - series->start_ns) / (double)series->plan->max_time_ns;

	return is_out_of_time(series, made) ? 1 : fmax(spent, (double)made / CSINK_GATE_MAX_RUNS);
}

/* Judge what there is. Returns an enum csink_gate_decision or -errno. */
static int look(struct csink_gate_series *series, uint32_t made)
{
	struct csink_gate_verdicts verdicts;
	double left_ns, more = 0;
	int err;

	series->level = csink_gate_looks_level(&series->looks, series->rules->alpha, spent_fraction(series, made));
	err = csink_gate_judge(series->data, series->rules, series->level, &verdicts);
	if (err)
		return err;
	/* Looking takes time, too. */
	left_ns = (double)series->plan->max_time_ns - (double)(csink_monotonic_ns() - series->start_ns);
	if (!is_out_of_time(series, made))
		more = left_ns / ((double)(csink_monotonic_ns() - series->start_ns) / made);
	err = (int)csink_gate_looks_decide(&verdicts, series->rules, made, more);
	if (err == CSINK_GATE_NO_TIME && made >= CSINK_GATE_MAX_RUNS)
		csink_gate_note(series, "no more than %u pairs are made, and they did not settle every question", made);
	else if (err == CSINK_GATE_NO_TIME)
		csink_gate_note(series, "the time (--max-time) was spent before every question was settled");
	else if (err == CSINK_GATE_HOPELESS)
		csink_gate_note(series,
				"no open question would likely have been settled in the %.0f s that were left "
				"(--max-time)",
				fmax(left_ns, 0) / 1e9);
	csink_gate_verdicts_free(&verdicts);
	return err;
}

static int make_as_needed(struct csink_gate_series *series)
{
	int err = 0, decision = CSINK_GATE_GO_ON;
	bool new_first = false;
	uint32_t made = 0;

	while (!err && decision == CSINK_GATE_GO_ON) {
		uint32_t next = csink_gate_looks_next(made);

		for (; !err && made < next && !is_out_of_time(series, made); made++) {
			show_progress(series, made, next);
			err = make_pair(series, made, &new_first);
		}
		decision = err ? err : look(series, made);
		err = decision < 0 ? decision : 0;
	}
	return err;
}

static int make_planned(struct csink_gate_series *series)
{
	bool new_first = false;
	int err = 0;

	for (uint32_t i = 0; i < series->plan->runs && !err; i++) {
		show_progress(series, i, series->plan->runs);
		err = make_pair(series, i, &new_first);
	}
	return err;
}

static int prepare_pin(struct csink_gate_series *series)
{
	const struct csink_gate_plan *plan = series->plan;

	series->pin = (struct csink_gate_pin){.how = plan->pin, .cpu = plan->cpu};
	return csink_gate_pin_init(&series->pin, plan->argv[CSINK_GATE_OLD] && !plan->counting, series->error,
				   sizeof(series->error));
}

static void note_pin(struct csink_gate_series *series)
{
	if (series->pin.has_drawn && series->pin.has_several)
		csink_gate_note(series,
				"a run had more threads or processes than the runs before it: the pairs after it "
				"were no longer made on one CPU each (--pin)");
}

/* The programs themselves; the other programs of a side are in its profiles. A self-check moves what both sides run: it
 * is to meet the same chance as a gate of two builds. */
static int place(struct csink_gate_series *series)
{
	char **const *argv = series->plan->argv;
	static struct csink_program program;
	int err = 0;

	series->placement.two_sides = argv[CSINK_GATE_OLD] && argv[CSINK_GATE_OLD] != argv[CSINK_GATE_NEW];
	for (int side = 0; side < CSINK_GATE_NR_SIDES && series->plan->move && !err; side++) {
		if (argv[side] && !csink_program_find(argv[side][0], &program))
			err = csink_gate_placement_add_program(&series->placement, side, program.path);
	}
	return err;
}

static void note_kept(struct csink_gate_series *series)
{
	const char *first = NULL, *path;
	uint32_t at = 0, nr = 0;

	for (; (path = csink_gate_placement_kept(&series->placement, &at)); nr++)
		first = first ? first : path;
	if (!first)
		return;
	csink_gate_note(series,
			"%s%s had the same place in memory in all runs, since another process has it mapped or its "
			"file system is in memory: the place changes the speed of code by some percent",
			first, nr > 1 ? " (and others)" : "");
}

int csink_gate_series_join(struct csink_gate_series *series)
{
	int err = 0;

	for (int side = 0; side < CSINK_GATE_NR_SIDES && !err; side++)
		if (series->merges[side])
			err = csink_merge_finish(series->merges[side], &series->kept[side]);
	return err;
}

int csink_gate_series_make(struct csink_gate_series *series)
{
	int err = prepare_pin(series), merge_err;

	csink_random_init(&series->random, series->rules->seed);
	if (!err)
		err = place(series);
	if (err)
		return err;
	csink_symbols_keep_begin();
	show_progress(series, 0, 1);
	err = warm_up(series);
	series->start_ns = csink_monotonic_ns();
	if (!err)
		err = series->plan->runs ? make_planned(series) : make_as_needed(series);
	end_progress(series);
	csink_symbols_keep_end();
	merge_err = csink_gate_series_join(series);
	err = err ? err : merge_err;
	if (!err) {
		note_kept(series);
		note_pin(series);
	}
	if (err && err != -EINTR && !*series->error)
		snprintf(series->error, sizeof(series->error), "%s", strerror(-err));
	return err;
}

void csink_gate_series_free(struct csink_gate_series *series)
{
	for (int side = 0; side < CSINK_GATE_NR_SIDES; side++) {
		csink_merge_free(series->merges[side]);
		csink_profile_free(series->kept[side]);
	}
	csink_gate_placement_free(&series->placement);
	for (uint32_t i = 0; i < series->nr_notes; i++)
		free(series->notes[i]);
}
