/*
 * For tests/gate/history-power: how often a history's change points are false, and what they find, simulated on real
 * ratios of a program and itself.
 *
 * usage: history_power FILE COMMITS SERIES PAIRS SEED      FILE: a ratio a line, in the order in which they were
 * measured Prints lines of a word and numbers: "ratios NUMBER SPREAD" (of a commit's value), "false COMMITS ALARMS
 * CONFIRMED_RATE" (and "false-unknown", where the intervals are not known), "step DEVIATIONS SERIES WITHIN_4 WITHIN_6
 * WITHIN_8 FOUND PLACED_WITHIN_1 CONFIRMED_SHARE".
 *
 * A commit's value is what a gate would append: Hodges-Lehmann of PAIRS neighbouring log ratios from a random place of
 * FILE, and its interval. An alarm is confirmed as a gate does, by the signed ranks of 30 fresh pairs at 1 %; to see
 * rates that small, each alarm is confirmed DRAWS times.
 */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "launcher/base/search.h"
#include "launcher/gate/stats/change_points.h"
#include "launcher/gate/stats/stats.h"

#define MAX_RATIOS 100000
#define MAX_PAIRS 100
#define MAX_COMMITS 100000
#define CONFIRM_PAIRS 30
#define CONFIRM_ALPHA 0.01
#define DRAWS 100
#define STEP_AT 40    /* a step comes behind so many commits, */
#define STEP_UNTIL 60 /* and is looked for until there are so many */

static double ratios[MAX_RATIOS];
static uint32_t nr_ratios;
static struct csink_random rng;

/* Neighbouring pairs, since the weather of a machine lasts longer than one. Which of two equal programs was the first
 * is as good as the other way round. */
static void draw_pairs(double *out, uint32_t nr)
{
	uint32_t from = csink_random_below(&rng, nr_ratios);

	for (uint32_t i = 0; i < nr; i++) {
		double ratio = ratios[(from + i) % nr_ratios];

		out[i] = csink_random_below(&rng, 2) ? ratio : -ratio;
	}
}

/* A commit's value; its standard error from the 95 % interval that goes with Hodges-Lehmann: order statistics of the
 * means of all pairs. */
static double draw_commit(uint32_t pairs, double *error)
{
	static double logs[MAX_PAIRS], means[MAX_PAIRS * (MAX_PAIRS + 1) / 2];
	double middle, width = 1.959963984540054 * sqrt(pairs * (pairs + 1.0) * (2.0 * pairs + 1) / 24);
	uint32_t nr = 0, low;

	draw_pairs(logs, pairs);
	for (uint32_t i = 0; i < pairs; i++) {
		for (uint32_t k = i; k < pairs; k++)
			means[nr++] = (logs[i] + logs[k]) / 2;
	}
	qsort(means, nr, sizeof(*means), csink_compare_doubles);
	low = (uint32_t)fmax(0, floor(nr / 2.0 - width));
	middle = nr % 2 ? means[nr / 2] : (means[nr / 2 - 1] + means[nr / 2]) / 2;
	*error = (means[nr - 1 - low] - means[low]) / (2 * 1.959963984540054);
	return middle;
}

/* Of DRAWS confirmations: how many say that there is a change. */
static uint32_t confirm(bool is_up, double step)
{
	double pairs[CONFIRM_PAIRS];
	uint32_t nr = 0;

	for (int i = 0; i < DRAWS; i++) {
		draw_pairs(pairs, CONFIRM_PAIRS);
		for (uint32_t k = 0; k < CONFIRM_PAIRS; k++)
			pairs[k] += step;
		nr += csink_wilcoxon_paired(pairs, CONFIRM_PAIRS, is_up ? CSINK_TAIL_GREATER : CSINK_TAIL_LESS) <=
		      CONFIRM_ALPHA;
	}
	return nr;
}

/* @errors_known  as of lines with intervals; else the spread of neighbours is all there is. */
static void count_false(uint32_t commits, uint32_t series, uint32_t pairs, bool errors_known)
{
	static double values[MAX_COMMITS], errors[MAX_COMMITS];
	uint64_t alarms = 0, confirmed = 0;
	double total = (double)commits * series;
	struct csink_scan scan;

	for (uint32_t s = 0; s < series; s++) {
		uint32_t start = 0;

		for (uint32_t i = 0; i < commits; i++) {
			values[i] = draw_commit(pairs, &errors[i]);
			if (!csink_scan_end(values + start, errors_known ? errors + start : NULL, i + 1 - start, &scan))
				continue;
			alarms++;
			confirmed += confirm(scan.z > 0, 0);
			start = i + 1 - scan.after;
		}
	}
	printf("%s %.0f %" PRIu64 " %.9f\n", errors_known ? "false" : "false-unknown", total, alarms,
	       (double)confirmed / DRAWS / total);
}

static double spread_of_commits(uint32_t pairs)
{
	double values[CSINK_SCAN_WINDOW], error, sum = 0;

	for (int i = 0; i < 400; i++) {
		for (uint32_t k = 0; k < CSINK_SCAN_WINDOW; k++)
			values[k] = draw_commit(pairs, &error);
		sum += csink_spread_of_neighbours(values, CSINK_SCAN_WINDOW);
	}
	return sum / 400;
}

struct found {
	uint32_t within[STEP_UNTIL + 1]; /* found when so many commits were behind the step */
	uint32_t all, near, confirmed;
};

/* One series: where does the history place the step, once all commits have come? */
static void find_step(double step, uint32_t pairs, struct found *found)
{
	double values[STEP_UNTIL], errors[STEP_UNTIL];
	uint32_t start = 0, n, at;
	bool is_found = false;
	struct csink_scan scan;

	for (n = 0; n < STEP_UNTIL; n++)
		values[n] = draw_commit(pairs, &errors[n]) + (n >= STEP_AT ? step : 0);
	for (n = 1; n <= STEP_UNTIL && !is_found; n++) {
		if (!csink_scan_end(values + start, errors + start, n - start, &scan))
			continue;
		if (n > STEP_AT)
			is_found = true;
		else
			start = n - scan.after;
	}
	if (!is_found)
		return;
	n--;
	found->all++;
	for (uint32_t i = n - STEP_AT; i <= STEP_UNTIL; i++)
		found->within[i]++;
	at = CSINK_MAX(start, STEP_AT - 15U);
	at += csink_split_at(values + at, STEP_UNTIL - at, 2);
	found->near += at + 1 >= STEP_AT && at <= STEP_AT + 1;
	found->confirmed += confirm(true, step);
}

static void find_steps(double deviations, double spread, uint32_t series, uint32_t pairs)
{
	struct found found = {{0}, 0, 0, 0};

	for (uint32_t s = 0; s < series; s++)
		find_step(deviations * spread, pairs, &found);
	printf("step %g %u %u %u %u %u %u %.4f\n", deviations, series, found.within[4], found.within[6],
	       found.within[8], found.all, found.near, (double)found.confirmed / DRAWS / CSINK_MAX(found.all, 1U));
}

int main(int argc, char **argv)
{
	FILE *f = argc == 6 ? fopen(argv[1], "r") : NULL;
	uint32_t commits, series, pairs;
	double spread;

	if (!f) {
		fprintf(stderr, "usage: history_power FILE COMMITS SERIES PAIRS SEED\n");
		return 2;
	}
	while (nr_ratios < MAX_RATIOS && fscanf(f, "%lf", &ratios[nr_ratios]) == 1) {
		ratios[nr_ratios] = log(ratios[nr_ratios]);
		nr_ratios++;
	}
	commits = CSINK_MIN((uint32_t)atoi(argv[2]), MAX_COMMITS);
	series = (uint32_t)atoi(argv[3]);
	pairs = CSINK_MIN((uint32_t)atoi(argv[4]), MAX_PAIRS);
	csink_random_init(&rng, (uint64_t)atoll(argv[5]));
	spread = spread_of_commits(pairs);
	printf("ratios %u %.5f\n", nr_ratios, spread);
	count_false(commits, series, pairs, true);
	count_false(commits, series, pairs, false);
	for (int i = 2; i <= 4; i++)
		find_steps(i, spread, CSINK_MAX(series, 400U), pairs);
	fclose(f);
	return 0;
}
