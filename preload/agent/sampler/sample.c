/*
 * What runs when a counter overflows: read the counts, walk the stack, add the weights to a row. Everything here and
 * everything it calls is handler-safe: no lock, no malloc, no stdio, no loader, no syscall on the way through.
 */
#include <string.h>

#include "include/internal/base.h"
#include "preload/agent/sampler/engine.h"
#include "preload/agent/sampler/housekeeping.h"
#include "preload/agent/sampler/phases.h"
#include "preload/agent/sampler/plan.h"
#include "preload/agent/sampler/process.h"
#include "preload/agent/sampler/switches.h"
#include "preload/agent/sampler/thread.h"
#include "preload/agent/unwind/jit_objects.h"
#include "preload/core/calls_off.h"

#ifndef TRAP_PERF
#define TRAP_PERF 6
#endif

/* The recording has one writer for each field; the launcher may look at any time. */
static inline void add_relaxed(uint64_t *to, uint64_t n)
{
	__atomic_store_n(to, __atomic_load_n(to, __ATOMIC_RELAXED) + n, __ATOMIC_RELAXED);
}

/* The thread's own counts; what no row has taken is counted as lost. */
static void credit(struct csink_thread *thread, struct csink_row row, const uint64_t *weights, uint64_t nr)
{
	uint32_t nr_events = csink_plan.nr_events;

	add_relaxed(&thread->entry->nr_samples, nr);
	for (uint32_t i = 0; i < nr_events; i++)
		add_relaxed(&thread->entry->totals[i], weights[i]);
	if (CSINK_LIKELY(row.ref))
		return;
	csink_recording_lose(&csink_own_recording, CSINK_LOSS_RECORDING_FULL, nr ? nr : 1);
	for (uint32_t i = 0; i < nr_events; i++)
		__atomic_fetch_add(&csink_own_recording.header->unstored[i], weights[i], __ATOMIC_RELAXED);
}

/* What a walk that did not come to the thread's first frame is counted as. */
static const uint8_t loss_of_end[CSINK_WALK_NR_ENDS] = {
	[CSINK_WALK_DEPTH] = CSINK_LOSS_DEPTH,
	[CSINK_WALK_NO_CFI] = CSINK_LOSS_NO_CFI,
	[CSINK_WALK_BAD_STACK] = CSINK_LOSS_BAD_STACK,
	[CSINK_WALK_RULES] = CSINK_LOSS_RULES,
};

/* An object that came since the last look, perhaps to where another one was: look before its name is needed. */
static inline void look_for_object(struct csink_thread *thread, uint64_t pc)
{
	if (CSINK_UNLIKELY(!csink_modules_current(pc, &thread->leaf_module)))
		csink_modules_refresh_at(pc, &thread->leaf_module, &csink_own_recording, &thread->writer,
					 csink_now_ns());
}

/*
 * Of a stack in code of no object, as just-in-time compilers make it: looks for new objects (for the caller's, if the
 * leaf @is_in_none: the memo of a leaf in an object stays) and for code that is registered. Returns whether the walk is
 * to be made again: the code is registered, or a new object has an interpreter.
 */
static CSINK_RARE bool finds_more(struct csink_thread *thread, const struct csink_walk *walk, uint64_t leaf,
				  bool is_in_none, bool is_jit)
{
	if (is_in_none && !csink_interp_nr && walk->nr_frames)
		look_for_object(thread, walk->frames[0] & ~CSINK_FRAME_EXACT);
	return (is_jit && csink_jit_check(walk, leaf, &csink_own_recording, &thread->writer)) |
	       (!walk->keep_cfas && csink_interp_nr);
}

/* Add weights to the row of the stack that was interrupted, @nr_kept to its number of samples. */
static struct csink_row add_stack(struct csink_thread *thread, const ucontext_t *uc, const uint64_t *weights,
				  uint64_t nr, uint64_t nr_kept)
{
	struct csink_walk walk = {.stack = &thread->stack,
				  .frames = thread->frames,
				  .max_frames = csink_plan.max_depth,
				  .memo = &thread->walk_memo,
				  .end = CSINK_WALK_COMPLETE};
	struct csink_sample sample = {.thread = thread->ref,
				      .phase = csink_phase_now(thread),
				      .leaf = csink_context_pc(uc),
				      .memo = &thread->memo};
	bool is_jit, is_in_none;

	look_for_object(thread, sample.leaf);
	walk.keep_cfas = csink_interp_nr != 0;
	sample.epoch_ns = csink_modules_epoch_ns();
	if (csink_plan.walk && CSINK_LIKELY(sample.phase != CSINK_PHASE_OFF))
		csink_plan.walk(&walk, uc);
	if (CSINK_UNLIKELY(!csink_plan.walk))
		csink_jit_meet(); /* nothing is known of the code that runs */
	is_jit = csink_jit_may_name() && sample.phase != CSINK_PHASE_OFF;
	is_in_none = sample.leaf - thread->leaf_module.start >= thread->leaf_module.end - thread->leaf_module.start;
	if (CSINK_UNLIKELY(is_jit | (is_in_none & !walk.keep_cfas)) &&
	    finds_more(thread, &walk, sample.leaf, is_in_none, is_jit) && csink_plan.walk) {
		walk.keep_cfas = csink_interp_nr != 0;
		walk.frames = thread->frames;
		walk.end = CSINK_WALK_COMPLETE;
		csink_plan.walk(&walk, uc);
	}
	/* A walk that ends at code made at run time may have no frames, while the interpreter has. */
	if (CSINK_UNLIKELY(walk.keep_cfas) && (walk.nr_frames || walk.end != CSINK_WALK_COMPLETE))
		csink_interp_merge(&walk, uc, &thread->interp, &csink_own_recording, &thread->writer);
	if (CSINK_UNLIKELY(is_jit) && csink_interp_has_room(&thread->interp))
		csink_jit_name(&walk, sample.leaf, &csink_own_recording, thread->interp->merged);
	sample.frames = walk.frames;
	sample.nr_frames = walk.nr_frames;
	sample.same = walk.same;
	if (CSINK_UNLIKELY(walk.end != CSINK_WALK_COMPLETE)) {
		sample.chain_flags = walk.end == CSINK_WALK_DEPTH ? CSINK_CHAIN_TRUNCATED : CSINK_CHAIN_BROKEN;
		csink_recording_lose(&csink_own_recording, loss_of_end[walk.end], nr);
	}
	return csink_stacks_add(&csink_own_recording, &thread->writer, &sample, weights, nr_kept);
}

static inline void keep_moment(struct csink_thread *thread, struct csink_row row, uint32_t event, uint64_t weight,
			       uint64_t time_ns)
{
	if (CSINK_UNLIKELY(csink_plan.timeline) && row.ref &&
	    !csink_timeline_add(&thread->timeline, &csink_own_recording, &thread->writer, thread->ref, row.ref, event,
				weight, time_ns))
		csink_recording_lose(&csink_own_recording, CSINK_LOSS_MOMENTS, 1);
}

static void store(struct csink_thread *thread, const ucontext_t *uc, const uint64_t *weights, uint64_t nr,
		  uint32_t event, uint64_t time_ns)
{
	thread->last_row = add_stack(thread, uc, weights, nr, nr);
	credit(thread, thread->last_row, weights, nr);
	keep_moment(thread, thread->last_row, event, weights[event], time_ns);
}

static void credit_remainder(struct csink_thread *thread, struct csink_row row, const uint64_t *weights)
{
	uint64_t start = (uintptr_t)thread->start | CSINK_FRAME_EXACT;
	struct csink_sample nowhere = {.thread = thread->ref,
				       .phase = csink_phase_now(thread),
				       .epoch_ns = csink_modules_epoch_ns(),
				       .frames = &start,
				       .memo = &thread->memo};

	if (row.ref) {
		row = csink_row_add(&csink_own_recording, &thread->writer, row, thread->ref, weights, 0);
	} else if (thread->start) {
		/* Never sampled: all that is known is what the thread was started for. */
		nowhere.nr_frames = 1;
		row = csink_stacks_add(&csink_own_recording, &thread->writer, &nowhere, weights, 0);
	} else {
		row = csink_row_alone(&csink_own_recording, &thread->writer, thread->ref, nowhere.phase, weights);
		thread->last_row = row; /* for the next one, should the program go on */
	}
	credit(thread, row, weights, 0);
}

void csink_sample_remainder(struct csink_thread *thread, const uint64_t *weights)
{
	uint64_t off[CSINK_MAX_EVENTS] = {0}, on[CSINK_MAX_EVENTS], any = 0;

	for (uint32_t i = 0; i < csink_plan.nr_events; i++) {
		on[i] = i == csink_plan.off_cpu_event ? 0 : weights[i];
		off[i] = weights[i] - on[i];
		any |= on[i];
	}
	if (any)
		credit_remainder(thread, thread->last_row, on);
	if (csink_plan.off_cpu_event < csink_plan.nr_events && off[csink_plan.off_cpu_event])
		credit_remainder(thread, thread->off_row, off);
}

struct csink_row csink_sample_apart(struct csink_thread *thread, const ucontext_t *uc, const uint64_t *weights)
{
	struct csink_row row = add_stack(thread, uc, weights, 1, 0);

	credit(thread, row, weights, 0);
	return row;
}

/* The thread is back from where it blocked: this is the stack that did. */
static void on_switch(struct csink_thread *thread, const ucontext_t *uc)
{
	uint64_t weights[CSINK_MAX_EVENTS] = {0};
	struct csink_group_read read;

	if (!csink_group_drain(&thread->switches, &read))
		return;
	weights[csink_plan.off_cpu_event] = csink_switches_take(thread);
	thread->off_row = csink_sample_apart(thread, uc, weights);
	keep_moment(thread, thread->off_row, csink_plan.off_cpu_event, weights[csink_plan.off_cpu_event], read.time_ns);
}

/*
 * The thread gets nowhere for samples: fewer of them. If that cannot be, none; its time goes on being accounted, by the
 * kernel.
 */
static __attribute__((noinline, cold)) void sample_less(struct csink_thread *thread, uint32_t g, bool throttled,
							void *context)
{
	memset(&thread->stuck, 0, sizeof(thread->stuck));
	if (csink_engine_slow_down(thread, g, throttled, context) == 0)
		return;
	if (!csink_calls_are_off(CSINK_CALLS_PAUSE))
		csink_engine_pause(thread);
	csink_recording_lose(&csink_own_recording, CSINK_LOSS_STUCK, 1);
}

/*
 * The kernel had no room for samples, or stopped the event. Returns true if that happens too often at a fixed period;
 * with a frequency, the kernel adapts by itself.
 */
static __attribute__((noinline, cold)) bool note_losses(struct csink_thread *thread, uint32_t g,
							const struct csink_group_read *read)
{
	if (read->lost)
		csink_recording_lose(&csink_own_recording, CSINK_LOSS_RING, read->lost);
	if (read->throttled)
		csink_recording_lose(&csink_own_recording, CSINK_LOSS_THROTTLED, read->throttled);
	/* A lost record may have been a PERF_RECORD_THROTTLE. */
	return !csink_plan.events[thread->groups[g].leader].attr.freq &&
	       csink_stuck_throttled(&thread->stuck, read->throttled + !!read->lost);
}

/* Returns when the group overflowed, in ns; 0 if it did not. */
static uint64_t on_overflow(struct csink_thread *thread, uint32_t g, const ucontext_t *uc, bool *throttled)
{
	struct csink_group_read read;
	uint64_t weights[CSINK_MAX_EVENTS];
	bool overflowed = csink_group_drain(&thread->groups[g], &read);
	uint32_t leader;

	if (CSINK_UNLIKELY(read.lost | read.throttled))
		*throttled |= note_losses(thread, g, &read);
	if (!overflowed)
		return 0;
	leader = thread->groups[g].leader;
	csink_sample_weigh(thread, g, &read, weights);
	csink_housekeeping_poll(read.time_ns);
	store(thread, uc, weights, read.nr_overflows, leader, read.time_ns);
	return read.time_ns;
}

/* With a budget: what the sample took goes to the account, and a thread takes the rate that is set for all. */
static __attribute__((noinline, cold)) void keep_budget(struct csink_thread *thread, uint64_t overflow_ns)
{
	uint64_t end_ns = csink_now_ns(), cpu_ns = thread->entry->totals[csink_plan.cpu_event];

	/* Less than before: it is a forked child's first, or what another thread gave it was taken back. And a rate
	 * that the thread cannot take is not judged by it. */
	if (cpu_ns >= thread->governed_ns && end_ns > overflow_ns && !thread->keeps_rate)
		csink_housekeeping_account(end_ns - overflow_ns, cpu_ns - thread->governed_ns);
	thread->governed_ns = cpu_ns;
	csink_engine_keep_rate(thread);
}

/* Whichever overflowed: a signal may stand for several groups. Returns false if none did. */
static bool on_overflows(struct csink_thread *thread, ucontext_t *uc)
{
	uint64_t first_ns = UINT64_MAX;
	bool throttled = false;
	uint32_t last = 0;

	for (uint32_t g = 0; g < csink_plan.nr_groups; g++) {
		uint64_t overflow_ns = on_overflow(thread, g, uc, &throttled);

		if (!overflow_ns)
			continue;
		first_ns = CSINK_MIN(first_ns, overflow_ns);
		last = g;
	}
	if (first_ns == UINT64_MAX)
		return false;
	if (CSINK_UNLIKELY(csink_stuck_watch(&thread->stuck, uc, first_ns) | throttled))
		sample_less(thread, last, throttled, uc);
	else if (CSINK_UNLIKELY(csink_plan.budget))
		keep_budget(thread, first_ns);
	return true;
}

/*
 * No samples are taken yet, or any more; but the thread must get on all the same. It may not even have a place in the
 * recording, and its groups may only be on the way.
 */
static __attribute__((noinline, cold)) void on_early_overflows(struct csink_thread *thread, ucontext_t *uc)
{
	bool is_live = atomic_load_explicit(&thread->state, memory_order_relaxed) == CSINK_THREAD_LIVE &&
		       csink_own_recording.header;
	bool heeded = false, throttled = false, is_stuck = false;
	struct csink_group_read read;

	for (uint32_t g = 0; g < csink_plan.nr_groups && is_live; g++) {
		heeded |= csink_group_drain(&thread->groups[g], &read);
		if (read.nr_overflows)
			is_stuck |= csink_stuck_watch(&thread->stuck, uc, read.time_ns);
		if (read.lost | read.throttled)
			throttled |= note_losses(thread, g, &read);
	}
	if (!heeded)
		is_stuck |= csink_stuck_spurious(&thread->stuck);
	if (!is_stuck && !throttled)
		return;
	if (is_live)
		sample_less(thread, CSINK_MAX_EVENTS, throttled, uc);
	else
		csink_engine_block_in(uc); /* its end, or the exec, unblocks them */
}

/* The kernel's timers on CPU clocks fire on the tick: one signal may stand for many periods; si_overrun has their
 * number. */
static void on_timer(struct csink_thread *thread, const siginfo_t *info, ucontext_t *uc)
{
	uint64_t nr = 1 + (uint64_t)(info->si_overrun > 0 ? info->si_overrun : 0);
	uint64_t weights[CSINK_MAX_EVENTS] = {0};
	uint64_t now = csink_now_ns();

	weights[csink_plan.cpu_event] = nr * thread->timer_period_ns;
	thread->last[csink_plan.cpu_event] += nr * thread->timer_period_ns;
	if (CSINK_UNLIKELY(atomic_load_explicit(&thread->remainder, memory_order_relaxed) != NULL))
		csink_thread_unflush(thread);
	csink_housekeeping_poll(now);
	store(thread, uc, weights, 1, csink_plan.cpu_event, now);
	if (CSINK_UNLIKELY(csink_plan.budget))
		keep_budget(thread, now);
}

/* Which event raised a SIGTRAP: attr.sig_data, si_perf_data in newer headers. */
static uint64_t trap_data(const siginfo_t *info)
{
	return *(const unsigned long *)((const char *)&info->si_addr + sizeof(void *));
}

bool csink_sample_is_ours(int signo, const siginfo_t *info)
{
	/* The program may have such events of its own. */
	if (signo == SIGTRAP)
		return info->si_code == TRAP_PERF && trap_data(info) == CSINK_GROUP_SIG_DATA;
	if (info->si_code == SI_TIMER)
		return signo == csink_engine_state.timer_signo && info->si_value.sival_ptr == &csink_process;
	if (signo == SIGIO && info->si_code == SI_KERNEL) /* sent where the queue of real-time signals is full */
		return csink_engine_state.signo > 0 && csink_engine_state.signo != SIGTRAP;
	/* F_SETSIG: the kernel fills in POLL_ codes; a program's kill, tgkill or sigqueue is never positive, and its
	 * setitimer's are SI_KERNEL. */
	return info->si_code >= POLL_IN && info->si_code <= POLL_HUP;
}

/* What the end of the handler reads, fetched while its beginning works. */
static inline void prefetch_memo(const struct csink_thread *thread)
{
	const char *at = (const char *)&thread->memo;

	for (int line = 0; line < 6; line++)
		__builtin_prefetch(at + 64 * line);
	__builtin_prefetch(csink_recording_at(&csink_own_recording, thread->last_row.ref));
}

void csink_sample_handler(int signo, siginfo_t *info, void *context)
{
	CSINK_KEEP_ERRNO;
	struct csink_thread *thread = csink_self;
	bool heeded = false;

	(void)signo;
	if (CSINK_UNLIKELY(!thread))
		return;
	/* Not active yet, or not any more; or a signal that was left over from an engine that has been given up. */
	if (CSINK_UNLIKELY(!atomic_load_explicit(&csink_process.active, memory_order_relaxed) ||
			   atomic_load_explicit(&thread->state, memory_order_relaxed) != CSINK_THREAD_LIVE ||
			   atomic_load_explicit(&thread->is_mute, memory_order_relaxed))) {
		if (info->si_code != SI_TIMER)
			on_early_overflows(thread, context);
		return;
	}
	prefetch_memo(thread);
	if (info->si_code == SI_TIMER)
		on_timer(thread, info, context);
	else
		heeded = on_overflows(thread, context);
	if (CSINK_UNLIKELY(csink_group_is_open(&thread->switches))) {
		if (!csink_calls_are_off(CSINK_CALLS_CLOCK))
			on_switch(thread, context);
	} else if (CSINK_UNLIKELY(!heeded && info->si_code != SI_TIMER) && csink_stuck_spurious(&thread->stuck)) {
		sample_less(thread, CSINK_MAX_EVENTS, false, context);
	}
}
