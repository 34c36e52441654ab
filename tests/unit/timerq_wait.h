/* What the tests of the armed queue share: waiting for a condition, never for a time. */
#ifndef CSINK_TESTS_TIMERQ_WAIT_H
#define CSINK_TESTS_TIMERQ_WAIT_H

#include <stdint.h>
#include <time.h>

#define MS INT64_C(1000000)
#define DEADLINE_NS (120000 * MS) /* then the test has failed */

static inline uint64_t monotonic_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Whether the condition came true before the deadline; the thread spins meanwhile, and so can be interrupted. */
#define wait_for(condition)                                                                                            \
	({                                                                                                             \
		uint64_t wait_end = monotonic_ns() + DEADLINE_NS;                                                      \
		int came_true;                                                                                         \
		while (!(came_true = !!(condition)) && monotonic_ns() < wait_end)                                      \
			;                                                                                              \
		came_true;                                                                                             \
	})

#endif
