/*
 * Change points of a series of ratios: at each new value, the scan asks whether the level changed a few values ago.
 * How often it is wrong, and what it finds, is measured by tests/gate/history-power. Pure arithmetic; context: any.
 */
#ifndef CSINK_CHANGE_POINTS_H
#define CSINK_CHANGE_POINTS_H

#include <stdbool.h>
#include <stdint.h>

#define CSINK_SCAN_WINDOW 30   /* values that are looked at: the last ones since the last change */
#define CSINK_SCAN_BEFORE 7    /* so many at least are before a change, */
#define CSINK_SCAN_AFTER 3     /* and so many after it, */
#define CSINK_SCAN_NEWEST 15   /* at most */
#define CSINK_SCAN_ALARM 5.0   /* standard errors between the two levels, beyond which it is a change, */
#define CSINK_SCAN_KNOWN 4.0   /* and beyond which it must be by the values' own errors, which are not estimated */
#define CSINK_SPLIT_MOST 60    /* values between which a change is placed */
#define CSINK_SCAN_LEAST 0.001 /* the least spread that values are assumed to have: 0.1 % */

struct csink_scan {
	uint32_t after; /* values since the change that fits best */
	double z;       /* difference of the levels, in standard errors of neighbours' spread, or so scaled; > 0: up */
	double shift;   /* the difference itself */
	double spread;  /* standard deviation of a value: of neighbours, or CSINK_SCAN_KNOWN / CSINK_SCAN_ALARM of the
			 * median of errors where that is more */
};

/**
 * Scan the end of a series for a change of its level.
 * @values  logarithms of ratios, in order.
 * @errors  standard errors of the values, NAN where they are not known; NULL: of none.
 * Returns whether there is a change: z is beyond CSINK_SCAN_ALARM. With fewer than CSINK_SCAN_BEFORE + CSINK_SCAN_AFTER
 * values there is none, and out is all zero.
 */
bool csink_scan_end(const double *values, const double *errors, uint32_t n, struct csink_scan *out);

/**
 * Where a series changes, given that it does once: its halves have the least sum of distances from their medians.
 * @least  values that are on either side at least; n is at least twice that.
 * Returns the index of the first value behind the change.
 */
uint32_t csink_split_at(const double *values, uint32_t n, uint32_t least);

/** The standard deviation of a value, by the median difference between neighbours; NAN of fewer than two. */
double csink_spread_of_neighbours(const double *values, uint32_t n);

#endif
