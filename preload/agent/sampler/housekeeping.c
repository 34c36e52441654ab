/*
 * Periodic work: see housekeeping.h. Set up by the constructor and in forked children; emit() runs in the handler
 * of the thread whose sample is due first, and once more at the end of the image.
 */
#include "preload/agent/sampler/housekeeping.h"

#include "countersink/timerq.h"
#include "include/internal/base.h"
#include "include/internal/share.h"
#include "preload/agent/sampler/engine.h"
#include "preload/agent/sampler/fd_guard.h"
#include "preload/agent/sampler/plan.h"
#include "preload/agent/sampler/process.h"
#include "preload/agent/sampler/thread.h"
#include "preload/agent/unwind/code_copies.h"
#include "preload/agent/unwind/jit_objects.h"
#include "preload/agent/unwind/modules.h"
#include "preload/core/calls_off.h"
#include "preload/core/timer/queue.h"

/* A killed process's last clocks, and names of new objects, are at most so late. */
enum { EMIT_NS = 100 * 1000 * 1000 };
/* How often samples' share of the time is judged, and by how many samples at least. */
enum { GOVERN_NS = 1000 * 1000 * 1000, GOVERN_SAMPLES = 16 };
enum { FIRST_COST_NS = 10 * 1000 }; /* a first sample, on cold caches, may take far longer than those that follow */
/* The rate rises again, by a factor of four, where samples took so much less than they may, so many times in a row. */
enum { CHEAPER = 6, CHEAP_TIMES = 4 };
enum { NR_EVENTS = 2 }; /* emit_due and govern */

static _Alignas(64) char memory[CSINK_TIMERQ_BYTES(NR_EVENTS)];
static struct csink_timerq *queue;

/* What emits runs in the handler of whichever thread polls, or in the thread that ends the image: it is the one that
 * writes. */

static void store_clocks(struct csink_rec_header *header)
{
	uint64_t cpu_ns = csink_cpu_ns(CLOCK_PROCESS_CPUTIME_ID);

	__atomic_store_n(&header->end_monotonic_ns, csink_now_ns(), __ATOMIC_RELAXED);
	if (cpu_ns)
		__atomic_store_n(&header->cpu_end_ns, cpu_ns, __ATOMIC_RELAXED);
}

/* In the handler alone: some of it has no unwind tables (tests/cli/symbols.t). */
static __attribute__((noinline)) void refresh_modules(struct csink_writer *writer)
{
	csink_modules_refresh(&csink_own_recording, writer, csink_now_ns());
	csink_code_copies_poll(&csink_own_recording, writer, false);
	csink_jit_poll(&csink_own_recording, writer);
}

/*
 * What the recording is to have so that it can be read at any moment: samples are in it already. Modules come first, so
 * that the clocks at the end of an image include the look at them.
 */
static void emit(bool is_last)
{
	struct csink_writer *writer = &csink_self->writer;

	if (is_last) {
		csink_modules_refresh_last(&csink_own_recording, writer, csink_now_ns());
		csink_code_copies_poll(&csink_own_recording, writer, true);
	} else {
		refresh_modules(writer);
		if (csink_self->entry && !csink_calls_are_off(CSINK_CALLS_LIFE))
			csink_thread_name(csink_self);
	}
	store_clocks(csink_own_recording.header);
}

static void emit_due(int id, void *data)
{
	(void)id;
	(void)data;
	emit(false);
}

/* Of all threads since the last judgement; relaxed: sums alone matter. What one sample takes is near the median, which
 * a thread that was switched away in its handler hardly moves. */
static struct {
	_Atomic uint64_t cost_ns, spent_ns, cpu_ns, nr;
} account;

static uint64_t take(_Atomic uint64_t *from)
{
	return atomic_exchange_explicit(from, 0, memory_order_relaxed);
}

void csink_housekeeping_account(uint64_t took_ns, uint64_t cpu_ns)
{
	uint64_t cost = atomic_load_explicit(&account.cost_ns, memory_order_relaxed), step = cost / 16 + 1;

	if (!cost)
		cost = CSINK_MIN(took_ns, FIRST_COST_NS);
	else
		cost = took_ns > cost ? cost + step : took_ns < cost ? cost - step : cost;
	atomic_store_explicit(&account.cost_ns, cost, memory_order_relaxed);
	atomic_fetch_add_explicit(&account.spent_ns, cost, memory_order_relaxed);
	atomic_fetch_add_explicit(&account.cpu_ns, cpu_ns, memory_order_relaxed);
	atomic_fetch_add_explicit(&account.nr, 1, memory_order_relaxed);
}

/* In the queue's order: one thread at a time. */
static uint32_t nr_cheap;

static void govern(int id, void *data)
{
	uint64_t spent_ns, cpu_ns;

	(void)id;
	(void)data;
	if (atomic_load_explicit(&account.nr, memory_order_relaxed) < GOVERN_SAMPLES)
		return;
	take(&account.nr);
	spent_ns = take(&account.spent_ns);
	cpu_ns = take(&account.cpu_ns);
	if (spent_ns / csink_plan.budget > cpu_ns / CSINK_SHARE_WHOLE) {
		nr_cheap = 0;
		if (csink_engine_can_reopen())
			csink_engine_lower_rates();
	} else if (spent_ns * CHEAPER / csink_plan.budget > cpu_ns / CSINK_SHARE_WHOLE) {
		nr_cheap = 0;
	} else if (++nr_cheap >= CHEAP_TIMES) {
		nr_cheap = 0;
		csink_engine_raise_rates();
	}
}

void csink_housekeeping_init(uint64_t (*clock)(void))
{
	csink_code_copies_set_guard(csink_fd_guard_enter, csink_fd_guard_leave);
	queue = csink_timerq_init_unwatched(memory, NR_EVENTS, clock);
	csink_timerq_register(queue, EMIT_NS, NULL, emit_due);
	if (csink_plan.budget)
		csink_timerq_register(queue, GOVERN_NS, NULL, govern);
}

void csink_housekeeping_poll(uint64_t now_ns)
{
	/* As csink_timerq_next, without a look at the process: the queue is of this one. It reads clocks of its own. */
	if (CSINK_UNLIKELY(now_ns >= atomic_load_explicit(&queue->next_ns, memory_order_relaxed)) &&
	    !csink_calls_are_off(CSINK_CALLS_TIME))
		csink_timerq_run(queue, now_ns);
}

/* Past the queue: a registration takes a lock, which a child of _Fork may find taken, and another thread's handler
 * could run what is meant for this one. */
void csink_housekeeping_last(void)
{
	emit(true);
}
