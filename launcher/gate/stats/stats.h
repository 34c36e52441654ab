/*
 * The statistics of the gate: pure functions over arrays of numbers, which know nothing of runs and functions of
 * programs. What is random is drawn from a generator that the caller seeds, so that equal seeds give equal answers.
 *
 * Context of everything here: any thread. A function returns NAN where it has no result (no values, no memory). The
 * only state between calls is whether memory was lacking: see csink_stats_lacked_memory().
 */
#ifndef CSINK_STATS_H
#define CSINK_STATS_H

#include <stdbool.h>
#include <stdint.h>

/* ---- memory ---- */

/** Check what an allocation returned: NULL is remembered for this thread. Returns @block. */
void *csink_stats_memory(void *block);

/** Whether any allocation of this thread failed here since the last call: what was computed then is no result. */
bool csink_stats_lacked_memory(void);

/* ---- random numbers ---- */

/* xoshiro256**, seeded by splitmix64. */
struct csink_random {
	uint64_t state[4];
};

void csink_random_init(struct csink_random *random, uint64_t seed);
uint64_t csink_random_next(struct csink_random *random);

/** A number from 0 to n - 1, each as likely; n is at least 1. */
uint32_t csink_random_below(struct csink_random *random, uint32_t n);

/* ---- tests: each returns a p-value ---- */

/* Which way the second side is off: more than the first, less, or either. */
enum csink_tail { CSINK_TAIL_GREATER, CSINK_TAIL_LESS, CSINK_TAIL_BOTH };

#define CSINK_PERMUTE_EXACT 40     /* pairs up to which all 2^n sign changes count */
#define CSINK_PERMUTE_DRAWS 100000 /* else so many random ones */
#define CSINK_PERMUTE_HITS 5000    /* so many hits are enough: p is above 0.05 then */
#define CSINK_PERMUTE_RARE 10      /* fewer hits among them: CSINK_PERMUTE_MORE, so that p may be small enough */
#define CSINK_PERMUTE_MORE 1000000

/**
 * Paired permutation test of differences: under "no difference" each is as likely to have the other sign. The statistic
 * is the sum. Exact for up to CSINK_PERMUTE_EXACT pairs, which takes 2^(n/2) steps; beyond, (hits + 1) / (draws + 1).
 * See csink_smallest_p for what as many pairs can show at all.
 */
double csink_permute_paired(const double *differences, uint32_t n, enum csink_tail tail, struct csink_random *random);

/**
 * Permutation test of two independent samples: under "no difference" each value is as likely to be of the other one.
 * The statistic is the difference of the means. Exact where there are at most 200,000 ways to divide them.
 */
double csink_permute_two(const double *a, uint32_t nr_a, const double *b, uint32_t nr_b, enum csink_tail tail,
			 struct csink_random *random);

#define CSINK_WILCOXON_EXACT 200 /* pairs */

/**
 * Wilcoxon's signed-rank test. Differences of 0 are left out, equal ones share their ranks. Exact for the ranks at hand
 * up to CSINK_WILCOXON_EXACT pairs, by the normal distribution with the corrections for ties and continuity beyond.
 */
double csink_wilcoxon_paired(const double *differences, uint32_t n, enum csink_tail tail);

/** The least sum of positive signed ranks of n pairs up to which at least @p of its distribution lies, if there is no
 * difference. Exact, and normal beyond, as above. 0 also without memory. */
uint32_t csink_signed_rank_quantile(double p, uint32_t n);

/**
 * Wilcoxon's rank-sum test (Mann-Whitney) of b against a. Equal values share their ranks; exact for the ranks at hand
 * up to 100 values together, by the normal distribution with the corrections for ties and continuity beyond.
 */
double csink_wilcoxon_two(const double *a, uint32_t nr_a, const double *b, uint32_t nr_b, enum csink_tail tail);

/**
 * The smallest p-value, one-sided, that the tests above can give: all of the second side beyond the first.
 * @paired  nr_a pairs (nr_b is ignored); else two samples.
 */
double csink_smallest_p(bool paired, uint32_t nr_a, uint32_t nr_b);

/** Adjust p-values for their number. Returns 0 or -ENOMEM. */
typedef int (*csink_adjust_fn)(const double *p, uint32_t n, double *q);

/** Benjamini-Hochberg: q[i] is the smallest false discovery rate at which p[i] is still a discovery. */
int csink_adjust_bh(const double *p, uint32_t n, double *q);

/** Holm: q[i] is the smallest rate of any false discovery, whatever the other hypotheses are. */
int csink_adjust_holm(const double *p, uint32_t n, double *q);

/** Simes: one p-value for "none of these hypotheses is wrong", valid where they are independent or depend positively on
 * each other. 1 where there are none. */
double csink_simes(const double *p, uint32_t n);

/* ---- estimates ---- */

struct csink_interval {
	double low, high;
};

double csink_mean(const double *values, uint32_t n);

/** Hodges-Lehmann: the median of the means of all pairs of values, each with itself too. */
double csink_hodges_lehmann(const double *values, uint32_t n);

/**
 * The interval that belongs to both: the shifts that the signed-rank test, two-sided, does not exclude.
 * Returns 0, -EINVAL (so few values exclude none at this level: fewer than 6 at 0.95) or -ENOMEM.
 */
int csink_wilcoxon_interval(const double *differences, uint32_t n, double level, struct csink_interval *out);

/**
 * How much of the differences of a control is in those of the pairs: b, so that own - b * control varies least. By
 * least squares about 0, in which outliers weigh less (Huber); drawn towards 1, the more so the fewer pairs there are
 * and the less the control varies (as if b were normal about 1 with a deviation of 0.5, before anything was seen); 0
 * to 2. Where the sides of pairs change places, it stays the same: a test of signs of own - b * control remains exact.
 */
double csink_control_coefficient(const double *own, const double *control, uint32_t n);

/** The median of all differences b[j] - a[i]. */
double csink_hodges_lehmann_two(const double *a, uint32_t nr_a, const double *b, uint32_t nr_b);

#define CSINK_BOOTSTRAP_DRAWS 2000

/**
 * What an interval is made for. Both get the same number of values from each side if they are paired; a statistic may
 * be NAN (no ratio), and is then left out.
 */
typedef double (*csink_statistic_fn)(const double *a, uint32_t nr_a, const double *b, uint32_t nr_b);

/** sum(b) / sum(a) of as many values, or mean(b) / mean(a). */
double csink_statistic_ratio(const double *a, uint32_t nr_a, const double *b, uint32_t nr_b);

/** Hodges-Lehmann of b[i] - a[i]; csink_hodges_lehmann_two() is the same of what is not paired. */
double csink_statistic_shift_paired(const double *a, uint32_t nr_a, const double *b, uint32_t nr_b);

/**
 * Bootstrap interval, bias-corrected and accelerated (BCa; the acceleration by the jackknife). Where all draws give the
 * same value, the interval is that value.
 * @paired  values with the same index are drawn together; nr_b is then nr_a.
 * @level   0.95.
 * Returns 0, -EINVAL (fewer than two values a side, or the statistic is no number) or -ENOMEM.
 */
int csink_bootstrap(csink_statistic_fn statistic, bool paired, const double *a, uint32_t nr_a, const double *b,
		    uint32_t nr_b, double level, struct csink_random *random, struct csink_interval *out);

/* ---- the normal distribution, and what a number of runs can find ---- */

double csink_normal_cdf(double x);
double csink_normal_quantile(double p); /* -+INFINITY at 0 and 1 */

/**
 * The smallest relative change of a function that as many samples show, at 5 % two-sided and a power of 80 %:
 * (z(0.975) + z(0.8)) * sqrt(2 (1 - share) / (share * samples)).
 * @share    of the samples, that are in the function.
 * @samples  of each side, all together.
 */
double csink_detection_floor(double share, double samples);

#endif
