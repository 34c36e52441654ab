/*
 * States of threads: see thread.h. Handed out by the creating thread, used by the thread itself and its handler; the
 * list of all of them is walked by any thread and never shrinks. No lock.
 */
#include "preload/agent/sampler/thread.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>

#include "include/internal/base.h"
#include "include/internal/rawcall.h"
#include "preload/agent/interp/interp.h"
#include "preload/agent/sampler/engine.h"
#include "preload/agent/sampler/plan.h"
#include "preload/agent/sampler/preloaded.h"
#include "preload/agent/sampler/process.h"
#include "preload/agent/sampler/switches.h"
#include "preload/core/calls_off.h"
#include "preload/core/private_memory.h"

enum { SLAB_STATES = 16 };

__thread struct csink_thread *csink_self;

/* Every state ever made, newest first. States are reused and never unlinked, so the list can be walked at any time. */
static struct csink_thread *_Atomic all_states;

/*
 * Those that are free, as a stack. The upper 16 bits of the head count its changes, so that a head that was taken and
 * given back meanwhile is not mistaken for the old one; no user address reaches that far up.
 */
static _Atomic uint64_t free_states;
#define POINTER_BITS 48

static struct csink_thread *pop_free(void)
{
	uint64_t head = atomic_load_explicit(&free_states, memory_order_acquire), next;
	struct csink_thread *thread;

	do {
		thread = (struct csink_thread *)(uintptr_t)(head & ((1ULL << POINTER_BITS) - 1));
		if (!thread)
			return NULL;
		next = (uintptr_t)thread->next_free | ((head >> POINTER_BITS) + 1) << POINTER_BITS;
	} while (!atomic_compare_exchange_weak_explicit(&free_states, &head, next, memory_order_acquire,
							memory_order_acquire));
	return thread;
}

static void push_free(struct csink_thread *thread)
{
	uint64_t head = atomic_load_explicit(&free_states, memory_order_relaxed), now;

	do {
		thread->next_free = (struct csink_thread *)(uintptr_t)(head & ((1ULL << POINTER_BITS) - 1));
		now = (uintptr_t)thread | ((head >> POINTER_BITS) + 1) << POINTER_BITS;
		/* Release: the next owner finds our last stores behind it. */
	} while (!atomic_compare_exchange_weak_explicit(&free_states, &head, now, memory_order_release,
							memory_order_relaxed));
}

/* Counts of threads that have ended, so that sums never go backwards. */
static _Atomic uint64_t ended_cpu_ns;
static _Atomic uint32_t nr_ended;

/*
 * Not static: a search of a program's variables for what still points to a block, as LeakSanitizer's, would
 * find the registers of former samples there.
 */
static struct csink_thread *make_slab(int nr)
{
	struct csink_thread *slab = csink_private_get((size_t)nr * sizeof(*slab)), *head;

	if (!slab)
		return NULL;
	for (int i = 0; i < nr - 1; i++)
		slab[i].next = &slab[i + 1];
	head = atomic_load_explicit(&all_states, memory_order_relaxed);
	do {
		slab[nr - 1].next = head;
	} while (!atomic_compare_exchange_weak_explicit(&all_states, &head, slab, memory_order_release,
							memory_order_relaxed));
	for (int i = 1; i < nr; i++)
		push_free(&slab[i]);
	return slab;
}

struct csink_thread *csink_threads_first(void)
{
	return atomic_load_explicit(&all_states, memory_order_acquire);
}

struct csink_thread *csink_thread_checked(void)
{
	for (struct csink_thread *at = csink_threads_first(); at; at = at->next)
		if (at == csink_self)
			return atomic_load_explicit(&at->state, memory_order_relaxed) != CSINK_THREAD_FREE ? at : NULL;
	return NULL;
}

void csink_thread_enter(struct csink_thread *thread)
{
	thread->tid = (int32_t)csink_rawcall(SYS_gettid);
	csink_self = thread;
}

void csink_thread_opener_stack(struct csink_thread *thread, struct csink_group_open *open)
{
	if (!thread->start)
		return; /* the first thread of an image, or of a forked child */
	open->stack = thread->handler_stack + CSINK_JUMP_STACK;
	open->stack_bytes = CSINK_OPENER_STACK;
}

struct csink_thread *csink_thread_get(void)
{
	struct csink_thread *thread = pop_free();

	/* The first one alone: most programs need no other, and a slab's links would touch all its pages. */
	if (!thread)
		thread = make_slab(csink_threads_first() ? SLAB_STATES : 1);
	if (thread) {
		thread->phase = 0;
		thread->is_in_handler = thread->is_paused = thread->is_stopped_open = thread->program_has_events =
			thread->keeps_rate = false;
		thread->is_armed = csink_self && csink_self->is_armed; /* its creator's: events are inherited */
		thread->nr_phases = 0;
		thread->forked_by = 0;
		thread->engine = CSINK_ENGINE_NONE;
		atomic_store_explicit(&thread->state, CSINK_THREAD_NEW, memory_order_relaxed);
	}
	return thread;
}

void csink_thread_put(struct csink_thread *thread)
{
	atomic_store_explicit(&thread->state, CSINK_THREAD_FREE, memory_order_release);
	push_free(thread);
}

void csink_thread_name(struct csink_thread *thread)
{
	struct csink_rec_thread *entry = thread->entry;

	csink_rawcall(SYS_prctl, PR_GET_NAME, entry->name);
	if (entry == thread->former)
		entry->flags = (entry->flags & ~(uint32_t)CSINK_THREAD_RENAMED) |
			       (memcmp(entry->name, thread->former_name, sizeof(entry->name)) ? CSINK_THREAD_RENAMED
											      : thread->former_flags);
}

static bool new_entry(struct csink_thread *thread)
{
	struct csink_rec_thread *entry = csink_recording_reserve(&csink_own_recording, &thread->writer, sizeof(*entry));

	if (!entry)
		return false;
	thread->entry = entry;
	thread->ref = csink_recording_ref(&csink_own_recording, entry);
	thread->former = NULL;
	thread->former_flags = 0;
	csink_thread_name(thread);
	csink_stack_memo_reset(&thread->memo);
	memset(&thread->timeline, 0, sizeof(thread->timeline));
	return true;
}

/*
 * Programs that start threads all the time would fill any recording: from some size on, an entry and its rows are gone
 * on with. A state belongs to one thread at a time, and so does the entry that it keeps.
 */
static bool is_scarce(const struct csink_recording *rec)
{
	return atomic_load_explicit(&rec->next_block, memory_order_relaxed) >
	       atomic_load_explicit(&rec->limit_blocks, memory_order_relaxed) / CSINK_THREAD_SHARED_FROM;
}

/* The name stays until the thread's own is noted: most have that of the one before, once they have named themselves. */
static void take_former(struct csink_thread *thread)
{
	struct csink_rec_thread *entry = thread->entry = thread->former;
	uint64_t cpu_ns = entry->former_ns = entry->cpu_ns, counted_ns = entry->totals[csink_plan.cpu_event];

	thread->former_flags = entry->flags & CSINK_THREAD_RENAMED;
	memcpy(thread->former_name, entry->name, sizeof(thread->former_name));
	thread->memo.node = 0; /* the latest callers are another thread's */
	entry->nr_former++;
	entry->stolen_ns = cpu_ns && counted_ns > cpu_ns ? counted_ns - cpu_ns : 0;
	__atomic_store_n(&entry->cpu_ns, 0, __ATOMIC_RELEASE); /* stolen_ns is there: readers copy at any time */
}

static bool make_entry(struct csink_thread *thread, uint32_t flags)
{
	csink_writer_adopt(&thread->writer);
	if ((thread->former && is_scarce(&csink_own_recording)) || !new_entry(thread)) {
		if (!thread->former) {
			csink_recording_lose(&csink_own_recording, CSINK_LOSS_THREADS, 1);
			return false;
		}
		take_former(thread);
	}
	thread->entry->tid = thread->tid;
	thread->entry->flags = flags | thread->former_flags;
	csink_recording_commit(thread->entry, sizeof(*thread->entry), CSINK_ENTRY_THREAD, 0);
	return true;
}

bool csink_thread_samples_by(const struct csink_thread *thread, int signo)
{
	return (thread->engine == CSINK_ENGINE_TIMER && signo == csink_engine_state.timer_signo) ||
	       (thread->engine == CSINK_ENGINE_SIGNAL && signo == csink_engine_state.signo);
}

static bool is_queued(const struct csink_thread *thread)
{
	int signo = thread->engine == CSINK_ENGINE_TIMER ? csink_engine_state.timer_signo : csink_engine_state.signo;

	return signo > 0 && thread->hidden.queued >> (signo - 1) & 1 && csink_thread_samples_by(thread, signo);
}

void csink_thread_start(struct csink_thread *thread, uint32_t flags)
{
	CSINK_KEEP_ERRNO;
	int err;

	thread->tid = (int32_t)csink_rawcall(SYS_gettid);
	memset(thread->last, 0, sizeof(thread->last));
	memset(thread->groups, 0, sizeof(thread->groups));
	memset(&thread->switches, 0, sizeof(thread->switches));
	memset(thread->last_enabled_ns, 0, sizeof(thread->last_enabled_ns));
	memset(thread->last_running_ns, 0, sizeof(thread->last_running_ns));
	memset(thread->last_waited_ns, 0, sizeof(thread->last_waited_ns));
	thread->last_row = thread->off_row = (struct csink_row){0};
	csink_interp_room_reset(thread->interp);
	atomic_store_explicit(&thread->remainder, NULL, memory_order_relaxed);
	memset(&thread->stuck, 0, sizeof(thread->stuck));
	if (!make_entry(thread, flags)) {
		thread->engine = CSINK_ENGINE_NONE;
		return;
	}
	csink_objects_thread(thread);
	/* From here on a signal may come. */
	csink_self = thread;
	atomic_store_explicit(&thread->state, CSINK_THREAD_LIVE, memory_order_release);
	thread->cpu_base_ns = flags & CSINK_THREAD_MAIN ? csink_cpu_ns(CLOCK_THREAD_CPUTIME_ID) : 0;
	err = csink_calls_are_off(CSINK_CALLS_RETURN) ? -EPERM : csink_engine_open(thread);
	/* Signals of the program's have come before: see csink_pending_add(). */
	if (CSINK_UNLIKELY(is_queued(thread)))
		csink_engine_pause(thread);
	if (err) {
		thread->engine = CSINK_ENGINE_NONE;
		thread->entry->flags |= CSINK_THREAD_NOT_SAMPLED;
		csink_recording_lose(&csink_own_recording, CSINK_LOSS_THREADS, 1);
	}
	thread->entry->engine = thread->engine;
}

/* Without the threads that had the entry before. */
static uint64_t own_ns(const struct csink_rec_thread *entry)
{
	return entry->cpu_ns > entry->former_ns ? entry->cpu_ns - entry->former_ns : 0;
}

static void finish_entry(struct csink_thread *thread)
{
	struct csink_rec_thread *entry = thread->entry;

	csink_thread_name(thread);
	atomic_fetch_add_explicit(&ended_cpu_ns, own_ns(entry), memory_order_relaxed);
	atomic_fetch_add_explicit(&nr_ended, 1, memory_order_relaxed);
	__atomic_fetch_or(&entry->flags, CSINK_THREAD_ENDED, __ATOMIC_RELEASE);
	/* What could not be sampled, or is the first thread's, is of one thread. */
	thread->former = entry->flags & (CSINK_THREAD_MAIN | CSINK_THREAD_NOT_SAMPLED) ? NULL : entry;
}

void csink_thread_stop(struct csink_thread *thread)
{
	bool mute = false;

	if (csink_engine_ends_at_once(thread)) {
		csink_engine_close(thread);
	} else if (thread->engine == CSINK_ENGINE_TIMER) {
		csink_engine_pause(thread);
	} else {
		csink_thread_mute(thread, true);
		mute = true;
	}
	if (thread->entry && atomic_load_explicit(&csink_process.active, memory_order_relaxed)) {
		csink_thread_flush(thread);
		csink_engine_close(thread);
		finish_entry(thread);
		csink_writer_retire(&thread->writer);
	} else if (mute) {
		csink_engine_close(thread);
	}
	if (mute)
		csink_thread_mute(thread, false);
}

void csink_thread_end(struct csink_thread *thread)
{
	csink_self = NULL;
	thread->entry = NULL;
	thread->allocations = NULL;
	csink_thread_put(thread);
}

void csink_thread_pause(struct csink_thread *thread)
{
	csink_engine_pause(thread);
}

/* Does no filter kill for opening the groups again, or setting the timer? */
static bool may_resume(const struct csink_thread *thread)
{
	if (!csink_calls_are_off(CSINK_CALLS_LIFE))
		return true;
	return thread->engine == CSINK_ENGINE_TIMER ? !csink_calls_are_off(CSINK_CALLS_PAUSE) : thread->is_stopped_open;
}

void csink_thread_resume(struct csink_thread *thread)
{
	if (CSINK_UNLIKELY(is_queued(thread)))
		return;
	if (csink_calls_are_off(CSINK_CALLS_RETURN))
		return;
	if (thread->engine != CSINK_ENGINE_NONE && !may_resume(thread)) {
		thread->engine = CSINK_ENGINE_NONE;
		csink_recording_lose(&csink_own_recording, CSINK_LOSS_STUCK, 1);
		return;
	}
	csink_engine_resume(thread);
}

void csink_thread_mute(struct csink_thread *thread, bool mute)
{
	if (mute)
		csink_engine_hold(thread);
	atomic_signal_fence(memory_order_seq_cst); /* what was done mute is done before its end ... */
	atomic_store_explicit(&thread->is_mute, mute, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst); /* ... and after its beginning */
	if (!mute)
		csink_engine_release(thread);
}

/* Counts now, of a thread other than the caller only the CPU clock is known. */
static void counts_now(const struct csink_thread *thread, uint64_t cpu_ns, bool is_self, uint64_t *counts)
{
	for (uint32_t i = 0; i < csink_plan.nr_events; i++) {
		const struct csink_rec_event *event = &csink_plan.events[i].rec;
		const struct csink_group *group = &thread->groups[csink_plan.group_of[i]];

		counts[i] = thread->last[i];
		if (event->flags & CSINK_EVENT_CPU_NS)
			counts[i] = CSINK_MAX(counts[i], cpu_ns - thread->cpu_base_ns);
		else if (is_self && csink_group_page_count(group, i) > counts[i])
			counts[i] = csink_group_page_count(group, i);
	}
}

void csink_thread_flush(struct csink_thread *thread)
{
	uint64_t cpu_ns = csink_cpu_ns(CLOCK_THREAD_CPUTIME_ID);
	uint64_t counts[CSINK_MAX_EVENTS], weights[CSINK_MAX_EVENTS], any = 0;

	if (!thread->entry)
		return;
	csink_engine_refresh(thread, false);
	counts_now(thread, cpu_ns, true, counts);
	for (uint32_t i = 0; i < csink_plan.nr_events; i++) {
		weights[i] = counts[i] - thread->last[i];
		thread->last[i] = counts[i];
		if (i == csink_plan.off_cpu_event)
			weights[i] = csink_switches_take(thread);
		any |= weights[i];
	}
	if (any)
		csink_sample_remainder(thread, weights);
	thread->entry->cpu_ns = cpu_ns ? thread->entry->former_ns + cpu_ns - thread->cpu_base_ns : 0;
	csink_objects_take();
}

/* The kernel's clock of any thread of ours: see clock_gettime(2) and the kernel's CPUCLOCK_ macros. */
static clockid_t thread_clock(int32_t tid)
{
	return (clockid_t)(~(uint32_t)tid << 3 | 6);
}

/* The thread may end meanwhile: its entry stays in the recording, but thread->entry does not stay what it was. */
static void flush_other(struct csink_thread *thread, struct csink_rec_thread *entry, struct csink_writer *writer)
{
	uint64_t cpu_ns = csink_cpu_ns(thread_clock(thread->tid));
	uint64_t counts[CSINK_MAX_EVENTS], weights[CSINK_MAX_EVENTS], any = 0;
	uint32_t bytes = (uint32_t)sizeof(struct csink_rec_row) + csink_plan.nr_events * 8;
	struct csink_rec_row *row;

	if (!cpu_ns)
		return;
	/* Also where nothing is left to flush: without events, or where the event's clock is ahead of this one. */
	entry->cpu_ns = entry->former_ns + cpu_ns - thread->cpu_base_ns;
	counts_now(thread, cpu_ns, false, counts);
	for (uint32_t i = 0; i < csink_plan.nr_events; i++) {
		weights[i] = counts[i] - thread->last[i];
		/* A sample that the thread takes meanwhile must not come out negative. */
		if ((int64_t)weights[i] < 0)
			weights[i] = 0;
		if (i == csink_plan.off_cpu_event)
			weights[i] = csink_switches_open_ns(thread, cpu_ns);
		any |= weights[i];
	}
	/* Its rows are its own to write: the remainder gets a row of its own, that the index does not know. */
	row = atomic_load_explicit(&thread->remainder, memory_order_relaxed);
	if (row) { /* a second end of the same image */
		memcpy(row->weights, weights, csink_plan.nr_events * sizeof(*weights));
		return;
	}
	row = any ? csink_recording_reserve(&csink_own_recording, writer, bytes) : NULL;
	if (!row)
		return;
	row->thread = thread->ref;
	memcpy(row->weights, weights, csink_plan.nr_events * sizeof(*weights));
	csink_recording_commit(row, bytes, CSINK_ENTRY_ROW, 0);
	atomic_store_explicit(&thread->remainder, row, memory_order_release);
}

/* What another thread may look at: it is NULL from the thread's end on. */
static struct csink_rec_thread *entry_of(struct csink_thread *thread)
{
	return atomic_load_explicit(&thread->state, memory_order_acquire) == CSINK_THREAD_LIVE
		       ? __atomic_load_n(&thread->entry, __ATOMIC_RELAXED)
		       : NULL;
}

void csink_threads_flush_others(void)
{
	struct csink_thread *thread = atomic_load_explicit(&all_states, memory_order_acquire);
	struct csink_writer writer = {0, 0};

	for (; thread; thread = thread->next) {
		struct csink_rec_thread *entry = thread == csink_self ? NULL : entry_of(thread);

		if (entry) {
			flush_other(thread, entry, &writer);
			csink_objects_give(thread);
		}
	}
}

void csink_thread_unflush(struct csink_thread *thread)
{
	struct csink_rec_row *row = atomic_exchange_explicit(&thread->remainder, NULL, memory_order_acquire);

	if (row)
		memset(row->weights, 0, csink_plan.nr_events * sizeof(*row->weights));
}

void csink_threads_unflush_others(void)
{
	csink_objects_take_back();
	for (struct csink_thread *thread = csink_threads_first(); thread; thread = thread->next)
		if (thread != csink_self)
			csink_thread_unflush(thread);
}

void csink_threads_reset(void)
{
	struct csink_thread *thread = atomic_load_explicit(&all_states, memory_order_acquire);

	atomic_store_explicit(&ended_cpu_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&nr_ended, 0, memory_order_relaxed);
	for (; thread; thread = thread->next) {
		memset(thread->groups, 0, sizeof(thread->groups)); /* perf's mappings are not inherited */
		memset(&thread->switches, 0, sizeof(thread->switches));
		thread->writer.pos = thread->writer.end = 0;
		thread->entry = thread->former = NULL;
		if (thread != csink_self)
			thread->allocations = NULL;
		if (thread != csink_self && atomic_load(&thread->state) != CSINK_THREAD_FREE)
			csink_thread_put(thread);
	}
}

uint64_t csink_threads_cpu_ns(uint32_t *nr_threads)
{
	uint64_t sum = atomic_load_explicit(&ended_cpu_ns, memory_order_relaxed);

	*nr_threads = atomic_load_explicit(&nr_ended, memory_order_relaxed);
	for (struct csink_thread *thread = csink_threads_first(); thread; thread = thread->next) {
		const struct csink_rec_thread *entry = entry_of(thread);

		if (!entry)
			continue;
		sum += own_ns(entry);
		++*nr_threads;
	}
	return sum;
}
