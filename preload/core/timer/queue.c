/*
 * What users ask of a queue: registration and removal, blocks, state. Requests only push on lists and then have them
 * served. Everything here may run in a signal handler: no lock, no allocation; signals are masked by a raw system call.
 */
#include <errno.h>
#include <unistd.h>

#include "include/internal/rawcall.h"
#include "preload/core/timer/queue.h"

/* What a request leaves as it found it. */
struct guard {
	uint64_t mask;
	int saved_errno;
};

/*
 * Raw, for two reasons: sigprocmask may be the profiler's own wrapper, and glibc leaves out its two internal signals,
 * of which cancellation would unwind through us.
 */
static struct guard enter(struct csink_timerq *q)
{
	static const uint64_t every_signal = ~UINT64_C(0);
	struct guard g = {.saved_errno = errno};

	csink_rawcall(SYS_rt_sigprocmask, SIG_SETMASK, &every_signal, &g.mask, sizeof(g.mask));
	csink_timerq_ensure(q);
	return g;
}

static void leave(const struct guard *g)
{
	csink_rawcall(SYS_rt_sigprocmask, SIG_SETMASK, &g->mask, NULL, sizeof(g->mask));
	errno = g->saved_errno;
}

/* Declared first in a request, it makes the request one: it is left where the scope is. */
#define REQUEST(q) __attribute__((cleanup(leave))) const struct guard guard = enter(q)

/* ---- ids -------------------------------------------------------------------------------------------------------- */

/* A later life of the same event has another id; they come round as late as 31 bits allow. */
static uint32_t next_generation(const struct csink_timerq *q, uint32_t state)
{
	uint32_t last = UINT32_C(0x7fffffff) >> q->index_bits;

	return (((state >> 2) + 1) & last) << 2 | EVENT_FREE;
}

/* The event that an id means or meant, with the state it had when looked at; 0: never one of ours, or gone. */
static uint32_t find(struct csink_timerq *q, int id, uint32_t *state)
{
	uint32_t index = (uint32_t)id & ((1U << q->index_bits) - 1);

	if (!index || index > atomic_load(&q->high))
		return 0;
	*state = atomic_load(&csink_timerq_event(q, index)->state);
	if (csink_timerq_phase(*state) != EVENT_LIVE && csink_timerq_phase(*state) != EVENT_RUNNING)
		return 0;
	return csink_timerq_id(q, index, *state) == id ? index : 0;
}

/* ---- free events ------------------------------------------------------------------------------------------------ */

void csink_timerq_release(struct csink_timerq *q, uint32_t index)
{
	struct csink_timerq_event *event = csink_timerq_event(q, index);
	uint64_t head = atomic_load(&q->free);

	atomic_store(&event->state, next_generation(q, atomic_load(&event->state)));
	do {
		atomic_store_explicit(&event->link, (uint32_t)head, memory_order_relaxed);
	} while (!atomic_compare_exchange_weak(&q->free, &head, (head & ~UINT64_C(0xffffffff)) | index));
}

/* A free event's number; 0: none left. Events that were never used come last, so that their pages stay untouched. */
static uint32_t take_free(struct csink_timerq *q)
{
	uint64_t head = atomic_load(&q->free);
	uint32_t high;

	while ((uint32_t)head) {
		uint64_t next =
			atomic_load_explicit(&csink_timerq_event(q, (uint32_t)head)->link, memory_order_relaxed);

		if (atomic_compare_exchange_weak(&q->free, &head, ((head >> 32) + 1) << 32 | next))
			return (uint32_t)head;
	}
	high = atomic_load(&q->high);
	do {
		if (high == q->capacity)
			return 0;
	} while (!atomic_compare_exchange_weak(&q->high, &high, high + 1));
	return high + 1;
}

/* ---- requests --------------------------------------------------------------------------------------------------- */

/* Fill a free event and hand it to the owner. Returns its id or -ENOSPC. */
static int add(struct csink_timerq *q, uint64_t due_ns, uint64_t delta_ns, void *data, csink_timerq_func func)
{
	uint32_t head, state, index = take_free(q);
	struct csink_timerq_event *event;

	if (!index)
		return -ENOSPC;
	event = csink_timerq_event(q, index);
	event->due_ns = due_ns;
	event->delta_ns = delta_ns;
	event->data = data;
	event->func = func;
	event->heap_pos = 0;
	event->seq = atomic_fetch_add(&q->seq, 1);
	atomic_store_explicit(&event->misses, 0, memory_order_relaxed);
	state = csink_timerq_with_phase(atomic_load(&event->state), EVENT_LIVE);
	atomic_store(&event->state, state);
	atomic_fetch_add(&q->nr_alive, 1);
	head = atomic_load(&q->inbox);
	do {
		atomic_store_explicit(&event->link, head, memory_order_relaxed);
	} while (!atomic_compare_exchange_weak(&q->inbox, &head, index));
	return csink_timerq_id(q, index, state);
}

CSINK_EXPORT int csink_timerq_setup(struct csink_timerq *q, int64_t start_ns, int64_t delta_ns, void *data,
				    csink_timerq_func func)
{
	REQUEST(q);
	int ret;

	if (start_ns < 0 || delta_ns < 0 || !func)
		return -EINVAL;
	if (start_ns > CSINK_TIMERQ_MAX_NS || delta_ns > CSINK_TIMERQ_MAX_NS)
		return -ERANGE;
	ret = csink_timerq_ready(q);
	if (!ret)
		ret = add(q, csink_timerq_now(q) + (uint64_t)start_ns, (uint64_t)delta_ns, data, func);
	if (ret > 0)
		csink_timerq_serve(q);
	return ret;
}

CSINK_EXPORT int csink_timerq_register(struct csink_timerq *q, int64_t delta_ns, void *data, csink_timerq_func func)
{
	return csink_timerq_setup(q, delta_ns, delta_ns, data, func);
}

/* Make an event DEAD. Returns 0 or -ENOENT. */
static int kill_event(struct csink_timerq *q, int id)
{
	uint32_t head, state, index = find(q, id, &state);
	struct csink_timerq_event *event;

	if (!index)
		return -ENOENT;
	event = csink_timerq_event(q, index);
	while (!atomic_compare_exchange_weak(&event->state, &state, csink_timerq_with_phase(state, EVENT_DEAD))) {
		if (find(q, id, &state) != index)
			return -ENOENT;
	}
	atomic_fetch_sub(&q->nr_alive, 1);
	if (csink_timerq_phase(state) == EVENT_RUNNING)
		return 0; /* its owner finds out after the call */
	head = atomic_load(&q->gone);
	do {
		event->gone_link = head;
	} while (!atomic_compare_exchange_weak(&q->gone, &head, index));
	return 0;
}

CSINK_EXPORT int csink_timerq_unregister(struct csink_timerq *q, int id)
{
	REQUEST(q);
	int ret = id > 0 ? kill_event(q, id) : -EINVAL;

	if (!ret)
		csink_timerq_serve(q);
	return ret;
}

CSINK_EXPORT void csink_timerq_block(struct csink_timerq *q)
{
	REQUEST(q);

	if (!atomic_fetch_add(&q->nr_blocks, 1))
		csink_timerq_serve(q); /* no alarm while blocked */
}

CSINK_EXPORT int csink_timerq_unblock(struct csink_timerq *q)
{
	REQUEST(q);
	uint32_t nr = atomic_load(&q->nr_blocks);

	do {
		if (!nr)
			return -EPERM;
	} while (!atomic_compare_exchange_weak(&q->nr_blocks, &nr, nr - 1));
	if (nr == 1)
		csink_timerq_serve(q);
	return 0;
}

CSINK_EXPORT int csink_timerq_isempty(struct csink_timerq *q)
{
	csink_timerq_ensure(q);
	return !atomic_load(&q->nr_alive);
}

CSINK_EXPORT int64_t csink_timerq_misses(struct csink_timerq *q, int id)
{
	uint32_t index, state;
	uint64_t nr;

	if (id < 0)
		return -EINVAL;
	csink_timerq_ensure(q);
	if (!id)
		return (int64_t)atomic_load(&q->misses);
	index = find(q, id, &state);
	if (!index)
		return -ENOENT;
	nr = atomic_load(&csink_timerq_event(q, index)->misses);
	/* Still the same event, or what we read may be another's. */
	return find(q, id, &state) ? (int64_t)nr : -ENOENT;
}
