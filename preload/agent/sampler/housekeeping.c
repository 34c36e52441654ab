/*
 * Periodic work: see housekeeping.h. Set up by the constructor and in forked children; drain() and refresh_modules()
 * run in the handler of the thread whose sample is due first.
 */
#include "preload/agent/sampler/housekeeping.h"

#include "countersink/timerq.h"
#include "include/internal/base.h"
#include "preload/agent/sampler/fd_guard.h"
#include "preload/agent/sampler/process.h"
#include "preload/agent/sampler/thread.h"
#include "preload/agent/unwind/code_copies.h"
#include "preload/agent/unwind/jit_objects.h"
#include "preload/agent/unwind/modules.h"
#include "preload/core/calls_off.h"
#include "preload/core/timer/queue.h"

enum {
	NR_EVENTS = 8,
	DRAIN_NS = 100 * 1000 * 1000,   /* a killed process's last clocks are at most this old */
	MODULES_NS = 100 * 1000 * 1000, /* how long an object may be unknown by name */
};

static _Alignas(64) char memory[CSINK_TIMERQ_BYTES(NR_EVENTS)];
static struct csink_timerq *queue;

/* Callbacks run in the handler of whichever thread polls: it is the one that writes. */

static void drain(int id, void *data)
{
	struct csink_rec_header *header = csink_own_recording.header;
	uint64_t cpu_ns = csink_cpu_ns(CLOCK_PROCESS_CPUTIME_ID);

	(void)id;
	(void)data;
	__atomic_store_n(&header->end_monotonic_ns, csink_now_ns(), __ATOMIC_RELAXED);
	if (cpu_ns)
		__atomic_store_n(&header->cpu_end_ns, cpu_ns, __ATOMIC_RELAXED);
}

static void refresh_modules(int id, void *data)
{
	(void)id;
	(void)data;
	csink_modules_refresh(&csink_own_recording, &csink_self->writer, csink_now_ns());
	csink_code_copies_poll(&csink_own_recording, &csink_self->writer, false);
	csink_jit_poll(&csink_own_recording, &csink_self->writer);
}

void csink_housekeeping_init(void)
{
	csink_code_copies_set_guard(csink_fd_guard_enter, csink_fd_guard_leave);
	queue = csink_timerq_init_unwatched(memory, NR_EVENTS);
	csink_timerq_register(queue, DRAIN_NS, NULL, drain);
	csink_timerq_register(queue, MODULES_NS, NULL, refresh_modules);
}

void csink_housekeeping_poll(struct csink_thread *thread, uint64_t now_ns)
{
	(void)thread;
	/* As csink_timerq_next, without a look at the process: the queue is of this one. It reads clocks of its own. */
	if (CSINK_UNLIKELY(now_ns >= atomic_load_explicit(&queue->next_ns, memory_order_relaxed)) &&
	    !csink_calls_are_off(CSINK_CALLS_TIME))
		csink_timerq_run(queue, now_ns);
}

void csink_housekeeping_last(struct csink_thread *thread)
{
	csink_modules_refresh_last(&csink_own_recording, &thread->writer, csink_now_ns());
	csink_code_copies_poll(&csink_own_recording, &thread->writer, true);
	drain(0, NULL);
}
