/*
 * CPU time in three functions in the proportions 60 : 30 : 10, in slices, so that a processor that changes its speed
 * changes it for all of them; and in slices of changing length, so that no sampling period keeps step with them.
 * burn [MS]: about that many milliseconds (1000).
 */
#include <stdio.h>

#include "work.h"

static __attribute__((noinline, noclone)) uint64_t burn_60(uint64_t x, uint64_t unit)
{
	return spin(x, 6 * unit);
}

static __attribute__((noinline, noclone)) uint64_t burn_30(uint64_t x, uint64_t unit)
{
	return spin(x, 3 * unit);
}

static __attribute__((noinline, noclone)) uint64_t burn_10(uint64_t x, uint64_t unit)
{
	return spin(x, unit);
}

int main(int argc, char **argv)
{
	uint64_t ms = arg_num(argc, argv, 1, 1000), x = 1;

	for (uint64_t i = 0; i < ms; i++) {
		uint64_t unit = ROUNDS_MS / 20 + i * 7919 % (ROUNDS_MS / 10);

		x = burn_60(x, unit) ^ 1;
		x = burn_30(x, unit) ^ 2;
		x = burn_10(x, unit) ^ 3;
	}
	printf("burn %016llx\n", (unsigned long long)x);
	return 0;
}
