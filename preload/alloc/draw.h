/*
 * When the next allocation is sampled, and what a sample stands for. Each byte that is allocated is sampled with the
 * same small probability, so the bytes between two samples have an exponential distribution, and an allocation of n
 * bytes is sampled with a probability of 1 - exp(-n / period). Without libm, which each program would load.
 */
#ifndef CSINK_ALLOC_DRAW_H
#define CSINK_ALLOC_DRAW_H

#include <stdint.h>

#include "include/internal/base.h"

/** The next state of a generator of random numbers (xorshift64*), which is not 0. Returns 64 random bits. Context: any.
 */
static inline uint64_t csink_random_next(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1dULL;
}

/** -ln(bits / 2^64), within 10^-9 of it: 0 to 44.4. Context: any. */
static inline double csink_minus_log(uint64_t bits)
{
	static const double odd[] = {1, 1. / 3, 1. / 5, 1. / 7, 1. / 9, 1. / 11, 1. / 13, 1. / 15, 1. / 17, 1. / 19};
	int zeros = bits ? __builtin_clzll(bits) : 63;
	double m = (double)(bits << zeros | 1) * 0x1p-63; /* 1 to 2 */
	double t = (m - 1) / (m + 1), square = t * t, sum = 0;

	if (m < 1) /* bits is 0 */
		return 44.361419555836498;
	/* ln m = 2 (t + t^3 / 3 + t^5 / 5 ...), t at most 1 / 3 */
	for (int n = 9; n >= 0; n--)
		sum = sum * square + odd[n];
	return (zeros + 1) * 0.69314718055994531 - 2 * t * sum;
}

/** 1 - exp(-x) of x >= 0, within 10^-9 of it. Context: any. */
static inline double csink_sampled_share(double x)
{
	/* 1 / n! */
	static const double terms[] = {1,         1. / 2,     1. / 6,      1. / 24,      1. / 120,     1. / 720,
				       1. / 5040, 1. / 40320, 1. / 362880, 1. / 3628800, 1. / 39916800};
	double r, sum = 0;
	int halves = 0;

	if (x > 40)
		return 1;
	for (r = x; r > 0.5; r /= 2)
		halves++;
	/* 1 - exp(-r), and from there to twice r: 1 - exp(-2r) = s (2 - s) */
	for (int n = (int)CSINK_ARRAY_SIZE(terms) - 1; n >= 0; n--)
		sum = terms[n] - r * sum;
	sum *= r;
	while (halves--)
		sum *= 2 - sum;
	return sum;
}

/** How many bytes are allocated before the next one that is sampled, of a mean of period. Context: any. */
static inline uint64_t csink_draw_bytes(uint64_t *state, uint64_t period)
{
	return (uint64_t)(csink_minus_log(csink_random_next(state)) * (double)period);
}

#endif
