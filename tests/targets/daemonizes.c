/* Works, becomes a daemon by daemon(3), works on, and writes a file at its end. usage: daemonizes MS FILE */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static volatile uint64_t sink;

static int64_t cpu_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static __attribute__((noinline)) void before_daemon(int64_t ms)
{
	for (int64_t end = cpu_ms() + ms; cpu_ms() < end;)
		for (int i = 0; i < 20000; i++)
			sink += sink * 31 + 1;
}

static __attribute__((noinline)) void in_daemon(int64_t ms)
{
	for (int64_t end = cpu_ms() + ms; cpu_ms() < end;)
		for (int i = 0; i < 20000; i++)
			sink += sink * 37 + 1;
}

int main(int argc, char **argv)
{
	int64_t ms = argc > 1 ? atoi(argv[1]) : 50;

	before_daemon(ms);
	if (daemon(1, 1))
		return 1;
	in_daemon(ms);
	return argc > 2 && creat(argv[2], 0666) < 0;
}
