/* Its first thread ends, and leaves the work to a second one.   headless [MS] (60000) */
#include <pthread.h>
#include <stdio.h>

#include "work.h"

static __attribute__((noinline, noclone)) uint64_t left_to_it(uint64_t ms)
{
	return spin(1, ms * ROUNDS_MS);
}

static void *work(void *arg)
{
	printf("%llu\n", (unsigned long long)left_to_it(*(const uint64_t *)arg));
	return NULL;
}

int main(int argc, char **argv)
{
	static uint64_t ms;
	pthread_t thread;

	ms = arg_num(argc, argv, 1, 60000);
	if (pthread_create(&thread, NULL, work, &ms))
		return 1;
	pthread_exit(NULL);
}
