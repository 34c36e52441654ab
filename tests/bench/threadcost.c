/*
 * Creates and joins threads that do nothing, one at a time; says on stderr what CPU time that took in all.
 *
 *   threadcost [THREADS [WITH]]   (2000)
 *
 * WITH makes the kernel's calls that a per-thread engine cannot do without, each step one more than the last, so that
 * our part is distinguished from the kernel's:
 *   main     the first thread has its own event (and sleeps for every thread that it joins)
 *   open     and each thread opens one, which never runs
 *   run      which runs
 *   map      and is mapped, so that it needs no descriptor: all that the sigtrap engine asks of the kernel
 *   inherit  one event for all threads, which the kernel clones: its descriptor has to stay open, its counts are only
 *            to be had by a call, and no thread but the first could stop it before an exec
 */
#include "tests/bench/sigtrap_event.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum with { PLAIN, MAIN, OPEN, RUN, MAP, INHERIT, NR_WITHS };
static const char *const names[NR_WITHS] = {"plain", "main", "open", "run", "map", "inherit"};
static enum with with;
static size_t map_bytes;

static int open_event(int how)
{
	int fd = sigtrap_event_open(1003009, PERF_SAMPLE_TIME, how);

	if (fd >= 0)
		return fd;
	perror("threadcost: perf_event_open");
	exit(1);
}

/* Open, map if asked for, and close: the mapping is what keeps the event. */
static void *hold_event(void)
{
	int fd = open_event(with == OPEN ? SIGTRAP_DISABLED : 0);
	void *map = NULL;

	if (with == MAP || with == MAIN)
		map = mmap(NULL, map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) {
		perror("threadcost: mmap");
		exit(1);
	}
	close(fd);
	return map;
}

static void *nothing(void *arg)
{
	void *map = with == OPEN || with == RUN || with == MAP ? hold_event() : NULL;

	if (map)
		munmap(map, map_bytes);
	return arg;
}

static unsigned long long cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return 1000000000ULL * (unsigned long long)ts.tv_sec + (unsigned long long)ts.tv_nsec;
}

static void prepare(const char *name)
{
	enum with asked = PLAIN;

	while (asked < NR_WITHS && strcmp(names[asked], name))
		asked++;
	if (asked == NR_WITHS) {
		fprintf(stderr, "threadcost: no such way: %s\n", name);
		exit(2);
	}
	if (asked == PLAIN)
		return;
	map_bytes = 2 * (size_t)sysconf(_SC_PAGESIZE);
	sigtrap_ignore();
	with = MAIN;
	if (asked == INHERIT)
		open_event(SIGTRAP_INHERITED);
	else
		hold_event();
	with = asked;
}

int main(int argc, char **argv)
{
	long nr = argc > 1 ? atol(argv[1]) : 2000;
	unsigned long long start;

	prepare(argc > 2 ? argv[2] : "plain");
	start = cpu_ns();
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
