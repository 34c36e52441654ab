/*
 * The scan for change points: see change_points.h. Values are clipped about the median of their side, so that a single
 * far one moves no level; the spread is that of neighbours, which a change of the level touches in one place only.
 */
#include "launcher/gate/stats/change_points.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "launcher/base/search.h"

#define CLIPPED 1.5 /* standard deviations from the median of its side */
/* The median of |a - b| of two normal values of standard deviation 1. */
#define NEIGHBOURS 0.95387255240893956

/* Of at most CSINK_SCAN_WINDOW values, which are sorted. */
static double median_of(double *values, uint32_t n)
{
	qsort(values, n, sizeof(*values), csink_compare_doubles);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

double csink_spread_of_neighbours(const double *values, uint32_t n)
{
	double differences[CSINK_SCAN_WINDOW];

	n = CSINK_MIN(n, (uint32_t)CSINK_SCAN_WINDOW);
	if (n < 2)
		return NAN;
	for (uint32_t i = 0; i + 1 < n; i++)
		differences[i] = fabs(values[i + 1] - values[i]);
	return median_of(differences, n - 1) / NEIGHBOURS;
}

static double spread_of(const double *values, const double *errors, uint32_t n)
{
	double known[CSINK_SCAN_WINDOW], spread = fmax(csink_spread_of_neighbours(values, n), CSINK_SCAN_LEAST);
	uint32_t nr = 0;

	for (uint32_t i = 0; errors && i < n; i++) {
		if (isfinite(errors[i]))
			known[nr++] = errors[i];
	}
	return nr ? fmax(spread, median_of(known, nr) * CSINK_SCAN_KNOWN / CSINK_SCAN_ALARM) : spread;
}

static double clipped_mean(const double *values, uint32_t n, double spread)
{
	double copy[CSINK_SCAN_WINDOW], sum = 0, middle;

	memcpy(copy, values, n * sizeof(*values));
	middle = median_of(copy, n);
	for (uint32_t i = 0; i < n; i++)
		sum += fmin(fmax(values[i], middle - CLIPPED * spread), middle + CLIPPED * spread);
	return sum / n;
}

/* The sum of distances from the median. Of at most CSINK_SPLIT_MOST values. */
static double distances(const double *values, uint32_t n)
{
	double copy[CSINK_SPLIT_MOST], middle, sum = 0;

	memcpy(copy, values, n * sizeof(*values));
	middle = median_of(copy, n);
	for (uint32_t i = 0; i < n; i++)
		sum += fabs(values[i] - middle);
	return sum;
}

uint32_t csink_split_at(const double *values, uint32_t n, uint32_t least)
{
	double best = INFINITY;
	uint32_t at = least;

	n = CSINK_MIN(n, (uint32_t)CSINK_SPLIT_MOST);
	for (uint32_t i = least; i + least <= n; i++) {
		double sum = distances(values, i) + distances(values + i, n - i);

		if (sum < best) {
			best = sum;
			at = i;
		}
	}
	return at;
}

bool csink_scan_end(const double *values, const double *errors, uint32_t n, struct csink_scan *out)
{
	*out = (struct csink_scan){0};
	if (n > CSINK_SCAN_WINDOW) {
		values += n - CSINK_SCAN_WINDOW;
		errors = errors ? errors + (n - CSINK_SCAN_WINDOW) : NULL;
		n = CSINK_SCAN_WINDOW;
	}
	if (n < CSINK_SCAN_BEFORE + CSINK_SCAN_AFTER)
		return false;
	out->spread = spread_of(values, errors, n);
	for (uint32_t k = CSINK_SCAN_AFTER; k <= CSINK_SCAN_NEWEST && n - k >= CSINK_SCAN_BEFORE; k++) {
		double shift =
			clipped_mean(values + (n - k), k, out->spread) - clipped_mean(values, n - k, out->spread);
		double z = shift / (out->spread * sqrt(1.0 / k + 1.0 / (n - k)));

		if (fabs(z) > fabs(out->z)) {
			out->after = k;
			out->z = z;
			out->shift = shift;
		}
	}
	return fabs(out->z) > CSINK_SCAN_ALARM;
}
