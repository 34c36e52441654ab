/* Mean, deviation and confidence interval: see stat_moments.h. */
#include "launcher/commands/stat/stat_moments.h"

#include <math.h>

#include "include/internal/base.h"

void csink_moments_add(struct csink_moments *moments, double value)
{
	/* Welford's way: no sum of squares that would lose the digits of large counts. */
	double off = value - moments->mean;

	moments->nr++;
	moments->mean += off / moments->nr;
	moments->squares += off * (value - moments->mean);
	moments->min = moments->nr == 1 ? value : CSINK_MIN(moments->min, value);
	moments->max = moments->nr == 1 ? value : CSINK_MAX(moments->max, value);
}

double csink_moments_deviation(const struct csink_moments *moments)
{
	return moments->nr < 2 ? 0 : sqrt(moments->squares / (moments->nr - 1));
}

/* Student's t for 95 %, two-sided, by degrees of freedom from 1; beyond the table within 0.0002 by expansion. */
static double quantile(uint32_t freedom)
{
	static const double table[] = {12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281,
				       2.2010,  2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860};
	const double normal = 1.959964;

	if (freedom <= CSINK_ARRAY_SIZE(table))
		return table[freedom - 1];
	return normal + (normal * normal * normal + normal) / (4.0 * freedom) +
	       (5 * pow(normal, 5) + 16 * pow(normal, 3) + 3 * normal) / (96.0 * freedom * freedom);
}

double csink_moments_interval(const struct csink_moments *moments)
{
	if (moments->nr < 2)
		return 0;
	return quantile(moments->nr - 1) * csink_moments_deviation(moments) / sqrt(moments->nr);
}
