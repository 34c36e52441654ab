/*
 * Waits that no holder ends: for semaphores, for the end of threads, at barriers, for conditions where that is asked
 * for, and in futex(2) by syscall(2). Each is a row of its own, with what is waited for and without a holder.
 *
 * Any thread, at any time, as lock.c. A wait may be cancelled, or left by a jump.
 */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>
#include <threads.h>
#include <time.h>

#include "include/internal/base.h"
#include "preload/lock/lock_impl.h"
#include "preload/objects/block.h"
#include "preload/objects/caller.h"
#include "preload/objects/next.h"

/* clang-format off */
#define NEXT(X) \
	X(int, sem_trywait, (sem_t *s), (s)) \
	X(int, sem_wait, (sem_t *s), (s)) \
	X(int, sem_timedwait, (sem_t *s, const struct timespec *t), (s, t)) \
	X(int, sem_clockwait, (sem_t *s, clockid_t c, const struct timespec *t), (s, c, t)) \
	X(int, pthread_join, (pthread_t p, void **r), (p, r)) \
	X(int, pthread_timedjoin_np, (pthread_t p, void **r, const struct timespec *t), (p, r, t)) \
	X(int, pthread_clockjoin_np, (pthread_t p, void **r, clockid_t c, const struct timespec *t), (p, r, c, t)) \
	X(int, thrd_join, (thrd_t p, int *r), (p, r)) \
	X(int, pthread_barrier_wait, (pthread_barrier_t *b), (b)) \
	X(int, pthread_cond_wait, (pthread_cond_t *v, pthread_mutex_t *m), (v, m)) \
	X(int, pthread_cond_timedwait, (pthread_cond_t *v, pthread_mutex_t *m, const struct timespec *t), (v, m, t)) \
	X(int, pthread_cond_clockwait, (pthread_cond_t *v, pthread_mutex_t *m, clockid_t c, const struct timespec *t), (v, m, c, t)) \
	X(int, cnd_wait, (cnd_t *v, mtx_t *m), (v, m)) \
	X(int, cnd_timedwait, (cnd_t *v, mtx_t *m, const struct timespec *t), (v, m, t)) \
	X(int, pthread_testcancel, (void), ()) /* it returns nothing */
/* clang-format on */

CSINK_NEXT_TABLE(NEXT)

#define X(type, name, arguments, values) CSINK_LOCK_FINDER(type, name, arguments, values)
NEXT(X)
#undef X

static intptr_t wait_now(uintptr_t a, uintptr_t b, uintptr_t c, enum csink_lock_how how,
			 const struct csink_caller *caller)
{
	const struct timespec *until = (const struct timespec *)c;

	switch (how) {
	case SEMAPHORE:
		return next.sem_wait((sem_t *)a);
	case SEMAPHORE_TIMED:
		return next.sem_timedwait((sem_t *)a, until);
	case SEMAPHORE_CLOCK:
		return next.sem_clockwait((sem_t *)a, (clockid_t)b, until);
	case JOIN:
		return next.pthread_join(a, (void **)b);
	case JOIN_TIMED:
		return next.pthread_timedjoin_np(a, (void **)b, until);
	case JOIN_CLOCK:
		return next.pthread_clockjoin_np(a, (void **)b, (clockid_t)caller->more[0], until);
	case JOIN_C11:
		return next.thrd_join(a, (int *)b);
	case BARRIER:
		return next.pthread_barrier_wait((pthread_barrier_t *)a);
	case CONDITION:
		return next.pthread_cond_wait((pthread_cond_t *)a, (pthread_mutex_t *)b);
	case CONDITION_TIMED:
		return next.pthread_cond_timedwait((pthread_cond_t *)a, (pthread_mutex_t *)b, until);
	case CONDITION_CLOCK:
		return next.pthread_cond_clockwait((pthread_cond_t *)a, (pthread_mutex_t *)b,
						   (clockid_t)caller->more[0], until);
	case CND:
		return next.cnd_wait((cnd_t *)a, (mtx_t *)b);
	case CND_TIMED:
		return next.cnd_timedwait((cnd_t *)a, (mtx_t *)b, until);
	case FUTEXES:
		return csink_lock_futexes(a, b, c, caller);
	default:
		return csink_lock_futex(a, b, c, caller);
	}
}

static const uint8_t kinds[] = {[SEMAPHORE] = CSINK_WAIT_SEMAPHORE,
				[SEMAPHORE_TIMED] = CSINK_WAIT_SEMAPHORE,
				[SEMAPHORE_CLOCK] = CSINK_WAIT_SEMAPHORE,
				[JOIN] = CSINK_WAIT_JOIN,
				[JOIN_TIMED] = CSINK_WAIT_JOIN,
				[JOIN_CLOCK] = CSINK_WAIT_JOIN,
				[JOIN_C11] = CSINK_WAIT_JOIN,
				[BARRIER] = CSINK_WAIT_BARRIER,
				[CONDITION] = CSINK_WAIT_SIGNALLED,
				[CONDITION_TIMED] = CSINK_WAIT_SIGNALLED,
				[CONDITION_CLOCK] = CSINK_WAIT_SIGNALLED,
				[CND] = CSINK_WAIT_SIGNALLED,
				[CND_TIMED] = CSINK_WAIT_SIGNALLED,
				[FUTEX] = CSINK_WAIT_FUTEX,
				[FUTEXES] = CSINK_WAIT_FUTEX};

struct begun {
	uint64_t time_ns;
	struct csink_rec_wait *entry; /* NULL: none */
	uint32_t nr, nr_forks;
};

static struct begun begin(uintptr_t object, enum csink_lock_how how, const struct csink_caller *caller)
{
	struct begun begun = {.time_ns = csink_lock_agent.now_ns(), .nr_forks = csink_lock_nr_forks};
	uint32_t kind = kinds[how], waiter;
	uint64_t mask;

	if (!csink_block(&mask))
		return begun;
	waiter = csink_lock_walk(caller);
	if (waiter) {
		begun.entry = csink_lock_entry(waiter, kind, kind == CSINK_WAIT_JOIN ? CSINK_WAIT_OTHER_LOCKS : object);
		begun.nr = csink_lock_wait_begun(begun.entry, begun.time_ns, NULL, caller);
	}
	csink_unblock(&mask);
	return begun;
}

/* The kernel refused at once: the word had another value, or the call was wrong. */
static bool has_not_waited(enum csink_lock_how how, intptr_t result)
{
	return how >= FUTEX && result < 0 && errno != EINTR && errno != ETIMEDOUT;
}

static void end(const struct begun *begun)
{
	uint64_t now_ns = csink_lock_agent.now_ns(), ns = now_ns > begun->time_ns ? now_ns - begun->time_ns : 0;

	if (begun->nr_forks != csink_lock_nr_forks)
		return;
	csink_lock_agent.total(ns, 1);
	if (!begun->entry)
		return;
	__atomic_fetch_add(&begun->entry->delay_ns, ns, __ATOMIC_RELAXED);
	__atomic_fetch_add(&begun->entry->contentions, 1, __ATOMIC_RELAXED);
}

intptr_t csink_lock_wait_plainly(uintptr_t a, uintptr_t b, uintptr_t c, enum csink_lock_how how,
				 const struct csink_caller *caller)
{
	bool passes_on = csink_lock_passes_on();
	uintptr_t object = a;
	struct begun begun;
	int error = errno;
	intptr_t result;

	if (how == FUTEXES && !passes_on)
		object = csink_lock_first_word(a, b);
	if (passes_on || !object)
		return wait_now(a, b, c, how, caller);
	begun = begin(object, how, caller);
	errno = error;
	result = wait_now(a, b, c, how, caller);
	error = errno;
	csink_lock_wait_over(begun.nr, caller);
	if (!has_not_waited(how, result))
		end(&begun);
	csink_lock_finish_late();
	errno = error;
	return result;
}

/* ---- what the program calls ---- */

static __thread int *error_of_thread __attribute__((tls_model("initial-exec"))); /* to ask libc for it takes 0.7 ns */

/*
 * A semaphore is taken if it can be, as by the call itself: which is a point of cancellation in any case, and leaves
 * errno alone then.
 */
#define SEMAPHORE_WAIT(how, b, c)                                                                                      \
	int *error = error_of_thread ?: (error_of_thread = &errno), before = *error;                                   \
                                                                                                                       \
	next.pthread_testcancel();                                                                                     \
	if (CSINK_LIKELY(!next.sem_trywait(semaphore)))                                                                \
		return 0;                                                                                              \
	*error = before;                                                                                               \
	return csink_slow_entry_int((uintptr_t)semaphore, (uintptr_t)(b), (uintptr_t)(c), how)

CSINK_EXPORT int sem_wait(sem_t *semaphore)
{
	SEMAPHORE_WAIT(SEMAPHORE, 0, 0);
}

CSINK_EXPORT int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict until)
{
	if (!csink_lock_is_time(until))
		return next.sem_timedwait(semaphore, until);
	SEMAPHORE_WAIT(SEMAPHORE_TIMED, 0, until);
}

CSINK_EXPORT int sem_clockwait(sem_t *restrict semaphore, clockid_t clock, const struct timespec *restrict until)
{
	if (!csink_lock_is_clock(clock) || !csink_lock_is_time(until))
		return next.sem_clockwait(semaphore, clock, until);
	SEMAPHORE_WAIT(SEMAPHORE_CLOCK, clock, until);
}

CSINK_EXPORT int pthread_join(pthread_t thread, void **result)
{
	return csink_slow_entry_int(thread, (uintptr_t)result, 0, JOIN);
}

CSINK_EXPORT int pthread_timedjoin_np(pthread_t thread, void **result, const struct timespec *until)
{
	return csink_slow_entry_int(thread, (uintptr_t)result, (uintptr_t)until, JOIN_TIMED);
}

CSINK_EXPORT int pthread_clockjoin_np(pthread_t thread, void **result, clockid_t clock, const struct timespec *until)
{
	return csink_slow_entry_more(thread, (uintptr_t)result, (uintptr_t)until, JOIN_CLOCK, (uintptr_t)clock);
}

CSINK_EXPORT int thrd_join(thrd_t thread, int *result)
{
	return csink_slow_entry_int(thread, (uintptr_t)result, 0, JOIN_C11);
}

CSINK_EXPORT int pthread_barrier_wait(pthread_barrier_t *barrier)
{
	return csink_slow_entry_int((uintptr_t)barrier, 0, 0, BARRIER);
}

/*
 * Waiting for a condition releases the lock within libc, and takes it again: that time is not told from the wait.
 * Under the version in which libc has these now, so that the calls of old programs, with another layout of conditions,
 * are libc's: see libcountersink-lock.map.
 */
CSINK_EXPORT int csink_cond_wait(pthread_cond_t *condition, pthread_mutex_t *lock) __asm__("pthread_cond_wait");
CSINK_EXPORT int csink_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *lock,
				      const struct timespec *until) __asm__("pthread_cond_timedwait");

#define CONDITION_WAIT(how, until, more)                                                                               \
	csink_lock_release_in_condition(lock);                                                                         \
	if (CSINK_UNLIKELY(csink_lock_has_conditions))                                                                 \
	return csink_slow_entry_more((uintptr_t)condition, (uintptr_t)lock, (uintptr_t)(until), how, (uintptr_t)(more))

int csink_cond_wait(pthread_cond_t *condition, pthread_mutex_t *lock)
{
	CONDITION_WAIT(CONDITION, 0, 0);
	return next.pthread_cond_wait(condition, lock);
}

int csink_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *lock, const struct timespec *until)
{
	CONDITION_WAIT(CONDITION_TIMED, until, 0);
	return next.pthread_cond_timedwait(condition, lock, until);
}

CSINK_EXPORT int pthread_cond_clockwait(pthread_cond_t *condition, pthread_mutex_t *lock, clockid_t clock,
					const struct timespec *until)
{
	CONDITION_WAIT(CONDITION_CLOCK, until, clock);
	return next.pthread_cond_clockwait(condition, lock, clock, until);
}

CSINK_EXPORT int cnd_wait(cnd_t *condition, mtx_t *lock)
{
	CONDITION_WAIT(CND, 0, 0);
	return next.cnd_wait(condition, lock);
}

CSINK_EXPORT int cnd_timedwait(cnd_t *restrict condition, mtx_t *restrict lock, const struct timespec *restrict until)
{
	CONDITION_WAIT(CND_TIMED, until, 0);
	return next.cnd_timedwait(condition, lock, until);
}
