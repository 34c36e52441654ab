/* Clocks in ns. */
#ifndef CSINK_INTERNAL_CLOCK_H
#define CSINK_INTERNAL_CLOCK_H

#include <stdint.h>
#include <sys/time.h>
#include <time.h>

#include "include/internal/base.h"

/** A clock of clock_gettime(2) that every kernel has, in ns. Context: any. */
static inline uint64_t csink_clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * CSINK_NS_PER_S + (uint64_t)ts.tv_nsec;
}

/** The same of a struct timeval. Context: any. */
static inline uint64_t csink_timeval_ns(const struct timeval *time)
{
	return (uint64_t)time->tv_sec * CSINK_NS_PER_S + (uint64_t)time->tv_usec * 1000;
}

/** The time that everything here is measured by: CLOCK_MONOTONIC, in ns. Context: any. */
static inline uint64_t csink_monotonic_ns(void)
{
	return csink_clock_ns(CLOCK_MONOTONIC);
}

#endif
