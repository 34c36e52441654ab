/* The state of the process, and its clocks: see process.h and plan.h. Any thread, async-signal-safe. */
#include "preload/agent/sampler/process.h"

#include <time.h>

#include "include/internal/base.h"
#include "include/internal/clock.h"
#include "include/internal/rawcall.h"
#include "preload/agent/sampler/plan.h"
#include "preload/core/calls_off.h"

struct csink_process csink_process;
struct csink_recording csink_own_recording;
struct csink_plan csink_plan;

static uint64_t ask_kernel(clockid_t clock)
{
	struct timespec at;

	return csink_rawcall(SYS_clock_gettime, clock, &at)
		       ? 0
		       : (uint64_t)at.tv_sec * CSINK_NS_PER_S + (uint64_t)at.tv_nsec;
}

uint64_t csink_now_ns(void)
{
	if (csink_calls_are_off(CSINK_CALLS_TIME) && csink_calls_are_off(CSINK_CALLS_CLOCK))
		return csink_own_recording.header ? csink_own_recording.header->end_monotonic_ns : 0;
	/* The kernel's own reading of the clock does not fault. */
	return csink_calls_are_off(CSINK_CALLS_TIME) ? ask_kernel(CLOCK_MONOTONIC) : csink_monotonic_ns();
}

uint64_t csink_cpu_ns(clockid_t clock)
{
	return csink_calls_are_off(CSINK_CALLS_CLOCK) ? 0 : ask_kernel(clock);
}
