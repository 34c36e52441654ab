/*
 * Threads of a process that do at the same moment what is rarely done at the same moment.  races WHAT [TIMES]
 *
 *   ends   each of TIMES children exits while others of its threads start and end
 *
 * Prints what went otherwise than in a program that runs alone, and "done".
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void start(pthread_t *id, void *(*run)(void *), void *arg)
{
	int err = pthread_create(id, NULL, run, arg);

	if (err) {
		fprintf(stderr, "races: %s\n", strerror(err));
		exit(1);
	}
}

/* ---- ends -------------------------------------------------------------------------------------------------------- */

static void *nothing(void *arg)
{
	return arg;
}

static void *start_threads(void *arg)
{
	pthread_attr_t detached;
	pthread_t id;

	pthread_attr_init(&detached);
	pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	for (;;)
		if (pthread_create(&id, &detached, nothing, arg))
			sched_yield(); /* too many, for the moment */
	return arg;
}

static void exit_among_threads(int after_us)
{
	pthread_t id;

	for (int i = 0; i < 3; i++)
		start(&id, start_threads, NULL);
	usleep((useconds_t)after_us);
	_exit(0);
}

static void ends(int times)
{
	for (int i = 0; i < times; i++) {
		pid_t pid = fork();
		int status;

		if (pid == 0)
			exit_among_threads(500 + i % 20 * 20);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
		if (status)
			printf("a child that exits while its threads end: status %#x\n", (unsigned int)status);
	}
}

static const struct {
	const char *name;
	void (*run)(int times);
	int times;
} races[] = {
	{"ends", ends, 200},
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof(races) / sizeof(races[0]); i++) {
		if (strcmp(races[i].name, argv[1]) != 0)
			continue;
		races[i].run(argc > 2 ? atoi(argv[2]) : races[i].times);
		puts("done");
		return 0;
	}
	fprintf(stderr, "usage: races WHAT [TIMES]\n");
	return 2;
}
