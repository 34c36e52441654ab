/* Simes' test of several hypotheses at once: see stats.h. Pure arithmetic. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/base/search.h"
#include "launcher/gate/stats/stats.h"

double csink_simes(const double *p, uint32_t n)
{
	double *sorted = csink_stats_memory(malloc((n + 1) * sizeof(*sorted))), least = 1;

	if (!sorted)
		return NAN;
	if (n)
		memcpy(sorted, p, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), csink_compare_doubles);
	for (uint32_t i = 0; i < n; i++)
		least = fmin(least, sorted[i] * n / (i + 1.0));
	free(sorted);
	return least;
}
