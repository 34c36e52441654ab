/* See allocations.h. Samples come from any thread, in its own call of the allocator. */
#include "preload/agent/sampler/allocations.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/alloc_object.h"
#include "include/internal/base.h"
#include "include/internal/shared_options.h"
#include "preload/agent/sampler/call_on_stack.h"
#include "preload/agent/sampler/plan.h"
#include "preload/agent/sampler/process.h"
#include "preload/agent/sampler/thread.h"
#include "preload/core/private_memory.h"
#include "preload/core/safe_load.h"

#pragma weak csink_alloc_object

/* The order of the events; the first one is csink_plan.nr_opened. */
enum { SPACE, OBJECTS, IN_USE_SPACE, IN_USE_OBJECTS, NR = CSINK_ALLOC_NR_EVENTS };

static uint64_t given[2]; /* of other threads, at an end */
static bool in_use_is_there;

static bool is_on(void)
{
	return &csink_alloc_object && csink_alloc_object.version == CSINK_ALLOC_VERSION;
}

/* "BYTES", with ",first" and ",leaks" behind it. */
static bool is_asked(const char *word)
{
	const char *value = getenv(CSINK_ENV_PREFIX "ALLOC");

	return value && strstr(value, word);
}

static uint64_t asked_period(void)
{
	const char *value = getenv(CSINK_ENV_PREFIX "ALLOC");
	uint64_t period = value ? strtoull(value, NULL, 10) : 0;

	if (period < CSINK_ALLOC_MIN_PERIOD || period > CSINK_ALLOC_MAX_PERIOD)
		period = CSINK_ALLOC_PERIOD;
	return period;
}

uint32_t csink_allocations_nr_events(void)
{
	return is_on() ? NR : 0;
}

void csink_allocations_events(struct csink_event_spec *out)
{
	static const char names[NR][2][16] = {{"alloc_space", "alloc_space"},
					      {"alloc_objects", "alloc_objects"},
					      {"inuse_space", "leak_space"},
					      {"inuse_objects", "leak_objects"}};

	bool leaks = is_asked(",leaks");

	for (uint32_t i = 0; i < NR && is_on(); i++, out++) {
		memset(out, 0, sizeof(*out));
		strcpy(out->rec.name, names[i][leaks]);
		strcpy(out->rec.unit, i & 1 ? "count" : "bytes");
		out->rec.flags = i < IN_USE_SPACE ? CSINK_EVENT_ALLOCATED : CSINK_EVENT_IN_USE;
		if (i == (leaks ? IN_USE_SPACE : SPACE) && (leaks || is_asked(",first")))
			out->rec.flags |= CSINK_EVENT_FIRST;
		out->rec.period = asked_period();
	}
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
	add(SPACE, counts->drawn - counts->left + counts->more);
	add(OBJECTS, counts->objects - counts->seen);
	counts->drawn = counts->left;
	counts->more = 0;
	counts->seen = counts->objects;
}

void csink_allocations_take(void)
{
	if (is_on() && csink_alloc_object.counts()->drawn)
		take(csink_alloc_object.counts());
}

void csink_allocations_give(struct csink_thread *thread)
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
	add(SPACE, bytes);
	add(OBJECTS, objects);
}

void csink_allocations_take_back(void)
{
	for (uint32_t i = 0; i < 2; i++) {
		if (given[i])
			add(i, -given[i]);
		given[i] = 0;
	}
}

/* ---- samples ---- */

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

static uint32_t lose(void)
{
	if (csink_own_recording.header)
		__atomic_fetch_add(&csink_own_recording.header->alloc_losses[CSINK_ALLOC_LOSS_THREAD], 1,
				   __ATOMIC_RELAXED);
	return 0;
}

static uint32_t sample(const ucontext_t *uc, uint64_t bytes, uint64_t objects, struct csink_alloc_counts *counts)
{
	struct csink_thread *thread = csink_self;
	struct asked asked = {.uc = uc};

	take(counts);
	if (!thread || !atomic_load_explicit(&csink_process.active, memory_order_relaxed) ||
	    atomic_load_explicit(&thread->state, memory_order_relaxed) != CSINK_THREAD_LIVE || !thread->entry)
		return lose();
	/* One that was left by a jump does not count. */
	if (atomic_load_explicit(&thread->is_mute, memory_order_relaxed) && !thread->in_allocation)
		return lose();
	if (!thread->allocation_stack)
		thread->allocation_stack = csink_private_get(CSINK_HANDLER_STACK);
	if (!thread->allocation_stack)
		return lose();
	asked.weights[csink_plan.nr_opened + SPACE] = bytes;
	asked.weights[csink_plan.nr_opened + OBJECTS] = objects;
	atomic_store_explicit(&thread->allocations, counts, memory_order_relaxed);
	csink_thread_mute(thread, true);
	thread->in_allocation = true;
	csink_call_on_stack(store, 0, (siginfo_t *)&asked, thread, thread->allocation_stack + CSINK_HANDLER_STACK);
	thread->in_allocation = false;
	csink_thread_mute(thread, false);
	return asked.row.ref << 1 | asked.row.is_wide;
}

/* ---- what is in use at the end ---- */

/* A row of its own, of the same stack: what is in it was written by another thread, which may go on. */
static void add_in_use(struct csink_writer *writer, const struct csink_alloc_live *live)
{
	uint32_t bytes = (uint32_t)sizeof(struct csink_rec_row) + csink_plan.nr_events * 8;
	struct csink_rec_row *row = csink_recording_reserve(&csink_own_recording, writer, bytes);
	const void *from = csink_recording_at(&csink_own_recording, live->row >> 1);

	if (!row) {
		csink_own_recording.header->unstored[csink_plan.nr_opened + IN_USE_SPACE] += live->bytes;
		csink_own_recording.header->unstored[csink_plan.nr_opened + IN_USE_OBJECTS] += live->objects;
		return;
	}
	if (live->row & 1) {
		row->node = ((const struct csink_rec_row *)from)->node;
		row->leaf = ((const struct csink_rec_row *)from)->leaf;
	} else {
		row->node = ((const struct csink_rec_cell *)from)->node;
		row->leaf = ((const struct csink_rec_cell *)from)->leaf_low |
			    (uint64_t)((const struct csink_rec_cell *)from)->leaf_high << 32;
	}
	row->weights[csink_plan.nr_opened + IN_USE_SPACE] = live->bytes;
	row->weights[csink_plan.nr_opened + IN_USE_OBJECTS] = live->objects;
	csink_recording_commit(row, bytes, CSINK_ENTRY_ROW, 0);
}

/* Is it of the last tenth of the run, in which what a program keeps for a while is not freed yet? */
static bool is_young(uint32_t now_ms, uint32_t age_ms)
{
	uint64_t start_ns = csink_own_recording.header->start_monotonic_ns;
	uint32_t lived_ms = now_ms - (uint32_t)(start_ns / 1000000);

	return (now_ms - age_ms) < lived_ms / 10;
}

void csink_allocations_in_use(void)
{
	uint32_t at = 0, now_ms = (uint32_t)(csink_now_ns() / 1000000);
	struct csink_rec_header *header = csink_own_recording.header;
	struct csink_writer writer = {0, 0};
	bool leaks = is_asked(",leaks");
	struct csink_alloc_live live;

	if (!is_on() || in_use_is_there)
		return;
	in_use_is_there = true;
	while (csink_alloc_object.next_live(&at, &live))
		if (!leaks || !is_young(now_ms, live.age_ms))
			add_in_use(&writer, &live);
	header->counted[csink_plan.nr_opened + IN_USE_SPACE] = 1;
	header->counted[csink_plan.nr_opened + IN_USE_OBJECTS] = 1;
	header->alloc_losses[CSINK_ALLOC_LOSS_FULL] = *csink_alloc_object.nr_full;
	header->alloc_losses[CSINK_ALLOC_LOSS_BUSY] = *csink_alloc_object.nr_busy;
}

/* ---- a process's life ---- */

void csink_allocations_begin(struct csink_writer *writer)
{
	struct csink_alloc_agent agent = {CSINK_ALLOC_VERSION, asked_period(), sample};
	char text[400];

	if (!is_on())
		return;
	for (uint32_t i = 0; csink_alloc_object.unseen(i, text, sizeof(text)); i++) {
		if (!*text)
			continue;
		csink_recording_note(&csink_own_recording, writer, 1, "%s", text);
		for (uint32_t k = csink_plan.nr_opened; k < csink_plan.nr_events && !i; k++)
			csink_own_recording.header->events[k].flags = csink_plan.events[k].rec.flags |=
				CSINK_EVENT_REFUSED;
	}
	csink_alloc_object.start(&agent);
}

void csink_allocations_forked(void)
{
	if (!is_on())
		return;
	in_use_is_there = false;
	given[0] = given[1] = 0;
	csink_alloc_object.forked();
}
