/*
 * The owner of a queue: the thread that got `busy`. Applies what was asked for, calls what is due, sets the alarm, lets
 * go. Everything here but flush and seize may run in a signal handler: no lock, no allocation, no system call of its
 * own.
 */
#include <errno.h>

#include "preload/core/timer/queue.h"

/* The queue whose callback this thread is in; a copy of it survives fork, as the callback does. */
static __thread const struct csink_timerq *dispatching;

/* The interval at which threads that wait for a callback's end look again. */
static const struct timespec nap = {0, 100000};

static bool become_owner(struct csink_timerq *q)
{
	uint32_t free = 0;

	return atomic_compare_exchange_strong(&q->busy, &free, 1);
}

/* The inbox, oldest first. */
static uint32_t take_inbox(struct csink_timerq *q)
{
	uint32_t next, first = 0, index = atomic_exchange(&q->inbox, 0);

	for (; index; index = next) {
		struct csink_timerq_event *event = csink_timerq_event(q, index);

		next = atomic_load_explicit(&event->link, memory_order_relaxed);
		atomic_store_explicit(&event->link, first, memory_order_relaxed);
		first = index;
	}
	return first;
}

/*
 * Put in the heap what was registered and free what was removed. `gone` is taken first: whatever is on it was pushed on
 * the inbox before, so it is in the batch taken next, or has long been in the heap. An event that is DEAD already does
 * not enter the heap; it is on this `gone` or on the next.
 */
static void apply(struct csink_timerq *q)
{
	uint32_t gone = atomic_exchange(&q->gone, 0);
	uint32_t index = take_inbox(q);

	while (index) {
		struct csink_timerq_event *event = csink_timerq_event(q, index);
		uint32_t next = atomic_load_explicit(&event->link, memory_order_relaxed);

		if (csink_timerq_phase(atomic_load(&event->state)) == EVENT_LIVE)
			csink_timerq_heap_push(q, index);
		index = next;
	}
	while (gone) {
		uint32_t next = csink_timerq_event(q, gone)->gone_link;

		csink_timerq_heap_remove(q, gone);
		csink_timerq_release(q, gone);
		gone = next;
	}
}

void csink_timerq_set_next(struct csink_timerq *q)
{
	bool has_fired = q->alarm && atomic_exchange(&q->fired, 0);
	uint64_t next = CSINK_TIMERQ_NEVER;

	/* The interrupted code gets on for a while, also when the dispatch was refused because another was the
	 * owner. */
	if (has_fired)
		q->not_before_ns = CSINK_MAX(q->not_before_ns, csink_timerq_now(q) + CSINK_TIMERQ_GAP_NS);
	if (q->nr_heap && !atomic_load(&q->nr_blocks))
		next = CSINK_MAX(q->heap[0].due_ns, q->not_before_ns);
	atomic_store_explicit(&q->next_ns, next, memory_order_relaxed);
	if (q->alarm)
		q->alarm->set(q, next, has_fired);
}

/* Serve what came in, set the alarm and stop being the owner; and again, if more came in before we had let go. */
static void release_ownership(struct csink_timerq *q)
{
	do {
		atomic_store(&q->again, 0);
		apply(q);
		csink_timerq_set_next(q);
		/* Then `again` is read; a thread that fails to become the owner has set it before. Both in one total
		 * order. */
		atomic_store(&q->busy, 0);
	} while (atomic_load(&q->again) && become_owner(q));
}

void csink_timerq_serve(struct csink_timerq *q)
{
	atomic_store(&q->again, 1);
	if (become_owner(q))
		release_ownership(q);
}

/* Scheduled times after due_ns, up to and including now. */
static uint64_t points_passed(const struct csink_timerq_event *event, uint64_t now_ns)
{
	return event->delta_ns && now_ns > event->due_ns ? (now_ns - event->due_ns) / event->delta_ns : 0;
}

static void count_misses(struct csink_timerq *q, struct csink_timerq_event *event, uint64_t nr)
{
	if (!nr)
		return;
	atomic_fetch_add_explicit(&event->misses, nr, memory_order_relaxed);
	atomic_fetch_add_explicit(&q->misses, nr, memory_order_relaxed);
}

/* After its call: back into the heap at the first scheduled time in the future, or free. */
static void requeue(struct csink_timerq *q, uint32_t index, uint64_t now_ns, uint64_t counted)
{
	struct csink_timerq_event *event = csink_timerq_event(q, index);
	uint64_t passed = points_passed(event, now_ns);
	uint32_t state = csink_timerq_with_phase(atomic_load(&event->state), EVENT_RUNNING);

	if (!event->delta_ns) {
		/* Unless it was unregistered meanwhile, and is not counted any more. */
		if (atomic_compare_exchange_strong(&event->state, &state, csink_timerq_with_phase(state, EVENT_DEAD)))
			atomic_fetch_sub(&q->nr_alive, 1);
		csink_timerq_release(q, index);
		return;
	}
	count_misses(q, event, passed - counted);
	event->due_ns += (passed + 1) * event->delta_ns;
	event->seq = atomic_fetch_add(&q->seq, 1);
	if (atomic_compare_exchange_strong(&event->state, &state, csink_timerq_with_phase(state, EVENT_LIVE)))
		csink_timerq_heap_push(q, index);
	else
		csink_timerq_release(q, index);
}

/*
 * Call one event that has left the heap; *now_ns goes from the time before to the time after.
 * Returns 1, 0 if it had been unregistered, or -ECANCELED if the callback forked and we are the child: then nothing
 * here is ours any more.
 */
static int call(struct csink_timerq *q, uint32_t index, uint64_t *now_ns)
{
	struct csink_timerq_event *event = csink_timerq_event(q, index);
	uint32_t state = csink_timerq_with_phase(atomic_load(&event->state), EVENT_LIVE);
	uint32_t epoch = atomic_load(&q->epoch);
	const struct csink_timerq *outer = dispatching;
	uint64_t passed, now;

	if (!atomic_compare_exchange_strong(&event->state, &state, csink_timerq_with_phase(state, EVENT_RUNNING)))
		return 0; /* it waits on `gone` */
	passed = points_passed(event, *now_ns);
	count_misses(q, event, passed);
	dispatching = q;
	event->func(csink_timerq_id(q, index, state), event->data);
	dispatching = outer;
	if (CSINK_UNLIKELY(csink_timerq_process_epoch() != epoch))
		return -ECANCELED;
	now = csink_timerq_now(q);
	if (now > *now_ns)
		*now_ns = now;
	requeue(q, index, *now_ns, passed);
	return 1;
}

/*
 * Call what was due at until_ns, in order, each event once: what is registered from now on waits in the inbox, and what
 * is put back is due after the present, so that a round ends whatever callbacks do. Returns the number of calls, or
 * -ECANCELED in a forked child.
 */
static int call_due(struct csink_timerq *q, uint64_t until_ns)
{
	uint64_t read_ns = csink_timerq_now(q), begin = CSINK_MAX(read_ns, until_ns), now = begin;
	int ret, nr = 0;

	while (q->nr_heap && q->heap[0].due_ns <= until_ns) {
		uint32_t index = q->heap[0].event;

		/* Odd before blocks and state are read: a thread that changes them and then finds it even sees no call
		 * any more.
		 */
		atomic_fetch_add(&q->calls, 1);
		if (atomic_load(&q->nr_blocks)) {
			atomic_fetch_add(&q->calls, 1);
			break;
		}
		csink_timerq_heap_remove(q, index);
		ret = call(q, index, &now);
		if (ret < 0)
			return ret;
		nr += ret;
		atomic_fetch_add(&q->calls, 1);
	}
	if (nr)
		q->not_before_ns = now + (now - begin) / CSINK_TIMERQ_REST_SHARE;
	return nr;
}

int csink_timerq_dispatch(struct csink_timerq *q, uint64_t now_ns)
{
	int nr;

	if (dispatching == q || !become_owner(q))
		return -EBUSY;
	apply(q);
	nr = call_due(q, now_ns);
	if (nr == -ECANCELED)
		return 0;
	release_ownership(q);
	return nr;
}

CSINK_EXPORT uint64_t csink_timerq_next(const struct csink_timerq *q)
{
	/* The parent's time says nothing in a child; run finds out what does. */
	if (CSINK_UNLIKELY(atomic_load_explicit(&q->epoch, memory_order_relaxed) != csink_timerq_process_epoch()))
		return 0;
	return atomic_load_explicit(&q->next_ns, memory_order_relaxed);
}

CSINK_EXPORT int csink_timerq_run(struct csink_timerq *q, uint64_t now_ns)
{
	CSINK_KEEP_ERRNO;

	csink_timerq_ensure(q);
	return csink_timerq_dispatch(q, now_ns);
}

CSINK_EXPORT int csink_timerq_flush(struct csink_timerq *q)
{
	uint32_t calls;

	csink_timerq_ensure(q);
	if (dispatching == q)
		return -EDEADLK;
	calls = atomic_load(&q->calls);
	while ((calls & 1) && atomic_load(&q->calls) == calls)
		nanosleep(&nap, NULL);
	return 0;
}

int csink_timerq_seize(struct csink_timerq *q)
{
	csink_timerq_ensure(q);
	if (dispatching == q)
		return -EDEADLK;
	while (!become_owner(q))
		nanosleep(&nap, NULL);
	return 0;
}
