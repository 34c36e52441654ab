/*
 * Creates and joins threads that do nothing, one at a time; says on stderr what CPU time that took in all.
 *   threadcost [THREADS] (2000)
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void *nothing(void *arg)
{
	return arg;
}

static unsigned long long cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return 1000000000ULL * (unsigned long long)ts.tv_sec + (unsigned long long)ts.tv_nsec;
}

int main(int argc, char **argv)
{
	long nr = argc > 1 ? atol(argv[1]) : 2000;
	unsigned long long start = cpu_ns();

	for (long i = 0; i < nr; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, nothing, NULL) || pthread_join(thread, NULL)) {
			fputs("threadcost: no thread\n", stderr);
			return 1;
		}
	}
	fprintf(stderr, "own_cpu_ns %llu\n", cpu_ns() - start);
	return 0;
}
