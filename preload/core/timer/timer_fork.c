/*
 * What a queue is in a forked child: empty, or going on.
 *
 * A word that the kernel zeroes in every forked child (MADV_WIPEONFORK) shows it: it works for fork, clone and raw
 * system calls, in handlers too, and leaves a vfork child, which shares our memory, alone; a pid does none of this.
 * Each queue notes the number that the word had when its state was made. fork(3)'s child hook only makes it happen
 * early.
 */

#include "include/internal/rawcall.h"
#include "preload/core/timer/queue.h"

/* In q->epoch: a thread of this process is changing it. */
#define ADOPTING UINT32_C(0x80000000)

static _Atomic(_Atomic uint32_t *) fork_word;

/* What the word will say first: queues that are there by then stay valid. */
#define UNWATCHED UINT32_C(1)
static _Atomic uint32_t last_epoch; /* goes on counting in the child, so that its number is new */

bool csink_timerq_process_watched(void)
{
	return atomic_load(&fork_word) != NULL;
}

uint32_t csink_timerq_process_epoch(void)
{
	_Atomic uint32_t *word = atomic_load_explicit(&fork_word, memory_order_acquire);
	uint32_t new, epoch = word ? atomic_load_explicit(word, memory_order_relaxed) : UNWATCHED;

	if (CSINK_LIKELY(epoch))
		return epoch;
	new = atomic_fetch_add(&last_epoch, 1) + 1;
	return atomic_compare_exchange_strong(word, &epoch, new) ? new : epoch;
}

/* The event continues in the child: at the first scheduled time that has not passed. */
static void continue_in_child(struct csink_timerq_event *event, uint64_t now_ns, uint64_t back_ns)
{
	uint64_t due = event->due_ns > back_ns ? event->due_ns - back_ns : 0;

	if (event->delta_ns && due < now_ns)
		due += (now_ns - due + event->delta_ns - 1) / event->delta_ns * event->delta_ns;
	event->due_ns = due;
	event->heap_pos = 0;
	atomic_store(&event->misses, 0);
}

/*
 * Rebuild the queue from its events alone: lists, heap and ownership are as some thread of the parent had left them.
 * A one-trip event that the parent was calling is the parent's.
 */
static void rebuild(struct csink_timerq *q)
{
	/* A clock behind what the parent read: the child is in a new time namespace, and the schedule moves with it. */
	uint64_t last = atomic_load(&q->last_ns), now = csink_timerq_now(q), back = last > now ? last - now : 0;
	uint32_t index, nr_alive = 0, high = atomic_load(&q->high);

	for (index = 1; index <= high; index++) {
		struct csink_timerq_event *event = csink_timerq_event(q, index);
		uint32_t state = atomic_load(&event->state), phase = csink_timerq_phase(state);

		if ((q->flags & CSINK_TIMERQ_KEEP_IN_CHILD) &&
		    (phase == EVENT_LIVE || (phase == EVENT_RUNNING && event->delta_ns))) {
			continue_in_child(event, now, back);
			atomic_store(&event->state, csink_timerq_with_phase(state, EVENT_LIVE));
			csink_timerq_heap_push(q, index);
			nr_alive++;
		} else {
			csink_timerq_release(q, index);
		}
	}
	atomic_store(&q->nr_alive, nr_alive);
}

static void reset(struct csink_timerq *q)
{
	atomic_store(&q->busy, 0);
	atomic_store(&q->again, 0);
	atomic_store(&q->nr_blocks, 0);
	atomic_store(&q->calls, 0);
	atomic_store(&q->inbox, 0);
	atomic_store(&q->gone, 0);
	atomic_store(&q->free, 0);
	atomic_store(&q->misses, 0);
	q->nr_heap = 0;
	q->not_before_ns = 0;
	csink_timerq_alarm_reset(q);
	rebuild(q);
	/* Without events there is no need of a timer yet; when there is, a failure shows at the next registration. */
	if (q->nr_heap)
		csink_timerq_ready(q);
	csink_timerq_set_next(q);
}

static void adopt(struct csink_timerq *q)
{
	static const uint64_t every_signal = ~UINT64_C(0);
	uint32_t epoch = csink_timerq_process_epoch(), seen = atomic_load(&q->epoch);
	uint64_t mask;

	/* No handler of this thread may find the queue half made; other threads, which a child rarely has by now, wait.
	 */
	csink_rawcall(SYS_rt_sigprocmask, SIG_SETMASK, &every_signal, &mask, sizeof(mask));
	while (seen != epoch) {
		if (seen == (epoch | ADOPTING)) {
			seen = atomic_load(&q->epoch);
		} else if (atomic_compare_exchange_strong(&q->epoch, &seen, epoch | ADOPTING)) {
			reset(q);
			atomic_store_explicit(&q->epoch, epoch, memory_order_release);
			seen = epoch;
		}
	}
	csink_rawcall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof(mask));
}

void (*csink_timerq_adopt)(struct csink_timerq *q);

void csink_timerq_process_watch(_Atomic uint32_t *word)
{
	csink_timerq_adopt = adopt;
	/* Its release pairs with the acquire of process_epoch: a reader that finds another process finds adopt, too. */
	atomic_store(&fork_word, word);
}

void csink_timerq_process_forked(void)
{
	_Atomic uint32_t *word = atomic_load(&fork_word);
	struct csink_timerq *q;
	int sig;

	/* Zero already, but on kernels that cannot wipe pages. */
	atomic_store(word, 0);
	for (sig = 1; sig < _NSIG; sig++) {
		q = csink_timerq_alarm_owner(sig);
		if (q)
			csink_timerq_ensure(q);
	}
}
