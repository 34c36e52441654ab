/*
 * For tests of the gate: works in functions of known names, as much in each as the arguments say: "alpha 20 beta 10".
 * "halves 10" does the work of "beta 10" in two functions, half in each. "fail 7" ends with status 7.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

volatile uint64_t sink;

/* A unit is a million dependent steps. */
#define STEPS 1000000

#define WORKER(name, factor)                                                                                           \
	__attribute__((noipa)) static void name(uint64_t units)                                                        \
	{                                                                                                              \
		uint64_t x = sink;                                                                                     \
                                                                                                                       \
		for (uint64_t i = 0; i < units * STEPS; i++)                                                           \
			x = x * factor + i;                                                                            \
		sink = x;                                                                                              \
	}

WORKER(alpha, 3)
WORKER(beta, 5)
WORKER(gamma_ray, 7)
WORKER(first_half, 5)
WORKER(second_half, 5)

__attribute__((noipa)) static void halves(uint64_t units)
{
	first_half(units / 2);
	second_half(units - units / 2);
}

static void fail(uint64_t status)
{
	fprintf(stderr, "gate_work: asked to fail\n");
	exit((int)status);
}

static const struct {
	const char *name;
	void (*work)(uint64_t units);
} workers[] = {{"alpha", alpha}, {"beta", beta}, {"gamma", gamma_ray}, {"halves", halves}, {"fail", fail}};

int main(int argc, char **argv)
{
	for (int i = 1; i + 1 < argc; i += 2) {
		for (size_t k = 0; k < sizeof(workers) / sizeof(*workers); k++) {
			if (!strcmp(argv[i], workers[k].name))
				workers[k].work(strtoull(argv[i + 1], NULL, 10));
		}
	}
	puts("what the command prints is not shown");
	return 0;
}
