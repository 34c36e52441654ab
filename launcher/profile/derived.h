/* Figures that follow from two events of one profile: instructions a cycle, misses in a thousand instructions. */
#ifndef CSINK_DERIVED_H
#define CSINK_DERIVED_H

#include <stddef.h>
#include <stdint.h>

struct csink_profile;

struct csink_derived {
	char title[9];        /* "IPC", "bra-m/ki" */
	char name[80];        /* for machines: "instructions per cycle", "branch-misses per thousand instructions" */
	uint32_t over, under; /* types */
	double factor;
};

/** Which figures a profile's types give, at most max. Returns how many. */
uint32_t csink_derived_find(const struct csink_profile *p, struct csink_derived *out, uint32_t max);

/** The figure of values (one of each type); not a number where there is nothing to divide by. */
double csink_derived_value(const struct csink_derived *d, const int64_t *values);

/** The same for people: "1.85"; "-" where there is none. */
void csink_derived_format(const struct csink_derived *d, const int64_t *values, char *buf, size_t size);

#endif
