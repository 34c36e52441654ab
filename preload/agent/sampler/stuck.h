/*
 * A thread that its own samples keep from running. Two ways lead there:
 *
 * - The event happens in the handler, or on the way out of it, so that the next signal is there before the program has
 *   executed anything (every cycle that is a sample; every system call, for the handler's return is one). Such a thread
 *   cannot even be ended but by SIGKILL. It is seen by the interrupted registers, which stay the same, and by overflows
 *   that come as soon as the handler has left.
 * - The period is so short, or a sample so slow (a slow machine, a tracer), that hardly any time is left between two.
 *   That is seen by looking now and then at the time from an overflow to the end of its handler, and from there to the
 *   next overflow; where the first is nearly all of it, the next samples are looked at one after another. A single look
 *   may meet a thread that was switched away; that nearly all of them do, no busy machine brings about.
 *
 * Of the latter, the kernel stops what comes much too often by itself, but counts nothing until it lets it go on.
 *
 * What is done about it is the caller's: fewer samples (csink_engine_slow_down), or none.
 *
 * Written and read by the thread's own signal handler.
 */
#ifndef CSINK_STUCK_H
#define CSINK_STUCK_H

#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

#include "include/internal/base.h"
#include "preload/agent/unwind/unwind.h"

struct csink_stuck {
	uint64_t pc, sp; /* of the last sample */
	uint64_t sum;    /* of all of its registers */
	uint64_t left_ns;
	uint32_t nr;          /* samples in a row that found the same, at once */
	uint32_t nr_spurious; /* signals for nothing */

	uint32_t left_out;   /* samples until one is looked at */
	uint32_t nr_looks;   /* of the current window */
	uint32_t nr_crowded; /* of those, where the program had next to no time */
	uint32_t nr_throttled;
	bool is_looking; /* the last sample was taken note of: */
	uint64_t overflow_ns, end_ns;
};

/**
 * After a signal that could not be made a sample of, as the thread's counters are only being opened: is it stuck?
 * Context: signal.
 */
bool csink_stuck_spurious(struct csink_stuck *stuck);

/**
 * The kernel has stopped an event until the next tick, since it overflows too often. What happens meanwhile it does not
 * count, so that weights come out too small: are fewer samples due? Context: signal.
 */
bool csink_stuck_throttled(struct csink_stuck *stuck, uint64_t times);

/** Look closer. As csink_stuck_watch. */
bool csink_stuck_same_place(struct csink_stuck *stuck, const ucontext_t *uc, uint64_t overflow_ns);
bool csink_stuck_no_time(struct csink_stuck *stuck, uint64_t overflow_ns);

/**
 * At the end of a handler that took samples: is the thread stuck? If so, the next answer takes long.
 * @overflow_ns  when the event overflowed, on CLOCK_MONOTONIC.
 * Where the interrupted place changes from sample to sample, as it nearly always does, this is three comparisons.
 * Context: signal.
 */
static inline bool csink_stuck_watch(struct csink_stuck *stuck, const ucontext_t *uc, uint64_t overflow_ns)
{
	uint64_t pc = csink_context_pc(uc), sp = csink_context_sp(uc);
	bool is_stuck = false;

	if (CSINK_LIKELY(pc != stuck->pc || sp != stuck->sp)) {
		stuck->pc = pc;
		stuck->sp = sp;
		stuck->nr = 0;
	} else {
		is_stuck = csink_stuck_same_place(stuck, uc, overflow_ns);
	}
	if (CSINK_UNLIKELY(stuck->left_out-- == 0))
		is_stuck |= csink_stuck_no_time(stuck, overflow_ns);
	return is_stuck;
}

#endif
