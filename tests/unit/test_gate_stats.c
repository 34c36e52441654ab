/* The gate's statistics against published results. `make check-stats` compares them with R and scipy, live. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "launcher/gate/stats/stats.h"
#include "tests/unit/tap.h"

static int near_to(double got, double want, double within, const char *what)
{
	int close = fabs(got - want) <= within;

	ok(close, "%s", what);
	if (!close)
		fprintf(stderr, "#   got %.10g, want %.10g +- %g\n", got, want, within);
	return close;
}

/* Darwin's maize, as Fisher took it up: The Design of Experiments (1935), section 21. In eighths of an inch. Of the
 * 32768 ways to sign them, 835 give more than the observed 314, and 28 as much. */
static const double maize[] = {49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48};

/* Hollander and Wolfe (1973), p. 29: depression before and after; V = 40, p = 0.01953. */
static const double depressed[] = {1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30};
static const double treated[] = {0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29};

/* The same, p. 69: permeability of membranes; W = 35, p = 0.1272. */
static const double at_term[] = {0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46};
static const double early[] = {1.15, 0.88, 0.90, 0.74, 1.21};

/* Benjamini and Hochberg (1995), section 4.1: the four smallest are discoveries at 0.05. */
static const double p_values[] = {0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344,
				  0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0000};

/* Efron and Tibshirani (1993), table 2.1: mice; and table 10.1: the hormone patch, of which the ratio is -0.0713. */
static const double mice[] = {94, 197, 16, 38, 99, 141, 23};
static const double mice_control[] = {52, 104, 146, 10, 51, 30, 40, 27, 46};
static const double patch_z[] = {8406, 2342, 8187, 8459, 4795, 3516, 4796, 10238};
static const double patch_y[] = {-1200, 2601, -2705, 1982, -1290, 351, -638, -2719};

static void test_random(void)
{
	struct csink_random a, b;
	uint32_t counts[7] = {0}, low = UINT32_MAX, high = 0;
	int same = 1;

	csink_random_init(&a, 1);
	csink_random_init(&b, 1);
	for (int i = 0; i < 1000; i++)
		same &= csink_random_next(&a) == csink_random_next(&b);
	ok(same, "equal seeds give equal numbers");
	csink_random_init(&b, 2);
	ok(csink_random_next(&a) != csink_random_next(&b), "different seeds give different numbers");
	for (int i = 0; i < 70000; i++)
		counts[csink_random_below(&a, 7)]++;
	for (int i = 0; i < 7; i++) {
		low = counts[i] < low ? counts[i] : low;
		high = counts[i] > high ? counts[i] : high;
	}
	ok(low > 9600 && high < 10400, "each of 7 numbers comes 10,000 times of 70,000, within 4 deviations");
	is_num(csink_random_below(&a, 1), 0, "below 1 there is only 0");
}

/* Of whole numbers, how many of the ways to sign them give each sum: value by value. */
static double share_of_signs(const double *d, uint32_t n, bool more)
{
	enum { MIDDLE = 4000 };
	static double ways[2 * MIDDLE + 1], next[2 * MIDDLE + 1];
	int observed = MIDDLE, count = 0;
	double found = 0;

	memset(ways, 0, sizeof(ways));
	ways[MIDDLE] = 1;
	for (uint32_t i = 0; i < n; i++) {
		int step = abs((int)d[i]);

		observed += (int)d[i];
		count += step;
		memset(next, 0, sizeof(next));
		for (int s = MIDDLE - count; s <= MIDDLE + count; s++)
			next[s] = (s + step <= 2 * MIDDLE ? ways[s + step] / 2 : 0) +
				  (s >= step ? ways[s - step] / 2 : 0);
		memcpy(ways, next, sizeof(ways));
	}
	for (int s = observed; s <= (more ? MIDDLE + count : observed); s++)
		found += ways[s];
	return found;
}

static double count_signs(const double *d, uint32_t n)
{
	return share_of_signs(d, n, true);
}

static double count_equal(const double *d, uint32_t n)
{
	return share_of_signs(d, n, false);
}

static void test_permutation(void)
{
	const uint32_t n = CSINK_ARRAY_SIZE(maize);
	struct csink_random random;
	double many[60], exact, same[] = {0, 0, 0};

	csink_random_init(&random, 3);
	near_to(csink_permute_paired(maize, n, CSINK_TAIL_GREATER, &random), 863 / 32768.0, 1e-12,
		"Fisher's count of Darwin's maize");
	near_to(csink_permute_paired(maize, n, CSINK_TAIL_BOTH, &random), 1726 / 32768.0, 1e-12,
		"Fisher's count of Darwin's maize, both tails");
	near_to(csink_permute_paired(maize, n, CSINK_TAIL_LESS, &random), (32768 - 835) / 32768.0, 1e-12,
		"Fisher's count of Darwin's maize, the other tail");
	near_to(csink_permute_paired(same, 3, CSINK_TAIL_GREATER, &random), 1, 0, "no difference: p is 1");
	ok(isnan(csink_permute_paired(same, 0, CSINK_TAIL_BOTH, &random)), "no pairs: no p-value");
	/* Twice the maize and more: 400,000 draws of scipy's permutation_test give 0.0027 for 30. */
	for (uint32_t i = 0; i < 4 * n; i++)
		many[i] = maize[i % n];
	near_to(csink_permute_paired(many, 30, CSINK_TAIL_GREATER, &random), 0.0027, 0.0006, "30 pairs as scipy draws");
	for (uint32_t pairs = 16; pairs <= CSINK_PERMUTE_EXACT; pairs += 4) {
		near_to(csink_permute_paired(many, pairs, CSINK_TAIL_GREATER, &random), count_signs(many, pairs), 1e-12,
			"the number of ways agrees with counting sums one by one");
		near_to(csink_permute_paired(many, pairs, CSINK_TAIL_LESS, &random) +
				csink_permute_paired(many, pairs, CSINK_TAIL_GREATER, &random),
			1 + count_equal(many, pairs), 1e-12, "the two tails add up to 1 plus the ties");
	}
	near_to(csink_permute_paired(many, 45, CSINK_TAIL_GREATER, &random), count_signs(many, 45),
		5 * sqrt(count_signs(many, 45) / CSINK_PERMUTE_DRAWS),
		"more than 44 pairs are drawn at random, with the expected p");
	for (uint32_t i = 0; i < 60; i++)
		many[i] = i % 3 ? 1 : -1;
	near_to(csink_permute_paired(many, 60, CSINK_TAIL_LESS, &random), 1, 0.01,
		"drawn pairs: the other tail is about 1");
	for (uint32_t i = 0; i < 60; i++)
		many[i] = 1;
	near_to(csink_permute_paired(many, 30, CSINK_TAIL_GREATER, &random), exp2(-30), 0,
		"30 equal signs: one way of 2^30");
	near_to(csink_permute_paired(many, 60, CSINK_TAIL_GREATER, &random), 1.0 / (CSINK_PERMUTE_MORE + 1), 1e-12,
		"no draw as large: p is not 0, but smaller than the first draws could say");
	/* 11440 ways; the value is scipy's permutation_test over all of them (make check-stats). */
	exact = csink_permute_two(mice_control, 9, mice, 7, CSINK_TAIL_GREATER, &random);
	near_to(exact, 0.1409965035, 1e-9, "two samples: p over all divisions of the mice");
	near_to(csink_permute_two(mice, 7, mice_control, 9, CSINK_TAIL_LESS, &random), exact, 1e-12,
		"two samples: the same p with the samples exchanged and the other tail");
	ok(csink_permute_two(mice_control, 9, mice, 7, CSINK_TAIL_BOTH, &random) > exact,
	   "two samples: p of both tails is larger than of one");
	near_to(csink_smallest_p(true, 10, 0), 1 / 1024.0, 0, "ten pairs say 1/1024 at the least");
	near_to(csink_smallest_p(false, 9, 7), 1 / 11440.0, 1e-15, "nine mice and seven say 1/11440");
	near_to(csink_smallest_p(true, 30, 0), exp2(-30), 0, "30 pairs one of 2^30");
	near_to(csink_smallest_p(true, 60, 0), 1.0 / (CSINK_PERMUTE_MORE + 1), 1e-12,
		"the smallest p of 60 pairs is that of the draws");
}

static void test_ranks(void)
{
	double d[9], tied[] = {1, 1, 1, -1, 2, 0, 0}, large_a[60], large_b[60];
	struct csink_random random;

	for (int i = 0; i < 9; i++)
		d[i] = depressed[i] - treated[i];
	near_to(csink_wilcoxon_paired(d, 9, CSINK_TAIL_GREATER), 0.01953125, 1e-12, "Wilcoxon: the depression scale");
	near_to(csink_wilcoxon_paired(d, 9, CSINK_TAIL_BOTH), 0.0390625, 1e-12,
		"Wilcoxon: the depression scale, both tails");
	/* Ranks 2.5 x 4 and 5, of 32 ways: sums of 12.5 (observed) and 15 come in 4 and 1 ways. */
	near_to(csink_wilcoxon_paired(tied, 7, CSINK_TAIL_GREATER), 5 / 32.0, 1e-12,
		"Wilcoxon: zeros are left out, ties share their ranks");
	near_to(csink_wilcoxon_paired(tied + 5, 2, CSINK_TAIL_GREATER), 1, 0, "Wilcoxon: zeros only give p = 1");
	near_to(csink_wilcoxon_two(early, 5, at_term, 10, CSINK_TAIL_GREATER), 0.1272, 5e-5,
		"Wilcoxon: p of the two samples of membranes");
	csink_random_init(&random, 4);
	for (int i = 0; i < 60; i++) {
		large_a[i] = csink_random_below(&random, 1000);
		large_b[i] = csink_random_below(&random, 1000) + 100;
	}
	ok(fabs(csink_wilcoxon_two(large_a, 60, large_b, 60, CSINK_TAIL_GREATER) -
		csink_wilcoxon_two(large_a, 60, large_b, 40, CSINK_TAIL_GREATER)) < 0.1,
	   "many values go by the normal distribution, near the exact ones");
}

static void test_adjust(void)
{
	double q[15];
	uint32_t found = 0;

	csink_adjust_bh(p_values, 15, q);
	for (int i = 0; i < 15; i++)
		found += q[i] <= 0.05;
	is_num(found, 4, "Benjamini and Hochberg's own example: four discoveries");
	near_to(q[0], 0.0015, 1e-12, "Benjamini-Hochberg: q of the smallest p");
	near_to(q[5], 0.0298 * 15 / 7, 1e-12, "Benjamini-Hochberg: q of a larger p is at most that of the next");
	near_to(q[14], 1, 0, "Benjamini-Hochberg: q of the largest p");
	/* The same authors: the three smallest at 0.05, if no false one is allowed. */
	csink_adjust_holm(p_values, 15, q);
	near_to(q[0], 0.0015, 1e-12, "Holm: q of the smallest p");
	near_to(q[2], 0.0019 * 13, 1e-12, "Holm: q of the third p");
	near_to(q[3], 0.0095 * 12, 1e-12, "Holm: the fourth p is no discovery");
	near_to(q[14], 1, 0, "Holm: no q is above 1");
}

static double mean_of(const double *values, uint32_t n)
{
	double sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += values[i];
	return sum / n;
}

static double statistic_mean(const double *a, uint32_t nr_a, const double *b, uint32_t nr_b)
{
	(void)b;
	(void)nr_b;
	return mean_of(a, nr_a);
}

/* How often the interval of the ratio holds the true one, with 20 pairs of a common noise. */
static double coverage(uint32_t rounds)
{
	struct csink_random random;
	uint32_t hits = 0;

	csink_random_init(&random, 5);
	for (uint32_t round = 0; round < rounds; round++) {
		struct csink_interval interval;
		double a[20], b[20];

		for (int i = 0; i < 20; i++) {
			double common = 100 + csink_random_below(&random, 20);

			a[i] = common + csink_random_below(&random, 11) - 5;
			b[i] = common * 1.1 + csink_random_below(&random, 11) - 5;
		}
		csink_bootstrap(csink_statistic_ratio, true, a, 20, b, 20, 0.95, &random, &interval);
		hits += interval.low <= 1.1 && interval.high >= 1.1;
	}
	return (double)hits / rounds;
}

static void test_estimates(void)
{
	static const double few[] = {1, 2, 4, 9};
	double a[] = {1, 1, 1}, b[] = {2, 2, 2}, covered;
	struct csink_random random;
	struct csink_interval interval, again;

	csink_random_init(&random, 6);
	near_to(csink_hodges_lehmann(few, 4), 3.5, 1e-12, "Hodges-Lehmann of four values, of ten means");
	near_to(csink_hodges_lehmann_two(mice_control, 9, mice, 7), 28, 1e-12,
		"Hodges-Lehmann of two samples: the mice");
	near_to(csink_statistic_ratio(patch_z, 8, patch_y, 8), -0.0713, 5e-5, "the ratio of the hormone patch");
	/* scipy.stats.bootstrap(method='BCa') with 200,000 draws gives -0.2224 to 0.1881. */
	is_num(csink_bootstrap(csink_statistic_ratio, true, patch_z, 8, patch_y, 8, 0.95, &random, &interval), 0,
	       "the bootstrap gives an interval of the ratio");
	near_to(interval.low, -0.2224, 0.02, "the ratio's interval: its lower end is BCa's");
	near_to(interval.high, 0.1881, 0.04, "the ratio's interval: its upper end is BCa's");
	csink_bootstrap(statistic_mean, false, maize, 15, maize, 15, 0.95, &random, &interval);
	near_to(interval.low, -1.73, 2.5, "BCa of the mean of the maize: its lower end");
	near_to(interval.high, 36.4, 2, "BCa of the mean of the maize: its upper end");
	csink_bootstrap(csink_statistic_ratio, true, a, 3, b, 3, 0.95, &random, &interval);
	ok(interval.low == 2 && interval.high == 2, "no noise: the interval is the value");
	is_num(csink_bootstrap(csink_statistic_ratio, true, a, 1, b, 1, 0.95, &random, &interval), -22,
	       "the bootstrap of one pair gives no interval");
	csink_random_init(&random, 7);
	csink_bootstrap(csink_statistic_shift_paired, true, a, 3, few, 3, 0.95, &random, &interval);
	csink_random_init(&random, 7);
	csink_bootstrap(csink_statistic_shift_paired, true, a, 3, few, 3, 0.95, &random, &again);
	ok(interval.low == again.low && interval.high == again.high, "equal seeds, equal intervals");
	covered = coverage(400);
	ok(covered > 0.9 && covered < 0.985, "an interval of 95 %% holds the true ratio in %.1f %%", covered * 100);
}

static void test_power(void)
{
	near_to(csink_normal_quantile(0.975), 1.9599639845, 1e-9, "the normal quantile of 0.975");
	near_to(csink_normal_quantile(1e-10), -6.3613409024, 1e-9, "the normal quantile of 1e-10");
	near_to(csink_normal_quantile(0.5), 0, 1e-15, "the normal quantile of 0.5");
	near_to(csink_normal_cdf(1.96), 0.9750021049, 1e-9, "the normal distribution at 1.96");
	near_to(csink_detection_floor(0.1, 100000), 0.0376, 1e-4, "10 % of 100,000 samples show 3.8 %");
}

int main(void)
{
	test_random();
	test_permutation();
	test_ranks();
	test_adjust();
	test_estimates();
	test_power();
	return done();
}
