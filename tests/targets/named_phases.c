/*
 * A program that names its phases: named_phases MS works that long in each of load, parse (with inner in it, in a
 * thread too), and in a child's; and as long while it does not want to be profiled. Prints what it learns about the
 * profiler.
 */
#include <countersink.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long sum;

static __attribute__((noinline)) void work(long ms)
{
	struct timespec now, start;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
	do {
		for (int i = 0; i < 20000; i++)
			sum += (unsigned long)i;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	} while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 < ms);
}

static void *in_thread(void *arg)
{
	countersink_phase_begin("inner");
	work(*(long *)arg);
	countersink_phase_end();
	work(*(long *)arg); /* in no phase */
	return NULL;
}

static void secret(long ms)
{
	countersink_pause();
	work(ms);
	countersink_resume();
	countersink_stop();
	work(ms);
	countersink_start();
}

int main(int argc, char **argv)
{
	long ms = argc > 1 ? atol(argv[1]) : 100;
	pthread_t thread;

	errno = 77;
	printf("%s\n", countersink_is_here() ? "profiled" : "alone");
	countersink_phase_begin("load");
	work(ms);
	countersink_phase_end();
	countersink_phase_begin("parse");
	work(ms);
	countersink_phase_begin("inner");
	work(ms);
	countersink_phase_end();
	work(ms);
	secret(ms);
	pthread_create(&thread, NULL, in_thread, &ms);
	pthread_join(thread, NULL);
	fflush(stdout);
	if (!fork()) { /* begins in its parent's phase */
		work(ms);
		countersink_phase_begin("child");
		work(ms);
		_exit(0);
	}
	wait(NULL);
	for (int i = 0; i < 400; i++) { /* more names than there is room for, deeper than there is room for */
		char name[32];

		snprintf(name, sizeof(name), "phase %d", i);
		countersink_phase_begin(name);
	}
	for (int i = 0; i < 400; i++)
		countersink_phase_end();
	for (int i = 0; i < 400; i++) {
		char name[32];

		snprintf(name, sizeof(name), "phase %d", i);
		countersink_phase_begin(name);
		countersink_phase_end();
	}
	countersink_phase_end();
	countersink_phase_end(); /* of none */
	return errno == 77 ? 0 : 1;
}
