/*
 * early: its library (built from this file, too: EARLY_LIBRARY) works in its constructor, where it also starts two
 * threads and a child, before any code of the program runs. The program waits for the threads, and works, too.
 *
 * early [WORD]: WORD is printed, but for these:
 *   exit   the constructor ends the process, with status 5
 *   forks  the program makes 20 children, one after another, and prints how many did not end as they should
 *
 * It has a variable environ of its own, which is not the one that libc uses.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "work.h"

#define MS 100

/* Each function is a little different: the linker may make one of those that are alike. */

void early_join(void);

#ifdef EARLY_LIBRARY

static volatile uint64_t sink;
static pthread_t threads[2];
static int status = -1;
static const char *name = "";

__attribute__((noinline)) static void early_constructor(void)
{
	sink = spin(sink, MS * ROUNDS_MS);
}

__attribute__((noinline)) static void early_thread(void)
{
	sink = spin(sink + 1, MS * ROUNDS_MS);
}

__attribute__((noinline)) static void early_child(void)
{
	sink = spin(sink + 2, MS * ROUNDS_MS);
}

static void *run(void *arg)
{
	early_thread();
	return arg;
}

__attribute__((constructor)) static void begin(int argc, char **argv)
{
	pid_t child;

	name = argc > 1 ? argv[1] : "no argument";
	early_constructor();
	if (!strcmp(name, "exit"))
		exit(5);
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, run, NULL);
	child = fork();
	if (!child) {
		early_child();
		_exit(3);
	}
	waitpid(child, &status, 0);
}

void early_join(void)
{
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	printf("%s, %s, child %d\n", name, getenv("EARLY"), WEXITSTATUS(status));
}

#else

extern char **environ;
char **environ = NULL;

static volatile uint64_t sink;

__attribute__((noinline)) static void early_main(void)
{
	sink = spin(sink, MS * ROUNDS_MS);
}

static int count_bad(void)
{
	int nr = 0;

	for (int i = 0; i < 20; i++) {
		pid_t child = fork();
		int status = 0;

		if (!child) {
			sink = spin(sink, ROUNDS_MS);
			_exit(3);
		}
		waitpid(child, &status, 0);
		nr += !WIFEXITED(status) || WEXITSTATUS(status) != 3;
	}
	return nr;
}

int main(int argc, char **argv)
{
	early_join();
	early_main();
	if (argc > 1 && !strcmp(argv[1], "forks"))
		printf("%d of 20\n", count_bad());
	return 7;
}

#endif
