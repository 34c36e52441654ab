/* See preloaded.h. Samples come from any thread, in its own call of the allocator or of a lock. */
#include "preload/agent/sampler/preloaded.h"

#include <signal.h>
#include <stdbool.h>

#include "include/internal/alloc_object.h"
#include "include/internal/base.h"
#include "include/internal/lock_object.h"
#include "preload/agent/sampler/call_on_stack.h"
#include "preload/agent/sampler/engine.h"
#include "preload/agent/sampler/plan.h"
#include "preload/agent/sampler/process.h"
#include "preload/agent/sampler/thread.h"
#include "preload/core/calls_off.h"
#include "preload/core/safe_load.h"

#pragma weak csink_alloc_object
#pragma weak csink_lock_object

static uint64_t given[2]; /* of other threads, at an end */
static bool in_use_is_there;

static bool has_alloc(void)
{
	return &csink_alloc_object != NULL;
}

static bool has_lock(void)
{
	return &csink_lock_object != NULL;
}

/* The first of the events of locks; those of allocations begin at csink_plan.nr_opened. */
static uint32_t lock_events(void)
{
	return csink_plan.nr_opened + (has_alloc() ? CSINK_ALLOC_NR_EVENTS : 0);
}

bool csink_objects_have(uint32_t object)
{
	return object ? has_lock() : has_alloc();
}

uint32_t csink_objects_nr_events(void)
{
	return (has_alloc() ? CSINK_ALLOC_NR_EVENTS : 0) + (has_lock() ? CSINK_LOCK_NR_EVENTS : 0);
}

void csink_objects_events(struct csink_event_spec *out)
{
	for (uint32_t i = 0; has_alloc() && i < CSINK_ALLOC_NR_EVENTS; i++)
		csink_alloc_object.event(i, &out++->rec);
	for (uint32_t i = 0; has_lock() && i < CSINK_LOCK_NR_EVENTS; i++)
		csink_lock_object.event(i, &out++->rec);
}

/* ---- totals ---- */

static void add(uint32_t event, uint64_t n)
{
	if (csink_own_recording.header)
		__atomic_fetch_add(&csink_own_recording.header->counted[csink_plan.nr_opened + event], n,
				   __ATOMIC_RELAXED);
}

static void take(struct csink_alloc_counts *counts)
{
	add(0, counts->drawn - counts->left + counts->more);
	add(CSINK_ALLOC_OBJECTS, counts->objects - counts->seen);
	counts->drawn = counts->left;
	counts->more = 0;
	counts->seen = counts->objects;
}

void csink_objects_take(void)
{
	if (has_alloc())
		take(csink_alloc_object.counts());
}

void csink_objects_give(struct csink_thread *thread)
{
	const struct csink_alloc_counts *from = atomic_load_explicit(&thread->allocations, memory_order_relaxed);
	struct csink_alloc_counts counts;
	uint64_t bytes, objects;

	/* It may end meanwhile, and its memory with it: where that is gone it has counted for itself. */
	if (!from || !csink_readable((uintptr_t)from, sizeof(*from)))
		return;
	counts = *from;
	bytes = counts.drawn - counts.left + counts.more;
	objects = counts.objects - counts.seen;
	given[0] += bytes;
	given[1] += objects;
	add(0, bytes);
	add(CSINK_ALLOC_OBJECTS, objects);
}

void csink_objects_take_back(void)
{
	for (uint32_t i = 0; i < 2; i++) {
		if (given[i])
			add(i, -given[i]);
		given[i] = 0;
	}
}

void csink_objects_thread(struct csink_thread *thread)
{
	if (has_alloc())
		thread->allocations = csink_alloc_object.counts();
}

/* ---- samples ---- */

static bool may_block(void)
{
	return !csink_calls_are_off(CSINK_CALLS_LIFE | CSINK_CALLS_PAUSE | CSINK_CALLS_MEMORY);
}

struct asked {
	const ucontext_t *uc;
	uint64_t weights[CSINK_MAX_EVENTS];
	struct csink_row row;
};

/* On a stack of ours: the program's may be a small one. */
static void store(int signo, siginfo_t *asked_for, void *context)
{
	struct asked *asked = (struct asked *)asked_for;

	(void)signo;
	asked->row = csink_sample_apart(context, asked->uc, asked->weights);
}

/* Returns twice the row's reference, and 1 for a row; 0: nothing is stored. */
static uint32_t store_apart(struct asked *asked)
{
	struct csink_thread *thread = csink_self;

	if (!thread || !atomic_load_explicit(&csink_process.active, memory_order_relaxed) ||
	    atomic_load_explicit(&thread->state, memory_order_relaxed) != CSINK_THREAD_LIVE || !thread->entry)
		return 0;
	if (atomic_load_explicit(&thread->is_mute, memory_order_relaxed))
		return 0;
	csink_thread_mute(thread, true);
	if (csink_engine_state.stay_on_stack)
		store(0, (siginfo_t *)asked, thread);
	else
		csink_call_on_stack(store, 0, (siginfo_t *)asked, thread,
				    thread->apart_stack + sizeof(thread->apart_stack));
	csink_thread_mute(thread, false);
	return asked->row.ref << 1 | asked->row.is_wide;
}

static uint32_t sample(const ucontext_t *uc, uint64_t bytes, uint64_t objects, struct csink_alloc_counts *counts)
{
	struct asked asked = {.uc = uc};
	uint32_t row;

	take(counts);
	asked.weights[csink_plan.nr_opened] = bytes;
	asked.weights[csink_plan.nr_opened + CSINK_ALLOC_OBJECTS] = objects;
	row = store_apart(&asked);
	if (!row && csink_own_recording.header)
		__atomic_fetch_add(&csink_own_recording.header->alloc_losses[CSINK_ALLOC_LOSS_THREAD], 1,
				   __ATOMIC_RELAXED);
	return row;
}

/* ---- waits for locks ---- */

static uint32_t stack_of(const ucontext_t *uc)
{
	struct asked asked = {.uc = uc};

	return store_apart(&asked);
}

static struct csink_rec_wait *wait_entry(uint32_t waiter, uint32_t holder, uint64_t lock)
{
	struct csink_thread *thread = csink_self;
	struct csink_rec_wait *wait;
	bool was_mute;

	if (!thread) /* at its end */
		return NULL;
	was_mute = atomic_load_explicit(&thread->is_mute, memory_order_relaxed);
	if (!was_mute)
		csink_thread_mute(thread, true);
	wait = csink_recording_reserve(&csink_own_recording, &thread->writer, sizeof(*wait));
	if (wait) {
		wait->waiter = waiter;
		wait->holder = holder;
		wait->lock = lock;
		csink_recording_commit(wait, sizeof(*wait), CSINK_ENTRY_WAIT, 0);
	}
	if (!was_mute)
		csink_thread_mute(thread, false);
	return wait;
}

static void total_waits(uint64_t delay_ns, uint64_t contentions)
{
	uint32_t first = lock_events() - csink_plan.nr_opened;

	add(first, delay_ns);
	add(first + 1, contentions);
}

void csink_objects_in_use(void)
{
	struct csink_rec_header *header = csink_own_recording.header;

	if (!has_alloc() || in_use_is_there || !csink_self)
		return;
	in_use_is_there = true;
	csink_alloc_object.in_use();
	header->counted[csink_plan.nr_opened + CSINK_ALLOC_IN_USE] = 1;
	header->alloc_losses[CSINK_ALLOC_LOSS_FULL] = *csink_alloc_object.nr_full;
}

/* ---- a process's life ---- */

void csink_objects_begin(struct csink_writer *writer)
{
	static const struct csink_alloc_agent alloc = {may_block, csink_now_ns, sample, wait_entry,
						       &csink_engine_state.timer_signo};
	static const struct csink_lock_agent lock = {may_block, csink_now_ns, stack_of, wait_entry, total_waits};
	char text[400];

	for (uint32_t i = 0; has_alloc() && csink_alloc_object.unseen(i, text, sizeof(text)); i++) {
		if (!*text)
			continue;
		csink_recording_note(&csink_own_recording, writer, 1, "%s", text);
		for (uint32_t k = csink_plan.nr_opened; k < lock_events() && !i; k++)
			csink_own_recording.header->events[k].flags = csink_plan.events[k].rec.flags |=
				CSINK_EVENT_REFUSED;
	}
	if (has_alloc())
		csink_alloc_object.start(&alloc);
	if (has_lock())
		csink_lock_object.start(&lock);
}

void csink_objects_forked(void)
{
	in_use_is_there = false;
	given[0] = given[1] = 0;
	if (has_alloc())
		csink_alloc_object.forked();
	if (has_lock())
		csink_lock_object.forked();
}
