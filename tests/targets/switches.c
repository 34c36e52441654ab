/*
 * CPU time that events of threads have little of: two threads that wake each other, threads and processes that end at
 * once. For each line of its input it works, or with "look" does not, and prints the CPU time that it has used, in ns:
 * its own, that of its children, and of that its first thread's own. It ends with its input. usage: switches [MS]
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "work.h"

static int there[2], back[2];

static uint64_t used(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static uint64_t ns_of(struct timeval time)
{
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_usec * 1000;
}

static void *answer(void *arg)
{
	char byte;

	while (read(there[0], &byte, 1) == 1 && write(back[1], &byte, 1) == 1)
		;
	return arg;
}

static void *briefly(void *arg)
{
	*(volatile uint64_t *)arg = spin(*(uint64_t *)arg, ROUNDS_MS / 10);
	return arg;
}

static void work(uint64_t ms)
{
	uint64_t end = used(CLOCK_PROCESS_CPUTIME_ID) + ms * 1000000, x = 1;
	pthread_t thread;
	char byte = 0;

	while (used(CLOCK_PROCESS_CPUTIME_ID) < end)
		if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
			exit(1);
	for (int i = 0; i < 100; i++)
		if (!pthread_create(&thread, NULL, briefly, &x))
			pthread_join(thread, NULL);
	for (int i = 0; i < 20; i++)
		if (!fork()) {
			briefly(&x);
			_exit(0);
		}
	while (wait(NULL) > 0)
		;
}

int main(int argc, char **argv)
{
	uint64_t ms = arg_num(argc, argv, 1, 500);
	struct rusage children;
	pthread_t thread;
	char line[16];

	if (pipe(there) || pipe(back) || pthread_create(&thread, NULL, answer, NULL))
		return 1;
	while (fgets(line, sizeof(line), stdin)) {
		if (strcmp(line, "look\n"))
			work(ms);
		getrusage(RUSAGE_CHILDREN, &children);
		printf("%llu %llu %llu\n", (unsigned long long)used(CLOCK_PROCESS_CPUTIME_ID),
		       (unsigned long long)(ns_of(children.ru_utime) + ns_of(children.ru_stime)),
		       (unsigned long long)used(CLOCK_THREAD_CPUTIME_ID));
		fflush(stdout);
	}
	return 0;
}
