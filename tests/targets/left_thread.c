/* Ends while a thread of its own, which has used MS milliseconds of CPU time, sleeps.  left_thread MS */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "work.h"

static uint64_t ms;
static atomic_int is_done;

static void *work(void *arg)
{
	struct timespec cpu;

	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
	while ((uint64_t)cpu.tv_sec * 1000 + (uint64_t)cpu.tv_nsec / 1000000 < ms);
	is_done = 1;
	for (;;)
		pause();
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	ms = arg_num(argc, argv, 1, 100);
	if (pthread_create(&thread, NULL, work, NULL))
		return 1;
	while (!is_done)
		usleep(1000);
	return 0;
}
