/*
 * Estimates that outliers hardly move: Hodges and Lehmann's, its interval, and the coefficient of a control. See
 * stats.h. Pure arithmetic.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "launcher/gate/stats/stats.h"

/* ---- the median ---- */

static void swap(double *a, double *b)
{
	double t = *a;

	*a = *b;
	*b = t;
}

/* Hoare's selection: afterwards values[k] is where a sort would put it, and no smaller one is behind it. */
static double select_kth(double *values, size_t n, size_t k)
{
	int64_t low = 0, high = (int64_t)n - 1;

	while (low < high) {
		double pivot = values[(low + high) / 2];
		int64_t i = low - 1, j = high + 1;

		for (;;) {
			while (values[++i] < pivot)
				;
			while (values[--j] > pivot)
				;
			if (i >= j)
				break;
			swap(&values[i], &values[j]);
		}
		if ((int64_t)k <= j)
			high = j;
		else
			low = j + 1;
	}
	return values[k];
}

static double median(double *values, size_t n)
{
	double upper = select_kth(values, n, n / 2), lower;

	if (n & 1)
		return upper;
	lower = values[0];
	for (size_t i = 1; i < n / 2; i++)
		lower = fmax(lower, values[i]);
	return (lower + upper) / 2;
}

/* ---- Walsh averages: the means of all pairs of values, each with itself too ---- */

static size_t nr_walsh(uint32_t n)
{
	return (size_t)n * (n + 1) / 2;
}

/* NULL without memory. */
static double *walsh_averages(const double *values, uint32_t n)
{
	double *means = csink_stats_memory(malloc(sizeof(*means) * (nr_walsh(n) + 1)));
	size_t nr = 0;

	for (uint32_t i = 0; means && i < n; i++) {
		for (uint32_t k = i; k < n; k++)
			means[nr++] = (values[i] + values[k]) / 2;
	}
	return means;
}

double csink_hodges_lehmann(const double *values, uint32_t n)
{
	CSINK_AUTO_FREE double *means = walsh_averages(values, n);

	return n && means ? median(means, nr_walsh(n)) : NAN;
}

int csink_wilcoxon_interval(const double *differences, uint32_t n, double level, struct csink_interval *out)
{
	uint32_t k = csink_signed_rank_quantile((1 - level) / 2, n);
	CSINK_AUTO_FREE double *means = NULL;

	if (!k)
		return -EINVAL;
	means = walsh_averages(differences, n);
	if (!means)
		return -ENOMEM;
	out->low = select_kth(means, nr_walsh(n), k - 1);
	out->high = select_kth(means, nr_walsh(n), nr_walsh(n) - k);
	return 0;
}

double csink_hodges_lehmann_two(const double *a, uint32_t nr_a, const double *b, uint32_t nr_b)
{
	CSINK_AUTO_FREE double *all = csink_stats_memory(malloc(sizeof(*all) * ((size_t)nr_a * nr_b + 1)));
	size_t nr = 0;

	if (!nr_a || !nr_b || !all)
		return NAN;
	for (uint32_t i = 0; i < nr_a; i++) {
		for (uint32_t k = 0; k < nr_b; k++)
			all[nr++] = b[k] - a[i];
	}
	return median(all, nr);
}

/* ---- the coefficient of a control ---- */

#define PRIOR 1.0      /* of the coefficient, before anything was seen */
#define PRIOR_SD 0.5   /* how far from it coefficients usually are */
#define HUBER 1.345    /* deviations from which on a value weighs less: 95 % efficient where there are no outliers */
#define MAD_SD 0.67449 /* the median of |x| of a standard normal x */
#define MOST 2.0
#define ITERATIONS 100

static double scale_of(const double *own, const double *control, uint32_t n, double b, double *room)
{
	for (uint32_t i = 0; i < n; i++)
		room[i] = fabs(own[i] - b * control[i]);
	return median(room, n) / MAD_SD;
}

/* One step of iterated weighted least squares. The prior is one more observation. */
static double refit(const double *own, const double *control, uint32_t n, double b, double scale)
{
	double weight = scale * scale / (PRIOR_SD * PRIOR_SD), above = weight * PRIOR, below = weight;

	for (uint32_t i = 0; i < n; i++) {
		double off = fabs(own[i] - b * control[i]), w = off > HUBER * scale ? HUBER * scale / off : 1;

		above += w * own[i] * control[i];
		below += w * control[i] * control[i];
	}
	return below > 0 ? fmin(fmax(above / below, 0), MOST) : b;
}

double csink_control_coefficient(const double *own, const double *control, uint32_t n)
{
	CSINK_AUTO_FREE double *room = csink_stats_memory(malloc(sizeof(*room) * (n + 1)));
	double b = PRIOR, before = NAN;

	for (int i = 0; room && n && i < ITERATIONS && b != before; i++) {
		double scale = scale_of(own, control, n, b, room);

		before = b;
		if (!(scale > 0))
			break;
		b = refit(own, control, n, b, scale);
		if (fabs(b - before) <= 1e-12)
			break;
	}
	return room ? b : NAN;
}
