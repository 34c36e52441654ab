/*
 * CPU time before and after a moment that others choose: threads in before(), then a line into the FIFO UP; once HOLD
 * can be read, threads in after(). Then the CPU time of the process, in ns, goes into the file CLOCK.
 * goes_on UP HOLD CLOCK [THREADS [MS]]: THREADS (2) with so many milliseconds each (60), before and after.
 */
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "work.h"

static uint64_t rounds;

static __attribute__((noinline, noclone)) void *before(void *arg)
{
	return (void *)(uintptr_t)spin((uintptr_t)arg, rounds);
}

static __attribute__((noinline, noclone)) void *after(void *arg)
{
	return (void *)(uintptr_t)(spin((uintptr_t)arg, rounds) ^ 1);
}

static void run(void *(*function)(void *), uint64_t nr)
{
	pthread_t threads[16];

	for (uint64_t i = 0; i < nr; i++)
		pthread_create(&threads[i], NULL, function, (void *)(uintptr_t)i);
	for (uint64_t i = 0; i < nr; i++)
		pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
	uint64_t nr = arg_num(argc, argv, 4, 2) % 17;
	struct timespec used;
	FILE *file;

	rounds = arg_num(argc, argv, 5, 60) * ROUNDS_MS;
	run(before, nr);
	file = fopen(argv[1], "w");
	if (!file || fputs("up\n", file) < 0 || fclose(file))
		return 1;
	file = fopen(argv[2], "r");
	if (!file)
		return 1;
	fgetc(file);
	fclose(file);
	run(after, nr);
	file = fopen(argv[3], "w");
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	if (!file || fprintf(file, "%lld\n", used.tv_sec * 1000000000LL + used.tv_nsec) < 0 || fclose(file))
		return 1;
	return 0;
}
