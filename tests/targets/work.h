/* Work of a known size for the programs that are profiled: pure arithmetic, no memory, no calls. */
#ifndef CSINK_TESTS_WORK_H
#define CSINK_TESTS_WORK_H

#include <stdint.h>
#include <stdlib.h>

/* Rounds that take about a millisecond at 4 GHz; nothing depends on it being exact. */
#define ROUNDS_MS 1000000ULL

/* A chain of dependent multiplications: the same time for each round, whatever the compiler does around it. */
static inline __attribute__((always_inline)) uint64_t spin(uint64_t x, uint64_t rounds)
{
	for (uint64_t i = 0; i < rounds; i++)
		x = x * 6364136223846793005ULL + 1442695040888963407ULL;
	return x;
}

/* argv[index] as a number, or the default. */
static inline uint64_t arg_num(int argc, char **argv, int index, uint64_t fallback)
{
	return argc > index ? strtoull(argv[index], NULL, 10) : fallback;
}

#endif
