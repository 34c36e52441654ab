/* Mean, deviation and confidence interval of a few repeated measurements. Context of everything here: any. */
#ifndef CSINK_STAT_MOMENTS_H
#define CSINK_STAT_MOMENTS_H

#include <stdint.h>

/* All zero is none measured yet. */
struct csink_moments {
	uint32_t nr;
	double mean, squares; /* squares: sum of squared differences from the mean */
	double min, max;
};

void csink_moments_add(struct csink_moments *moments, double value);

/** Standard deviation of the sample; 0 for fewer than two values. */
double csink_moments_deviation(const struct csink_moments *moments);

/**
 * Half of the 95 % confidence interval of the mean, by Student's t: the mean would be in mean +- that in 95 of 100 such
 * series. 0 for fewer than two values, of which nothing is known.
 */
double csink_moments_interval(const struct csink_moments *moments);

#endif
