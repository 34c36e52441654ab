/* The time that everything here is measured by. */
#ifndef CSINK_INTERNAL_CLOCK_H
#define CSINK_INTERNAL_CLOCK_H

#include <stdint.h>
#include <time.h>

#include "include/internal/base.h"

/** CLOCK_MONOTONIC, in ns. Context: any. */
static inline uint64_t csink_monotonic_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * CSINK_NS_PER_S + (uint64_t)ts.tv_nsec;
}

#endif
