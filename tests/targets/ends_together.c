/*
 * Pairs of threads, one on each of two CPUs, that end at the same moment, again and again: what the kernel notes of a
 * thread's end is then written by two CPUs at once.  ends_together PAIRS
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WAITS 20000000

static int cpus[2], nr_cpus;
static atomic_int nr_ready;

static void find_cpus(void)
{
	cpu_set_t mine;

	sched_getaffinity(0, sizeof(mine), &mine);
	for (int cpu = 0; cpu < CPU_SETSIZE && nr_cpus < 2; cpu++)
		if (CPU_ISSET(cpu, &mine))
			cpus[nr_cpus++] = cpu;
}

static void *end_with_the_other(void *arg)
{
	cpu_set_t own;

	CPU_ZERO(&own);
	CPU_SET(cpus[*(int *)arg % nr_cpus], &own);
	pthread_setaffinity_np(pthread_self(), sizeof(own), &own);
	atomic_fetch_add(&nr_ready, 1);
	/* Where both have one CPU, or others take the second, they part. */
	for (long i = 0; i < MAX_WAITS && atomic_load(&nr_ready) < 2; i++)
		if (i % 100000 == 99999)
			sched_yield();
	return NULL;
}

int main(int argc, char **argv)
{
	int nr = argc > 1 ? atoi(argv[1]) : 100, numbers[2] = {0, 1};

	find_cpus();
	for (int i = 0; i < nr; i++) {
		pthread_t threads[2];

		nr_ready = 0;
		for (int k = 0; k < 2; k++) {
			int err = pthread_create(&threads[k], NULL, end_with_the_other, &numbers[k]);

			if (err) {
				fprintf(stderr, "ends_together: %s\n", strerror(err));
				return 1;
			}
		}
		for (int k = 0; k < 2; k++)
			pthread_join(threads[k], NULL);
	}
	return 0;
}
