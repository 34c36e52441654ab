/*
 * newstacks MS [THREADS]: threads (8) call each other's functions in ever new orders, so that hardly a stack is seen
 * twice, until the main thread ends it all by SIGKILL, after MS milliseconds (a fraction will do).
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "work.h"

#define DEEPEST 30

struct way {
	uint64_t random;
	volatile uint64_t sum;
};

typedef void (*step_fn)(struct way *way, uint32_t depth);

static void go_on(struct way *way, uint32_t depth);

#define STEP(name, rounds)                                                                                             \
	static __attribute__((noinline, noclone)) void name(struct way *way, uint32_t depth)                           \
	{                                                                                                              \
		go_on(way, depth);                                                                                     \
		way->sum = spin(way->sum, (rounds)) + depth; /* no tail call */                                        \
	}

STEP(step_0, 11)
STEP(step_1, 13)
STEP(step_2, 17)
STEP(step_3, 19)
STEP(step_4, 23)
STEP(step_5, 29)
STEP(step_6, 31)
STEP(step_7, 37)

static const step_fn steps[] = {step_0, step_1, step_2, step_3, step_4, step_5, step_6, step_7};

static __attribute__((noinline, noclone)) void go_on(struct way *way, uint32_t depth)
{
	way->random = way->random * 6364136223846793005ULL + 1442695040888963407ULL;
	if (depth && way->random >> 60)
		steps[way->random >> 33 & 7](way, depth - 1);
	way->sum++; /* no tail call */
}

static void *wander(void *arg)
{
	struct way way = {.random = (uint64_t)(uintptr_t)arg};

	for (;;)
		go_on(&way, DEEPEST);
	return NULL;
}

int main(int argc, char **argv)
{
	double ms = argc > 1 ? atof(argv[1]) : 100;
	uint64_t nr = arg_num(argc, argv, 2, 8);
	struct timespec left = {(time_t)(ms / 1000), (long)(ms * 1e6) % 1000000000};
	pthread_t thread;

	for (uint64_t i = 0; i < nr; i++)
		if (pthread_create(&thread, NULL, wander, (void *)(uintptr_t)(i * 7919 + 1)))
			return 1;
	while (nanosleep(&left, &left))
		;
	kill(getpid(), SIGKILL);
	return 1;
}
