/*
 * A fixed amount of work under a stack of a chosen depth, in code without frame pointers.
 *
 *   frames DEPTH MS [STACKS]   (10 stacks, in turn)
 *
 * Goes down DEPTH frames, works some 10 us at the bottom, comes back, again and again. Ten functions with frames of
 * different sizes call each other on the way, so that neighbouring return addresses differ as in real programs. Says on
 * stderr what CPU time the work took, without the program's start and end, and what each piece of some 20 ms took.
 */
#include <stdio.h>
#include <time.h>

#include "tests/targets/work.h"

typedef uint64_t step_fn(uint64_t x, unsigned depth);
static step_fn *const steps[];

static __attribute__((noinline, noclone)) uint64_t bottom(uint64_t x)
{
	return spin(x, ROUNDS_MS / 100);
}

#define STEPS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9)
#define X(n)                                                                                                           \
	static __attribute__((noinline, noclone)) uint64_t step_##n(uint64_t x, unsigned depth)                        \
	{                                                                                                              \
		volatile uint64_t pad[1 + 2 * n];                                                                      \
                                                                                                                       \
		pad[n] = x + n;                                                                                        \
		if (depth == 0)                                                                                        \
			return bottom(pad[n]) + pad[n];                                                                \
		return steps[(n * 7 + depth) % 10](pad[n], depth - 1) + pad[n];                                        \
	}
STEPS(X)
#undef X

static step_fn *const steps[] = {
#define X(n) step_##n,
	STEPS(X)
#undef X
};

static unsigned long long cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return 1000000000ULL * (unsigned long long)ts.tv_sec + (unsigned long long)ts.tv_nsec;
}

int main(int argc, char **argv)
{
	unsigned depth = (unsigned)arg_num(argc, argv, 1, 30);
	uint64_t ms = arg_num(argc, argv, 2, 500), stacks = arg_num(argc, argv, 3, 10), x = 1;
	unsigned long long start = cpu_ns(), before = start, now;

	for (uint64_t piece = 0; piece < ms / 20; piece++) {
		for (uint64_t i = 0; i < 2000; i++)
			x = steps[i % (stacks ? stacks : 1) % 10](
				x, depth > 3 ? depth - 3 : 0); /* main, the first step and bottom are frames too */
		now = cpu_ns();
		fprintf(stderr, "piece_cpu_ns %llu\n", now - before);
		before = cpu_ns();
	}
	fprintf(stderr, "own_cpu_ns %llu\n", cpu_ns() - start);
	printf("%016llx\n", (unsigned long long)x);
	return 0;
}
