/* deep DEPTH SECONDS [WORK]: burns CPU time at the end of, and up and down, a stack of DEPTH known frames. */
#include "deep_functions.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double cpu_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
	int depth = argc > 1 ? atoi(argv[1]) : 30;
	double seconds = argc > 2 ? atof(argv[2]) : 1.0, end = cpu_seconds() + seconds;
	unsigned int work = argc > 3 ? (unsigned int)atoi(argv[3]) : 2000;
	unsigned long sum = 0;

	if (depth < 1 || depth > DEEP_MAX) {
		fprintf(stderr, "deep: depth must be 1 to %d\n", DEEP_MAX);
		return 2;
	}
	while (cpu_seconds() < end)
		for (int i = 0; i < 16; i++)
			sum += deep_call((unsigned int)depth, work, sum + (unsigned long)i);
	printf("%d %lu\n", depth, sum & 1);
	return 0;
}
