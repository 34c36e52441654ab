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
	uint64_t left = arg_num(argc, argv, 1, 1000) * ROUNDS_MS, length = 1, x = 1;

	while (left) {
		uint64_t tenth;

		length = spin(length, 1);
		tenth = (ROUNDS_MS / 20 + (length >> 33) % (ROUNDS_MS / 5)) / 10;
		if (tenth > left / 10)
			tenth = left / 10;
		x = burn_60(x, tenth) ^ 1;
		x = burn_30(x, tenth) ^ 2;
		x = burn_10(x, tenth) ^ 3;
		left = tenth ? left - 10 * tenth : 0;
	}
	printf("burn %016llx\n", (unsigned long long)x);
	return 0;
}
