/* Ends after two phases of CPU time, in first_phase() and in second_phase(): for so many microseconds each. */
#include <stdlib.h>
#include <time.h>

static volatile unsigned long sum;

static long now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* A phase of its own: the clock is asked between its loops. */
#define PHASE(name)                                                                                                    \
	__attribute__((noinline)) void name(long us)                                                                   \
	{                                                                                                              \
		long end_us = now_us() + us;                                                                           \
                                                                                                                       \
		do                                                                                                     \
			for (int i = 0; i < 2000; i++)                                                                 \
				sum += (unsigned long)i;                                                               \
		while (now_us() < end_us);                                                                             \
	}
PHASE(first_phase)
PHASE(second_phase)

int main(int argc, char **argv)
{
	first_phase(argc > 1 ? atol(argv[1]) : 0);
	second_phase(argc > 2 ? atol(argv[2]) : 0);
	return 0;
}
