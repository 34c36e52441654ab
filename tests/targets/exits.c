/*
 * Works a while, then ends in the way that is asked for; status 7 where a status can be chosen.
 *   exits return|exit|_exit|exit_group|quick_exit|abort|kill|thread_exit [MS] (50)
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "work.h"

static __attribute__((noinline, noclone)) uint64_t before_the_end(uint64_t ms)
{
	return spin(1, ms * ROUNDS_MS);
}

static void at_exit(void)
{
	puts("atexit ran");
	fflush(stdout);
}

static void at_quick_exit_handler(void)
{
	puts("at_quick_exit ran");
	fflush(stdout);
}

static void *exit_from_thread(void *arg)
{
	(void)arg;
	exit(7);
}

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "return";
	pthread_t thread;

	setvbuf(stdout, NULL, _IOLBF, 0);
	atexit(at_exit);
	at_quick_exit(at_quick_exit_handler);
	printf("%016llx\n", (unsigned long long)before_the_end(arg_num(argc, argv, 2, 50)));
	if (!strcmp(way, "return"))
		return 7;
	if (!strcmp(way, "exit"))
		exit(7);
	if (!strcmp(way, "_exit"))
		_exit(7);
	if (!strcmp(way, "exit_group"))
		syscall(SYS_exit_group, 7);
	if (!strcmp(way, "quick_exit"))
		quick_exit(7);
	if (!strcmp(way, "abort"))
		abort();
	if (!strcmp(way, "kill"))
		kill(getpid(), SIGKILL);
	if (!strcmp(way, "thread_exit") && !pthread_create(&thread, NULL, exit_from_thread, NULL))
		pthread_exit(NULL);
	fprintf(stderr, "exits: unknown way '%s'\n", way);
	return 2;
}
