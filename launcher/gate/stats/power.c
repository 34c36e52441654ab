/* The normal distribution, and what a number of runs or samples can find: see stats.h. */
#include <math.h>

#include "launcher/gate/stats/stats.h"

double csink_normal_cdf(double x)
{
	return erfc(-x / sqrt(2)) / 2;
}

/* By Newton's steps on the logarithm of the tail, which is nearly a parabola: from 0 they come there from any p. */
double csink_normal_quantile(double p)
{
	double tail = fmin(p, 1 - p), x = 0;

	if (!(p > 0 && p < 1))
		return p == 0 ? -INFINITY : p == 1 ? INFINITY : NAN;
	for (int i = 0; i < 100; i++) {
		double at = csink_normal_cdf(x), density = exp(-x * x / 2) / sqrt(2 * M_PI);
		double step = (log(at) - log(tail)) * at / density;

		x -= step;
		if (fabs(step) <= 1e-14 * fabs(x))
			break;
	}
	return p < 0.5 ? x : -x;
}

double csink_detection_floor(double share, double samples)
{
	return (csink_normal_quantile(0.975) + csink_normal_quantile(0.8)) * sqrt(2 * (1 - share) / (share * samples));
}
