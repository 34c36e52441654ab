/*
 * Three functions that run 60, 30 and 10 of 100 million rounds of two instructions each: 200 M instructions in all, and
 * on the emulated machine 400 M cycles. shares [PROCESSES [THREADS]]: so many processes after each other, each with so
 * many threads beside each other, all doing that.
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/pmu/pmu_work.h"

#define SLICES 100
#define PART 100000 /* rounds: SLICES of 10 parts are 100 million */

static __attribute__((noinline, noclone)) void share_60(void)
{
	work_rounds(6 * PART);
}

static __attribute__((noinline, noclone)) void share_30(void)
{
	work_rounds(3 * PART);
}

static __attribute__((noinline, noclone)) void share_10(void)
{
	work_rounds(PART);
}

static void *share(void *nothing)
{
	for (int i = 0; i < SLICES; i++) {
		share_60();
		share_30();
		share_10();
	}
	return nothing;
}

static void run_threads(int nr)
{
	pthread_t threads[64];

	for (int i = 1; i < nr && i < 64; i++)
		pthread_create(&threads[i], NULL, share, NULL);
	share(NULL);
	for (int i = 1; i < nr && i < 64; i++)
		pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
	int processes = argc > 1 ? atoi(argv[1]) : 1, threads = argc > 2 ? atoi(argv[2]) : 1;

	for (int i = 1; i < processes; i++) {
		pid_t pid = fork();

		if (!pid) {
			run_threads(threads);
			return 0;
		}
		waitpid(pid, NULL, 0);
	}
	run_threads(threads);
	return 0;
}
