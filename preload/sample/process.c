#include "preload/sample/process.h"

#include <errno.h>
#include <time.h>

#include "include/internal/base.h"

struct csink_process csink_process;

static uint64_t read_clock(clockid_t clock)
{
	struct timespec at;
	int saved = errno;
	uint64_t ns = 0;

	if (clock_gettime(clock, &at) == 0)
		ns = (uint64_t)at.tv_sec * CSINK_NS_PER_S + (uint64_t)at.tv_nsec;
	errno = saved;
	return ns;
}

uint64_t csink_now_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

uint64_t csink_cpu_ns(clockid_t clock)
{
	return read_clock(clock);
}
