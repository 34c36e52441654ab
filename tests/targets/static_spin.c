/*
 * static_spin SECONDS [COMMAND...]: use CPU for that long, then exec the command. Linked statically: nothing can be
 * injected into it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long sink;

static double cpu_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	double until = argc > 1 ? cpu_s() + atof(argv[1]) : 0;

	while (cpu_s() < until) {
		for (int i = 0; i < 100000; i++)
			sink += (unsigned long)i;
	}
	if (argc > 2) {
		execvp(argv[2], argv + 2);
		perror(argv[2]);
		return 127;
	}
	return 0;
}
