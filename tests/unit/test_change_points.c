/* The scan for change points: where it alarms, what it computes, and what it leaves alone. tests/stats/compare_stats
 * compares it with R; tests/gate/history-power measures how often it is wrong. */
#include <math.h>
#include <string.h>

#include "include/internal/base.h"
#include "launcher/gate/stats/change_points.h"
#include "tests/unit/tap.h"

/* Neighbours are 0.02 apart, so that the spread is 0.02 / 0.954. */
static void zigzag(double *values, uint32_t n, uint32_t at, double step)
{
	for (uint32_t i = 0; i < n; i++)
		values[i] = (i % 2 ? 0.01 : -0.01) + (i >= at ? step : 0);
}

int main(void)
{
	double values[60], errors[60];
	struct csink_scan scan;
	uint32_t found = 0;

	zigzag(values, 60, 40, 0.1);
	for (uint32_t n = 1; n <= 60 && !found; n++)
		found = csink_scan_end(values, NULL, n, &scan) ? n : 0;
	ok(found >= 42 && found <= 43, "a step of 5 deviations is found when two or three values are behind it");
	ok(found - scan.after >= 39 && found - scan.after <= 41, "the step is placed within one value");
	csink_scan_end(values, NULL, 45, &scan);
	is_num(csink_split_at(values + 20, 25, 2), 20, "with five values behind it, the step is placed where it is");
	ok(scan.z > CSINK_SCAN_ALARM && fabs(scan.shift - 0.1) < 0.02, "the step's size is estimated");
	ok(fabs(scan.spread - 0.02 / 0.95387255) < 1e-9, "the spread is that of neighbours");
	zigzag(values, 60, 40, -0.1);
	ok(csink_scan_end(values, NULL, 45, &scan) && scan.z < 0 && scan.shift < 0, "a step down is found");
	zigzag(values, 60, 60, 0);
	found = 0;
	for (uint32_t n = 1; n <= 60; n++)
		found += csink_scan_end(values, NULL, n, &scan);
	is_num(found, 0, "no step: no alarm");
	values[42] += 10;
	for (uint32_t n = 43; n <= 60; n++)
		found += csink_scan_end(values, NULL, n, &scan);
	is_num(found, 0, "a single far value is no step");
	for (uint32_t i = 0; i < 60; i++)
		values[i] = i >= 40 ? 1e-9 : 0;
	ok(!csink_scan_end(values, NULL, 45, &scan), "values that are equal but for rounding: no alarm");
	zigzag(values, 60, 40, 0.1);
	for (uint32_t i = 0; i < 60; i++)
		errors[i] = i % 3 ? 0.1 : NAN;
	ok(!csink_scan_end(values, errors, 45, &scan) && fabs(scan.spread - 0.08) < 1e-12,
	   "a step must be beyond 4 of the values' own errors");
	for (uint32_t i = 0; i < 60; i++)
		errors[i] = 0.0001;
	ok(csink_scan_end(values, errors, 45, &scan) && scan.spread > 0.02, "errors that are too small change nothing");
	ok(!csink_scan_end(values + 34, NULL, 9, &scan) && !scan.after, "nine values are too few");
	ok(csink_scan_end(values + 33, NULL, 10, &scan), "ten values are enough");
	ok(isnan(csink_spread_of_neighbours(values, 1)), "one value has no spread");
	return done();
}
