/*
 * Preloaded, lets each program begin some milliseconds later, and does nothing else: what comes out otherwise then
 * depends on who comes first, whoever it is that needs time.
 */
#include <errno.h>
#include <time.h>
#include <unistd.h>

__attribute__((constructor)) static void sleep_a_little(void)
{
	int saved = errno;
	struct timespec time = {0, 1000000L << getpid() % 6};

	nanosleep(&time, NULL);
	errno = saved;
}
