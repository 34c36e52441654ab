/*
 * The process that is profiled, and its recording. Written by the constructor, and again in a forked child, before the
 * first sample; read by every thread and by the handler. What changes later is atomic. What is counted is in plan.h,
 * how samples are raised in engine.h.
 */
#ifndef CSINK_PROCESS_H
#define CSINK_PROCESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "include/internal/base.h"
#include "preload/core/record/recording.h"

struct csink_process {
	/* Samples are taken: 0 before the constructor, after a failure, and after the last flush. */
	_Atomic uint32_t active;
	pid_t pid;
	bool is_traced;             /* it started under a debugger */
	atomic_flag is_start_noted; /* the recording has why programs that it started are not sampled */
};

extern struct csink_process csink_process CSINK_HIDDEN;

/* The recording that this process writes. */
extern struct csink_recording csink_own_recording CSINK_HIDDEN;

/** Monotonic time in ns. Context: any (the vdso, no syscall). */
uint64_t csink_now_ns(void);

/** CPU time of a clock in ns, 0 if it cannot be read. Context: any (a syscall). */
uint64_t csink_cpu_ns(clockid_t clock);

#endif
