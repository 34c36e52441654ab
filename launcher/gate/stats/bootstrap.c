/* Means, and the bootstrap intervals of estimates: see stats.h. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "launcher/base/search.h"
#include "launcher/gate/stats/stats.h"

double csink_mean(const double *values, uint32_t n)
{
	double sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += values[i];
	return sum / n;
}

double csink_statistic_ratio(const double *a, uint32_t nr_a, const double *b, uint32_t nr_b)
{
	double mean_a = csink_mean(a, nr_a);

	return mean_a > 0 ? csink_mean(b, nr_b) / mean_a : NAN;
}

double csink_statistic_shift_paired(const double *a, uint32_t nr_a, const double *b, uint32_t nr_b)
{
	CSINK_AUTO_FREE double *d = csink_stats_memory(malloc(sizeof(*d) * (nr_a + 1)));

	for (uint32_t i = 0; d && i < nr_a && i < nr_b; i++)
		d[i] = b[i] - a[i];
	return d ? csink_hodges_lehmann(d, nr_a) : NAN;
}

/* ---- the bootstrap ---- */

struct boot {
	csink_statistic_fn statistic;
	bool paired;
	const double *a, *b;
	uint32_t nr_a, nr_b;
	double *drawn_a, *drawn_b, *results;
	uint32_t nr_results;
};

static void draw(struct boot *boot, struct csink_random *random)
{
	double result;

	for (uint32_t i = 0; i < boot->nr_a; i++) {
		uint32_t at = csink_random_below(random, boot->nr_a);

		boot->drawn_a[i] = boot->a[at];
		if (boot->paired)
			boot->drawn_b[i] = boot->b[at];
	}
	for (uint32_t i = 0; !boot->paired && i < boot->nr_b; i++)
		boot->drawn_b[i] = boot->b[csink_random_below(random, boot->nr_b)];
	result = boot->statistic(boot->drawn_a, boot->nr_a, boot->drawn_b, boot->nr_b);
	if (isfinite(result))
		boot->results[boot->nr_results++] = result;
}

static void copy_without(double *to, const double *from, uint32_t n, uint32_t left_out)
{
	for (uint32_t i = 0, k = 0; i < n; i++) {
		if (i != left_out)
			to[k++] = from[i];
	}
}

/* The statistic without each value (pair) in turn, and the sums of squares and cubes of their distances from their
 * mean. The signs are those of influence: a value without which the statistic is small pulls it up. */
static void jackknife_side(struct boot *boot, bool side_b, double *squares, double *cubes)
{
	uint32_t n = side_b ? boot->nr_b : boot->nr_a;
	double mean = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t out_a = side_b && !boot->paired ? UINT32_MAX : i;
		uint32_t out_b = side_b || boot->paired ? i : UINT32_MAX;

		copy_without(boot->drawn_a, boot->a, boot->nr_a, out_a);
		copy_without(boot->drawn_b, boot->b, boot->nr_b, out_b);
		boot->results[i] = boot->statistic(boot->drawn_a, boot->nr_a - (out_a != UINT32_MAX), boot->drawn_b,
						   boot->nr_b - (out_b != UINT32_MAX));
		mean += boot->results[i] / n;
	}
	for (uint32_t i = 0; i < n; i++) {
		double influence = (mean - boot->results[i]) * (n - 1) / n;

		*squares += influence * influence;
		*cubes += influence * influence * influence;
	}
}

/* Efron's acceleration; of two samples, both contribute, each by its own size. */
static double acceleration(struct boot *boot)
{
	double squares = 0, cubes = 0, result;

	jackknife_side(boot, false, &squares, &cubes);
	if (!boot->paired)
		jackknife_side(boot, true, &squares, &cubes);
	result = cubes / (6 * pow(squares, 1.5));
	return isfinite(result) ? result : 0;
}

static double bca_quantile(const struct boot *boot, double bias, double accelerated, double level)
{
	double z = bias + csink_normal_quantile(level);
	double p = csink_normal_cdf(bias + z / (1 - accelerated * z));
	double at = p * (boot->nr_results - 1);
	uint32_t below = (uint32_t)at;

	if (below + 1 >= boot->nr_results)
		return boot->results[boot->nr_results - 1];
	return boot->results[below] + (at - below) * (boot->results[below + 1] - boot->results[below]);
}

static int bca(struct boot *boot, double level, struct csink_random *random, struct csink_interval *out)
{
	double observed = boot->statistic(boot->a, boot->nr_a, boot->b, boot->nr_b);
	double accelerated, bias, below = 0, tail = (1 - level) / 2;

	if (!isfinite(observed))
		return -EINVAL;
	accelerated = acceleration(boot);
	for (uint32_t i = 0; i < CSINK_BOOTSTRAP_DRAWS; i++)
		draw(boot, random);
	if (!boot->nr_results)
		return -EINVAL;
	qsort(boot->results, boot->nr_results, sizeof(*boot->results), csink_compare_doubles);
	/* What equals the observed value is counted half: medians of few values have many ties. */
	for (uint32_t i = 0; i < boot->nr_results; i++)
		below += boot->results[i] < observed ? 1 : boot->results[i] > observed ? 0 : 0.5;
	below = fmin(fmax(below, 0.5), boot->nr_results - 0.5);
	bias = csink_normal_quantile(below / boot->nr_results);
	out->low = bca_quantile(boot, bias, accelerated, tail);
	out->high = bca_quantile(boot, bias, accelerated, 1 - tail);
	return 0;
}

int csink_bootstrap(csink_statistic_fn statistic, bool paired, const double *a, uint32_t nr_a, const double *b,
		    uint32_t nr_b, double level, struct csink_random *random, struct csink_interval *out)
{
	struct boot boot = {.statistic = statistic, .paired = paired, .a = a, .b = b, .nr_a = nr_a, .nr_b = nr_b};
	size_t most = CSINK_MAX(CSINK_BOOTSTRAP_DRAWS, CSINK_MAX(nr_a, nr_b));
	CSINK_AUTO_FREE double *room = NULL;

	if (nr_a < 2 || nr_b < 2 || (paired && nr_a != nr_b))
		return -EINVAL;
	room = csink_stats_memory(malloc((nr_a + (size_t)nr_b + most) * sizeof(*room)));
	boot.drawn_a = room;
	boot.drawn_b = room + nr_a;
	boot.results = room + nr_a + nr_b;
	return room ? bca(&boot, level, random, out) : -ENOMEM;
}
