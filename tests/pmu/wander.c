/*
 * wander FIRST SECOND TIMES [THREADS]: a thread, or so many one after the other, that goes from CPU 0 to CPU 1 and back
 * so many times, and each time does FIRST million instructions on the one and SECOND on the other.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/pmu/pmu_work.h"

static uint64_t first, second;
static int times;

static void go_to(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set)) {
		perror("wander");
		exit(1);
	}
}

static __attribute__((noinline, noclone)) void on_first(void)
{
	work_rounds(first / 2);
}

static __attribute__((noinline, noclone)) void on_second(void)
{
	work_rounds(second / 2);
}

static void *wander(void *nothing)
{
	for (int i = 0; i < times; i++) {
		if (first) {
			go_to(0);
			on_first();
		}
		if (second) {
			go_to(1);
			on_second();
		}
	}
	return nothing;
}

int main(int argc, char **argv)
{
	int threads = argc > 4 ? atoi(argv[4]) : 1;
	pthread_t thread;

	if (argc < 4)
		return 2;
	first = strtoull(argv[1], NULL, 10) * 1000000;
	second = strtoull(argv[2], NULL, 10) * 1000000;
	times = atoi(argv[3]);
	for (int i = 1; i < threads; i++) {
		pthread_create(&thread, NULL, wander, NULL);
		pthread_join(thread, NULL);
	}
	wander(NULL);
	return 0;
}
