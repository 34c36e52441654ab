/*
 * Mostly asleep: NAPS naps of 2 ms by nanosleep and poll in turn, about a tenth as much work between them. Says how
 * many of the waits were interrupted: none, since no process here sends a signal.  sleepy [NAPS] (300).
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <time.h>

#include "work.h"

static __attribute__((noinline, noclone)) uint64_t awake(uint64_t x)
{
	return spin(x, ROUNDS_MS / 5);
}

int main(int argc, char **argv)
{
	uint64_t naps = arg_num(argc, argv, 1, 300), x = 1;
	struct timespec nap = {0, 2000000};
	int interrupted = 0;

	for (uint64_t i = 0; i < naps; i++) {
		int rc = i % 2 ? poll(NULL, 0, 2) : nanosleep(&nap, NULL);

		interrupted += rc < 0 && errno == EINTR;
		x = awake(x);
	}
	printf("naps %llu, interrupted %d, %016llx\n", (unsigned long long)naps, interrupted, (unsigned long long)x);
	return 0;
}
