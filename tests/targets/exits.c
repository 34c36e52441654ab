/*
 * Works a while, then ends in the way that is asked for; status 7 where a status can be chosen.
 *   exits return|exit|_exit|_Exit|exit_group|quick_exit|abort|kill|thread_exit [MS] (50)
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ends.h"
#include "work.h"

static __attribute__((noinline, noclone)) uint64_t before_the_end(uint64_t ms)
{
	return spin(1, ms * ROUNDS_MS);
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

	ends_prepare();
	printf("%016llx\n", (unsigned long long)before_the_end(arg_num(argc, argv, 2, 50)));
	if (!strcmp(way, "return"))
		return 7;
	ends_by(way);
	if (!strcmp(way, "kill"))
		kill(getpid(), SIGKILL);
	if (!strcmp(way, "thread_exit") && !pthread_create(&thread, NULL, exit_from_thread, NULL))
		pthread_exit(NULL);
	fprintf(stderr, "exits: unknown way '%s'\n", way);
	return 2;
}
