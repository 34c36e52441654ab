/*
 * Inside the timer queue; the contract for its users is <countersink/timerq.h>.
 *
 * How it is made safe. Requests (register, unregister) are pushed on two lock-free lists and never wait; one owner at a
 * time, the thread that got `busy` by a trylock, applies them to the heap, calls what is due and sets the alarm. A
 * thread that does not get `busy` leaves `again` set, and the owner tests it after it has released `busy`: so no
 * request is lost, and no handler waits for the thread that it interrupted. A spin lock would suffice between threads,
 * but a handler that interrupts a low priority owner could spin for ever, and a request would wait for callbacks.
 *
 * Requests block all signals for their few instructions (enter, in queue.c): not for the lists' sake, but so that no
 * handler can longjmp or fork out of the middle of one.
 *
 * An event's life, in `state`: FREE -> LIVE (register) -> RUNNING (its call) -> LIVE ... -> FREE (one-trip's end), or
 * LIVE or RUNNING -> DEAD (unregister) -> FREE. The thread that changes LIVE to DEAD puts it on `gone`; when RUNNING
 * became DEAD the owner finds out after the call. Only the owner makes an event FREE again, which changes its
 * generation.
 */
#ifndef CSINK_QUEUE_H
#define CSINK_QUEUE_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "countersink/timerq.h"
#include "include/internal/base.h"
#include "include/internal/clock.h"

/* Between a timer signal and the next one, so that the interrupted code gets on: the kernel's own default timer slack.
 */
#define CSINK_TIMERQ_GAP_NS 50000
/* The callbacks' share of the time is at most 8/9: 1/8 of what they took is left free after them. */
#define CSINK_TIMERQ_REST_SHARE 8

#define CSINK_TIMERQ_NO_TIMER ((timer_t)-1L)

enum csink_timerq_phase { EVENT_FREE, EVENT_LIVE, EVENT_RUNNING, EVENT_DEAD };

/* One event. Events are numbered from 1; 0 ends the lists. */
struct csink_timerq_event {
	_Atomic uint32_t state; /* generation << 2 | enum csink_timerq_phase */
	_Atomic uint32_t link;  /* next in `free` or `inbox`; 0 ends */
	uint32_t gone_link;     /* next in `gone`; written before its push */
	uint32_t heap_pos;      /* owner: place in the heap + 1; 0: not there */
	_Atomic uint64_t misses;
	/* written before LIVE is published, then by the owner */
	uint64_t due_ns;
	uint64_t delta_ns;
	uint64_t seq;
	csink_timerq_func func;
	void *data;
};

struct csink_timerq_node {
	uint64_t due_ns;
	uint64_t seq;
	uint32_t event;
};

struct csink_timerq {
	_Atomic uint64_t next_ns; /* owner writes, pollers read; says nothing about other fields: relaxed */
	_Atomic uint32_t epoch;   /* the process (timer_fork.c) that this state belongs to */
	_Atomic uint32_t busy;    /* 1: a thread is the owner */
	_Atomic uint32_t again;   /* work was added while another thread was the owner */
	_Atomic uint32_t fired;   /* the timer has expired since it was last set */
	_Atomic uint32_t nr_blocks;
	_Atomic uint32_t calls; /* counts starts and ends of calls: odd while one is under way */
	_Atomic uint32_t nr_alive;
	_Atomic uint32_t high;  /* events 1 to high have been used at some time */
	_Atomic uint32_t inbox; /* stack of events to be put in the heap */
	_Atomic uint32_t gone;  /* stack of DEAD events to be freed */
	_Atomic uint64_t free;  /* stack of free events: pops << 32 | first, the count being against ABA */
	_Atomic uint64_t seq;   /* next place in the line of those due together */
	_Atomic uint64_t misses;
	_Atomic uint64_t last_ns; /* latest reading of the clock, to notice a new time namespace after fork */
	_Atomic(timer_t) timer;

	/* owner only */
	uint32_t nr_heap;
	bool is_installed;      /* our handler is there, and `old` is what was */
	uint64_t not_before_ns; /* no alarm earlier */
	uint64_t armed_ns;      /* what the timer is set to; NEVER: disarmed */
	struct sigaction old;

	/* never changed */
	uint32_t capacity;
	uint32_t flags;
	uint32_t index_bits; /* an id is generation << index_bits | event */
	int signal;          /* 0: polled */
	int tid;             /* 0: the process */
	uint64_t (*clock)(void);
	const struct csink_timerq_alarm *alarm; /* NULL: polled */
	struct csink_timerq_event *events;      /* event i is events[i - 1] */
	struct csink_timerq_node *heap;
	void *map; /* what destroy unmaps; NULL: the caller's memory */
	size_t map_bytes;
};

static inline struct csink_timerq_event *csink_timerq_event(struct csink_timerq *q, uint32_t index)
{
	return &q->events[index - 1];
}

static inline enum csink_timerq_phase csink_timerq_phase(uint32_t state)
{
	return (enum csink_timerq_phase)(state & 3);
}

static inline uint32_t csink_timerq_with_phase(uint32_t state, enum csink_timerq_phase phase)
{
	return (state & ~3U) | phase;
}

static inline int csink_timerq_id(const struct csink_timerq *q, uint32_t index, uint32_t state)
{
	return (int)((state >> 2) << q->index_bits | index);
}

static inline uint64_t csink_timerq_now(struct csink_timerq *q)
{
	uint64_t now = q->clock ? q->clock() : csink_monotonic_ns();

	atomic_store_explicit(&q->last_ns, now, memory_order_relaxed);
	return now;
}

/* queue.c. Context: signal. */

/* Make an event FREE under a new generation. The owner's. */
void csink_timerq_release(struct csink_timerq *q, uint32_t index);

/* dispatch.c. Context: signal, unless it says otherwise. */

/* Have the requests applied and the alarm set, by us or by the owner. */
void csink_timerq_serve(struct csink_timerq *q);
/* The owner's: publish the time of the next event, and set the alarm to it. */
void csink_timerq_set_next(struct csink_timerq *q);
/* Become the owner, apply, call what is due at now_ns, set the alarm. Returns as csink_timerq_run. */
int csink_timerq_dispatch(struct csink_timerq *q, uint64_t now_ns);
/* Wait to be the owner, and remain it. Returns 0, or -EDEADLK from one of the queue's callbacks. Context: thread. */
int csink_timerq_seize(struct csink_timerq *q);

/* heap.c: ordered by (due, seq). The owner's. Context: signal. */
void csink_timerq_heap_push(struct csink_timerq *q, uint32_t index);
void csink_timerq_heap_remove(struct csink_timerq *q, uint32_t index);

/*
 * alarm.c: the timer and the signal of an armed queue. Context: signal, unless it says otherwise. Polled queues reach
 * it through q->alarm alone: the library that is injected has no armed queue, and the linker leaves alarm.c out there.
 */

struct csink_timerq_alarm {
	/* Take a signal for q; q->signal 0 has one chosen. Context: thread. Returns 0, -EBUSY or -ESRCH. */
	int (*claim)(struct csink_timerq *q);
	/* Make sure that there is a kernel timer; needs no ownership. Returns 0 or -EAGAIN. */
	int (*ready)(struct csink_timerq *q);
	/* The owner's: arm the timer, again if it has fired, or disarm it and take the handler away. */
	void (*set)(struct csink_timerq *q, uint64_t next_ns, bool has_fired);
};

extern const struct csink_timerq_alarm csink_timerq_alarm;

static inline int csink_timerq_ready(struct csink_timerq *q)
{
	return q->alarm ? q->alarm->ready(q) : 0;
}

/* Forked child: drop the parent's timer. No other thread uses q. */
void csink_timerq_alarm_reset(struct csink_timerq *q);
/* Delete the timer, put the disposition back, give the signal up, wait until no handler can see q. Context: thread. */
void csink_timerq_alarm_release(struct csink_timerq *q);
/* The queue that has this signal, or NULL. */
struct csink_timerq *csink_timerq_alarm_owner(int sig);

/*
 * create.c: a polled queue in CSINK_TIMERQ_BYTES(capacity) bytes that does not watch for forks, since its user creates
 * it again in every child that goes on with it: saves a page and a hook in each process. Context: init.
 */
struct csink_timerq *csink_timerq_init_unwatched(void *mem, uint32_t capacity, uint64_t (*clock)(void));

/* create.c: have the kernel, and fork(3), distinguish processes from now on. Returns 0 or -ENOMEM. Context: thread. */
int csink_timerq_watch_forks(void);

/* timer_fork.c: which process are we in. Context: signal. */

/* From now on *word distinguishes processes: it is zeroed in a forked child, by the kernel or by process_forked below.
 */
void csink_timerq_process_watch(_Atomic uint32_t *word);
bool csink_timerq_process_watched(void);
/* A number that no watched queue of an ancestor process has; always the same as long as nothing is watched. */
uint32_t csink_timerq_process_epoch(void);
/* fork(3)'s child: have events go on that are to, without waiting for the next call. */
void csink_timerq_process_forked(void);
/* Empty, or re-arm, a queue that comes from our parent. NULL as long as nothing is watched. */
extern void (*csink_timerq_adopt)(struct csink_timerq *q) CSINK_HIDDEN;

static inline void csink_timerq_ensure(struct csink_timerq *q)
{
	/* Pairs with the release in adopt() of timer_fork.c. */
	if (CSINK_UNLIKELY(atomic_load_explicit(&q->epoch, memory_order_acquire) != csink_timerq_process_epoch()))
		csink_timerq_adopt(q);
}

#endif
