/* Wilcoxon's rank tests, and the adjustments for the number of tests: see stats.h. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "launcher/base/search.h"
#include "launcher/gate/stats/stats.h"

#define MAX_EXACT_TWO 100 /* values of both samples together */

struct ranked {
	double value;
	uint32_t index;
	uint32_t rank2; /* twice the rank: ties share the mean of theirs, which may end in a half */
};

/* Sort, and give ranks from 1. Returns the sum of t^3 - t over the groups of t equal values. */
static double rank_all(struct ranked *all, uint32_t n)
{
	double ties = 0;
	uint32_t i, k;

	qsort(all, n, sizeof(*all), csink_compare_doubles);
	for (i = 0; i < n; i = k) {
		for (k = i; k < n && all[k].value == all[i].value; k++)
			all[k].rank2 = 0;
		for (uint32_t m = i; m < k; m++)
			all[m].rank2 = i + 1 + k;
		ties += pow(k - i, 3) - (k - i);
	}
	return ties;
}

/* Of a distribution over 0..max that is symmetric about max / 2 (its weights need not add up to 1). */
static double tail_of(const double *weights, uint32_t max, uint32_t observed, enum csink_tail tail)
{
	double below = 0, above = 0, all = 0;

	for (uint32_t s = 0; s <= max; s++) {
		all += weights[s];
		below += s <= observed ? weights[s] : 0;
		above += s >= observed ? weights[s] : 0;
	}
	if (tail == CSINK_TAIL_BOTH)
		return fmin(1, 2 * fmin(below, above) / all);
	return (tail == CSINK_TAIL_GREATER ? above : below) / all;
}

/* ---- pairs ---- */

static double exact_paired(const struct ranked *all, uint32_t nr, const double *differences, enum csink_tail tail)
{
	CSINK_AUTO_FREE double *weights = csink_stats_memory(calloc((size_t)nr * (nr + 1) + 1, sizeof(*weights)));
	uint32_t max = 0, observed = 0;

	if (!weights)
		return NAN;
	weights[0] = 1;
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t rank2 = all[i].rank2;

		observed += differences[all[i].index] > 0 ? rank2 : 0;
		max += rank2;
		for (uint32_t s = max + 1; s-- > 0;)
			weights[s] = weights[s] / 2 + (s >= rank2 ? weights[s - rank2] / 2 : 0);
	}
	return tail_of(weights, max, observed, tail);
}

/* off: of a sum of ranks from its mean. Corrected for continuity. */
static double normal_tail(double off, double deviation, enum csink_tail tail)
{
	if (!(deviation > 0))
		return 1;
	if (tail == CSINK_TAIL_GREATER)
		return csink_normal_cdf(-(off - 0.5) / deviation);
	if (tail == CSINK_TAIL_LESS)
		return csink_normal_cdf((off + 0.5) / deviation);
	return fmin(1, 2 * csink_normal_cdf(-fmax(0, fabs(off) - 0.5) / deviation));
}

static double normal_paired(const struct ranked *all, uint32_t nr, const double *differences, double ties,
			    enum csink_tail tail)
{
	double n = nr, sum = 0;

	for (uint32_t i = 0; i < nr; i++)
		sum += differences[all[i].index] > 0 ? all[i].rank2 / 2.0 : 0;
	return normal_tail(sum - n * (n + 1) / 4, sqrt(n * (n + 1) * (2 * n + 1) / 24 - ties / 48), tail);
}

double csink_wilcoxon_paired(const double *differences, uint32_t n, enum csink_tail tail)
{
	CSINK_AUTO_FREE struct ranked *all = csink_stats_memory(malloc(sizeof(*all) * (n + 1)));
	uint32_t nr = 0;
	double ties;

	for (uint32_t i = 0; all && i < n; i++) {
		if (differences[i] != 0)
			all[nr++] = (struct ranked){fabs(differences[i]), i, 0};
	}
	if (!all || !nr)
		return all && n ? 1 : NAN;
	ties = rank_all(all, nr);
	return nr <= CSINK_WILCOXON_EXACT ? exact_paired(all, nr, differences, tail)
					  : normal_paired(all, nr, differences, ties, tail);
}

/* The least sum up to which as much of the distribution lies. */
static uint32_t exact_quantile(double p, uint32_t n)
{
	uint32_t max = n * (n + 1) / 2, sum = 0, s = 0;
	CSINK_AUTO_FREE double *weights = csink_stats_memory(calloc((size_t)max + 1, sizeof(*weights)));
	double below;

	if (!weights)
		return 0;
	weights[0] = 1;
	for (uint32_t rank = 1; rank <= n; rank++) {
		sum += rank;
		for (uint32_t k = sum + 1; k-- > 0;)
			weights[k] = weights[k] / 2 + (k >= rank ? weights[k - rank] / 2 : 0);
	}
	for (below = weights[0]; below < p && s < max; below += weights[s])
		s++;
	return s;
}

uint32_t csink_signed_rank_quantile(double p, uint32_t n)
{
	double mean = n * (n + 1.0) / 4, deviation = sqrt(n * (n + 1.0) * (2.0 * n + 1) / 24);

	if (n <= CSINK_WILCOXON_EXACT)
		return exact_quantile(p, n);
	return (uint32_t)fmax(0, ceil(mean + csink_normal_quantile(p) * deviation - 0.5));
}

/* ---- two samples ---- */

/* Ways to have each sum of doubled ranks with k of the values, by dynamic programming. */
static double exact_two(const struct ranked *all, uint32_t n, uint32_t k, uint32_t observed, enum csink_tail tail)
{
	uint32_t max = n * (n + 1), width = max + 1;
	CSINK_AUTO_FREE double *ways = csink_stats_memory(calloc((size_t)(k + 1) * width, sizeof(*ways)));

	if (!ways)
		return NAN;
	ways[0] = 1;
	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t taken = CSINK_MIN(i + 1, k); taken > 0; taken--) {
			double *to = ways + (size_t)taken * width, *from = to - width;

			for (uint32_t s = all[i].rank2; s <= max; s++)
				to[s] += from[s - all[i].rank2];
		}
	}
	return tail_of(ways + (size_t)k * width, max, observed, tail);
}

static double normal_two(uint32_t nr_a, uint32_t nr_b, double ties, uint32_t observed, enum csink_tail tail)
{
	double n = nr_a + nr_b, off = observed / 2.0 - nr_b * (n + 1) / 2;
	double deviation = sqrt((double)nr_a * nr_b / 12 * (n + 1 - ties / (n * (n - 1))));

	return normal_tail(off, deviation, tail);
}

double csink_wilcoxon_two(const double *a, uint32_t nr_a, const double *b, uint32_t nr_b, enum csink_tail tail)
{
	uint32_t n = nr_a + nr_b, observed = 0;
	CSINK_AUTO_FREE struct ranked *all = csink_stats_memory(malloc(sizeof(*all) * (n + 1)));
	double ties;

	if (!all || !nr_a || !nr_b)
		return NAN;
	for (uint32_t i = 0; i < n; i++)
		all[i] = (struct ranked){i < nr_a ? a[i] : b[i - nr_a], i, 0};
	ties = rank_all(all, n);
	for (uint32_t i = 0; i < n; i++)
		observed += all[i].index >= nr_a ? all[i].rank2 : 0;
	return n <= MAX_EXACT_TWO ? exact_two(all, n, nr_b, observed, tail)
				  : normal_two(nr_a, nr_b, ties, observed, tail);
}

/* ---- many tests at once ---- */

static int adjust(const double *p, uint32_t n, double *q, bool holm)
{
	CSINK_AUTO_FREE struct ranked *all = csink_stats_memory(malloc(sizeof(*all) * (n + 1)));
	double least = 1, most = 0;

	if (!all)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		all[i] = (struct ranked){p[i], i, 0};
	qsort(all, n, sizeof(*all), csink_compare_doubles);
	for (uint32_t i = n; i-- > 0 && !holm;) {
		least = fmin(least, all[i].value * n / (i + 1));
		q[all[i].index] = least;
	}
	for (uint32_t i = 0; i < n && holm; i++) {
		most = fmin(1, fmax(most, all[i].value * (n - i)));
		q[all[i].index] = most;
	}
	return 0;
}

int csink_adjust_bh(const double *p, uint32_t n, double *q)
{
	return adjust(p, n, q, false);
}

int csink_adjust_holm(const double *p, uint32_t n, double *q)
{
	return adjust(p, n, q, true);
}
