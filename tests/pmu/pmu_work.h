/* A loop whose instructions are known: what the tests of the emulated machine count. */
#ifndef CSINK_TESTS_PMU_WORK_H
#define CSINK_TESTS_PMU_WORK_H

#include <stdint.h>

/* Two instructions a round, and on the emulated machine four cycles. A macro, so that it is in no function of its own.
 */
#define work_rounds(nr)                                                                                                \
	do {                                                                                                           \
		uint64_t work_left = (nr);                                                                             \
		__asm__ volatile("1: subs %0, %0, #1\n\tb.ne 1b" : "+r"(work_left) : : "cc");                          \
	} while (0)

/* Within a part of a whole. */
static inline int is_near(uint64_t got, uint64_t want, double part)
{
	double off = (double)got - (double)want;

	return (off < 0 ? -off : off) <= part * (double)want;
}

#endif
