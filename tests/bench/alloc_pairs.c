/*
 * What malloc and free cost, ns a pair of CPU time, in three patterns: a pair of 32 bytes at once, 100 blocks of 16 to
 * 412 bytes that are freed in order, and random replacement among 100,000 blocks. Prints "PATTERN NS" lines. With
 * "handler" or "fault" as its argument it has a handler of SIGINT or, for an alternate stack, of SIGSEGV.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void *(*volatile take)(size_t) = malloc;
static void (*volatile give)(void *) = free;

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void pairs(long nr)
{
	while (nr--)
		give(take(32));
}

static void batches(long nr)
{
	void *blocks[100];

	for (nr /= 100; nr > 0; nr--) {
		for (unsigned i = 0; i < 100; i++)
			blocks[i] = take(16 + 4 * i);
		for (unsigned i = 0; i < 100; i++)
			give(blocks[i]);
	}
}

static void replace(long nr)
{
	static void *blocks[100000];
	uint64_t random = 88172645463325252u;

	for (; nr > 0; nr--) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		give(blocks[random % 100000]);
		blocks[random % 100000] = take(16 + (random >> 32) % 400);
	}
}

static void run(const char *name, void (*pattern)(long), long nr)
{
	double least = 1e9;

	pattern(nr);
	for (int i = 0; i < 5; i++) {
		uint64_t begin = cpu_ns();
		double ns;

		pattern(nr);
		ns = (double)(cpu_ns() - begin) / (double)nr;
		if (ns < least)
			least = ns;
	}
	printf("%s %.2f\n", name, least);
}

int main(int argc, char **argv)
{
	struct sigaction fault = {.sa_handler = _exit, .sa_flags = SA_ONSTACK};

	if (argc > 1 && !strcmp(argv[1], "handler"))
		signal(SIGINT, _exit);
	else if (argc > 1)
		sigaction(SIGSEGV, &fault, NULL);
	run("pair", pairs, 4000000);
	run("batch", batches, 4000000);
	run("random", replace, 2000000);
	return 0;
}
