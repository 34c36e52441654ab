/*
 * System calls of ours that would harm the program: it runs under a seccomp filter that kills for them. Written by
 * preload/agent/interpose/confine.c before the filter is in place; read, on any thread, before each such call.
 */
#ifndef CSINK_CALLS_OFF_H
#define CSINK_CALLS_OFF_H

#include <stdbool.h>
#include <stdint.h>

#include "include/internal/base.h"

enum csink_calls {
	CSINK_CALLS_PROBE = 1 << 0,     /* asking whether memory can be read (safe_load.c) */
	CSINK_CALLS_MEMORY = 1 << 1,    /* growing the recording and its index */
	CSINK_CALLS_CLOCK = 1 << 2,     /* CPU clocks */
	CSINK_CALLS_SCAN = 1 << 3,      /* looking for objects that were loaded */
	CSINK_CALLS_PAUSE = 1 << 4,     /* stopping and resuming counters */
	CSINK_CALLS_LIFE = 1 << 5,      /* what start and end of threads and processes take */
	CSINK_CALLS_LOCK = 1 << 8,      /* unlocking our memory after mlockall(2) */
	CSINK_CALLS_RIGHTS = 1 << 9,    /* giving the run to the user that the program becomes */
	CSINK_CALLS_TASK = 1 << 10,     /* stopping and resuming all events of a task */
	CSINK_CALLS_SELF = 1 << 11,     /* asking for the PID, which differs in a vfork child */
	CSINK_CALLS_QUEUE = 1 << 12,    /* sending a signal again with what it had */
	CSINK_CALLS_ARM = 1 << 13,      /* having programs that cannot be injected sampled from outside */
	CSINK_CALLS_LAUNCHER = 1 << 14, /* none of a program's: the launcher's end of the socket */
	CSINK_CALLS_TIME = 1 << 7,      /* not a call: reading the time stamp counter, as the vdso does, is a SIGSEGV */
	CSINK_CALLS_RETURN = 1 << 6, /* rt_sigreturn, the return from a signal handler: no sample can be taken at all */
};

extern volatile uint32_t csink_calls_off CSINK_HIDDEN; /* enum csink_calls; defined in safe_load.c */

static inline bool csink_calls_are_off(uint32_t calls)
{
	return __builtin_expect(csink_calls_off & calls, 0);
}

#endif
