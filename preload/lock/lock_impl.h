/* What the files of libcountersink-lock.so share. */
#ifndef CSINK_LOCK_IMPL_H
#define CSINK_LOCK_IMPL_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "include/internal/base.h"
#include "include/internal/lock_object.h"
#include "preload/objects/caller.h"

/* What is called: an argument of csink_slow(). */
enum csink_lock_how {
	MUTEX,
	MUTEX_TIMED,
	MUTEX_CLOCK,
	READ,
	READ_TIMED,
	READ_CLOCK,
	WRITE,
	WRITE_TIMED,
	WRITE_CLOCK,
	MTX,
	MTX_TIMED,
	FIRST_UNLOCK,
	MUTEX_UNLOCK = FIRST_UNLOCK,
	RW_UNLOCK,
	MTX_UNLOCK,
	FIRST_PLAIN, /* from here on: waits that no holder ends */
	SEMAPHORE = FIRST_PLAIN,
	SEMAPHORE_TIMED,
	SEMAPHORE_CLOCK,
	JOIN,
	JOIN_TIMED,
	JOIN_CLOCK,
	JOIN_C11,
	BARRIER,
	CONDITION,
	CONDITION_TIMED,
	CONDITION_CLOCK,
	CND,
	CND_TIMED,
	FUTEX = 32, /* of futex_call.c */
	FUTEXES,    /* futex_waitv(2) */
	FIRST_INIT,
	INIT_MUTEX = FIRST_INIT,
	INIT_RWLOCK,
	INIT_CONDITION,
	INIT_BARRIER,
	INIT_SEMAPHORE,
	INIT_MTX,
	INIT_CND
};

/* What a function gives that libc lacks: of those that programs call none is, but for the first half of ours. */
#define CSINK_LOCK_NONE (-1)

/* A function of CSINK_NEXT_TABLE that finds the next one and calls it. */
#define CSINK_LOCK_FINDER(type, name, arguments, values)                                                               \
	static type first_##name arguments                                                                             \
	{                                                                                                              \
		void *found = csink_next_function(#name);                                                              \
                                                                                                                       \
		if (!found)                                                                                            \
			return CSINK_LOCK_NONE;                                                                        \
		__atomic_store_n((void **)&next.name, found, __ATOMIC_RELAXED);                                        \
		return next.name values;                                                                               \
	}

extern struct csink_lock_agent csink_lock_agent CSINK_HIDDEN;
extern uint32_t csink_lock_nr_forks
	CSINK_HIDDEN; /* that this process comes from: entries from before are not its own */

extern bool csink_lock_has_conditions CSINK_HIDDEN; /* waits for conditions are asked for */

/** What libc asks of a time limit before it looks at the lock: the nanoseconds, and the clock. */
static inline bool csink_lock_is_time(const struct timespec *until)
{
	return (unsigned long)until->tv_nsec < 1000000000;
}

static inline bool csink_lock_is_clock(clockid_t clock)
{
	return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC;
}

/** Nothing to measure with, or no signal may be blocked meanwhile. Context: any. */
bool csink_lock_passes_on(void);

/** The stack of a caller. Context: thread, signals blocked. */
uint32_t csink_lock_walk(const struct csink_caller *caller);

/**
 * The entry for sums of a waiter, holder and lock. Where there is no more room for it, that of the waiter's other
 * locks, with an unknown holder. Returns NULL where there is no room for this either. Context: thread, signals blocked.
 */
struct csink_rec_wait *csink_lock_entry(uint32_t waiter, uint32_t holder, uint64_t lock);

/**
 * The calling thread begins to wait, as a row with an end that is not known yet.
 * @entry       NULL: there is none.
 * @nr_waiting  counted down when the wait is over; NULL: no such number.
 * Returns a number for csink_lock_wait_over(). Context: thread, signals blocked, not on an alternate stack.
 */
uint32_t csink_lock_wait_begun(struct csink_rec_wait *entry, uint64_t begin_ns, _Atomic uint32_t *nr_waiting,
			       const struct csink_caller *caller);

/** One less, but not below 0. Context: any. */
void csink_lock_count_down(_Atomic uint32_t *nr_waiting);

/** It is over; again: nothing. @nr 0: none has begun. Context: thread. */
void csink_lock_wait_over(uint32_t nr, const struct csink_caller *caller);

/** A call of the thread's shows which of its waits a jump has left. Context: as csink_lock_wait_begun(). */
void csink_lock_drop_left(const struct csink_caller *caller);

/** The thread was asleep: who released a lock that it has had and given back has walked its stack meanwhile. Context:
 * thread. */
void csink_lock_finish_late(void);

/** Add to the recording where a lock was initialised, once. Context: thread, signals blocked. */
void csink_lock_note_site(uint64_t lock);

/** Sums from now on. Context: init. */
void csink_lock_begin(const struct csink_lock_agent *from);

/** In a forked child: the sums are the parent's. Context: init. */
void csink_lock_forget(void);

/** csink_slow() of a wait that no holder ends. errno and the result are the call's own. Context: thread. */
intptr_t csink_lock_wait_plainly(uintptr_t a, uintptr_t b, uintptr_t c, enum csink_lock_how how,
				 const struct csink_caller *caller);

/** csink_slow() of a function that initialises a lock: as csink_lock_wait_plainly(). */
intptr_t csink_lock_init(uintptr_t a, uintptr_t b, uintptr_t c, enum csink_lock_how how,
			 const struct csink_caller *caller);

/** The calling thread, which holds a lock, is about to wait for a condition. Context: thread. */
void csink_lock_release_in_condition(void *lock);

/** futex(2) itself, with the arguments of the caller's syscall(2). Context: any. */
long csink_lock_futex(uintptr_t word, uintptr_t operation, uintptr_t value, const struct csink_caller *caller);

/** The same for futex_waitv(2). */
long csink_lock_futexes(uintptr_t words, uintptr_t nr, uintptr_t flags, const struct csink_caller *caller);

/** The first word that a call of futex_waitv(2) waits for; 0: the kernel will refuse the call. Context: any. */
uintptr_t csink_lock_first_word(uintptr_t words, uintptr_t nr);

#endif
