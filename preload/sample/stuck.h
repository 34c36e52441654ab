/*
 * A thread that its own samples keep from running: the event happens in the handler, or on the way out of it, so that
 * the next signal is there before the program has executed anything (every cycle that is a sample; every system call,
 * for the handler's return is one). Such a thread cannot even be ended but by SIGKILL. It is seen by the interrupted
 * registers, which stay the same, and by overflows that come as soon as the handler has left; then the thread's events
 * are stopped, which is counted (CSINK_LOSS_STUCK).
 *
 * Written and read by the thread's own signal handler.
 */
#ifndef CSINK_SAMPLE_STUCK_H
#define CSINK_SAMPLE_STUCK_H

#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

#include "include/internal/base.h"
#include "preload/sample/unwind.h"

struct csink_stuck {
	uint64_t pc, sp; /* of the last sample */
	uint64_t sum;    /* of all of its registers */
	uint64_t left_ns;
	uint32_t nr;       /* samples in a row that found the same, at once */
	uint32_t unheeded; /* signals for nothing */
};

/**
 * After a signal that could not be made a sample of, as the thread's counters are only being opened: is it stuck?
 * Context: signal.
 */
bool csink_stuck_unheeded(struct csink_stuck *stuck);

/** Look closer. As csink_stuck_watch. */
bool csink_stuck_look(struct csink_stuck *stuck, const ucontext_t *uc, uint64_t overflow_ns);

/**
 * At the end of a sample: is the thread stuck?
 * @overflow_ns  when the event overflowed, on CLOCK_MONOTONIC.
 * Where the interrupted place changes from sample to sample, as it nearly always does, this is two comparisons.
 * Context: signal.
 */
static inline bool csink_stuck_watch(struct csink_stuck *stuck, const ucontext_t *uc, uint64_t overflow_ns)
{
	uint64_t pc = csink_context_pc(uc), sp = csink_context_sp(uc);

	if (CSINK_LIKELY(pc != stuck->pc || sp != stuck->sp)) {
		stuck->pc = pc;
		stuck->sp = sp;
		stuck->nr = 0;
		return false;
	}
	return csink_stuck_look(stuck, uc, overflow_ns);
}

#endif
