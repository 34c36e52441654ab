/*
 * Threads that block in ways of their own. On stdout is what is known of each, once they have ended:
 *	NAME wall NS cpu NS interrupted N most NS
 * wall and cpu are from its first instruction to its exit, which is not in them. It lived for wall to most.
 * sleeper: nanosleep; waiter: a mutex that sleeper's brother holds; reader: a pipe.  blocked [ROUNDS] (100).
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "work.h"

static uint64_t rounds;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int fds[2];

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec at;

	clock_gettime(clock, &at);
	return (uint64_t)at.tv_sec * 1000000000 + (uint64_t)at.tv_nsec;
}

static int nap(long ns)
{
	struct timespec time = {0, ns};

	return nanosleep(&time, NULL) < 0 && errno == EINTR;
}

static __attribute__((noinline, noclone)) int block_sleeping(void)
{
	return nap(3000000);
}

static __attribute__((noinline, noclone)) int block_on_mutex(void)
{
	int err = pthread_mutex_lock(&mutex);

	pthread_mutex_unlock(&mutex);
	return err != 0;
}

static __attribute__((noinline, noclone)) int block_reading(void)
{
	char byte;

	return read(fds[0], &byte, 1) != 1;
}

static void *holder(void *arg)
{
	for (uint64_t i = 0; i < rounds; i++) {
		pthread_mutex_lock(&mutex);
		nap(2000000);
		pthread_mutex_unlock(&mutex);
		if (write(fds[1], "x", 1) != 1)
			return arg;
		nap(200000);
	}
	return NULL;
}

struct kind {
	const char *name;
	int (*block)(void);
	uint64_t begins, most, wall, cpu;
	int interrupted;
};

static struct kind kinds[] = {{.name = "sleeper", .block = block_sleeping},
			      {.name = "waiter", .block = block_on_mutex},
			      {.name = "reader", .block = block_reading}};
static int ended[2]; /* a pipe: the numbers in kinds of those that end */

static void *run(void *arg)
{
	struct kind *kind = arg;
	uint64_t wall = clock_ns(CLOCK_MONOTONIC), cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID), x = 1;
	unsigned char number = (unsigned char)(kind - kinds);
	int interrupted = 0;

	prctl(PR_SET_NAME, kind->name);
	for (uint64_t i = 0; i < rounds; i++) {
		interrupted += kind->block();
		x = spin(x, ROUNDS_MS / 20);
	}
	kind->wall = clock_ns(CLOCK_MONOTONIC) - wall;
	kind->cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
	kind->interrupted = interrupted + !x + (write(ended[1], &number, 1) != 1);
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned char number;
	pthread_t threads[4];

	rounds = arg_num(argc, argv, 1, 100);
	if (pipe(fds) || pipe(ended))
		return 1;
	pthread_create(&threads[3], NULL, holder, NULL);
	for (int i = 0; i < 3; i++) {
		kinds[i].begins = clock_ns(CLOCK_MONOTONIC);
		pthread_create(&threads[i], NULL, run, &kinds[i]);
	}
	for (int i = 0; i < 3; i++) {
		if (read(ended[0], &number, 1) != 1)
			return 1;
		pthread_join(threads[number], NULL);
		kinds[number].most = clock_ns(CLOCK_MONOTONIC) - kinds[number].begins;
	}
	pthread_join(threads[3], NULL);
	for (int i = 0; i < 3; i++)
		printf("%s wall %llu cpu %llu interrupted %d most %llu\n", kinds[i].name,
		       (unsigned long long)kinds[i].wall, (unsigned long long)kinds[i].cpu, kinds[i].interrupted,
		       (unsigned long long)kinds[i].most);
	return 0;
}
