/*
 * Where locks were initialised: the address behind the call and its stack, for those that threads wait for later. A
 * table of a fixed size, by the lock's address; a lock that is not in it has no such name. Programs may initialise
 * millions of locks: a stack is walked for the first ones, then for one in a millisecond. Any thread; no lock: an entry
 * that two threads write at once does not fit together, and is none.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stddef.h>
#include <threads.h>

#include "include/internal/base.h"
#include "preload/lock/lock_impl.h"
#include "preload/objects/block.h"
#include "preload/objects/caller.h"
#include "preload/objects/next.h"

/* clang-format off */
#define NEXT(X) \
	X(int, pthread_mutex_init, (pthread_mutex_t *m, const pthread_mutexattr_t *a), (m, a)) \
	X(int, pthread_rwlock_init, (pthread_rwlock_t *l, const pthread_rwlockattr_t *a), (l, a)) \
	X(int, pthread_cond_init, (pthread_cond_t *v, const pthread_condattr_t *a), (v, a)) \
	X(int, pthread_barrier_init, (pthread_barrier_t *b, const pthread_barrierattr_t *a, unsigned int n), (b, a, n)) \
	X(int, sem_init, (sem_t *s, int shared, unsigned int value), (s, shared, value)) \
	X(int, mtx_init, (mtx_t *m, int type), (m, type)) \
	X(int, cnd_init, (cnd_t *v), (v))
/* clang-format on */

CSINK_NEXT_TABLE(NEXT)

#define X(type, name, arguments, values) CSINK_LOCK_FINDER(type, name, arguments, values)
NEXT(X)
#undef X

enum { NR_MADE = 4096, WINDOW = 4, NOTED_SHIFT = 48, ROW_SHIFT = 32 };

static struct made {
	_Atomic uintptr_t lock;
	/* The address, hidden by the lock's. Above it, of which process the recording has it: one more than its
	 * nr_forks. */
	_Atomic uint64_t site;
	/* The agent's number of the stack, hidden likewise. Above it, of which process. */
	_Atomic uint64_t row;
} all[NR_MADE];

static uint64_t mixed(uintptr_t lock)
{
	return (lock >> 3) * 0x9e3779b97f4a7c15ULL;
}

/* An entry of the lock's; else one that is free; else one that another lock has. */
static struct made *place_of(uintptr_t lock)
{
	uint32_t first = (uint32_t)(mixed(lock) >> 52), free = WINDOW;

	for (uint32_t i = 0; i < WINDOW; i++) {
		uintptr_t was = atomic_load_explicit(&all[(first + i) % NR_MADE].lock, memory_order_relaxed);

		if (was == lock)
			return &all[(first + i) % NR_MADE];
		if (!was && free == WINDOW)
			free = i;
	}
	return &all[(first + free % WINDOW) % NR_MADE];
}

/* Above a number of 32 or 48 bits. */
static uint64_t process_bits(void)
{
	return (csink_lock_nr_forks + 1) & 0xff;
}

/* May one more stack be walked? The first ones, then one a millisecond. */
static bool may_walk(void)
{
	static _Atomic uint64_t nr_walked, last_ms;
	uint64_t now_ms, last;

	if (atomic_load_explicit(&nr_walked, memory_order_relaxed) < NR_MADE) {
		atomic_fetch_add_explicit(&nr_walked, 1, memory_order_relaxed);
		return true;
	}
	now_ms = csink_lock_agent.now_ns() / 1000000;
	last = atomic_load_explicit(&last_ms, memory_order_relaxed);
	return last < now_ms && atomic_compare_exchange_strong_explicit(&last_ms, &last, now_ms, memory_order_relaxed,
									memory_order_relaxed);
}

static void keep(const void *lock, const void *site, uint32_t row)
{
	struct made *made = place_of((uintptr_t)lock);

	atomic_store_explicit(&made->lock, (uintptr_t)lock, memory_order_relaxed);
	atomic_store_explicit(&made->site, (uintptr_t)site ^ mixed((uintptr_t)lock), memory_order_relaxed);
	atomic_store_explicit(&made->row, (process_bits() << ROW_SHIFT | row) ^ mixed((uintptr_t)lock),
			      memory_order_relaxed);
}

/* The stack of another process is none of this one's recording. */
static uint32_t row_of(const struct made *made, uint64_t lock)
{
	uint64_t found = atomic_load_explicit(&made->row, memory_order_relaxed) ^ mixed(lock);

	return found >> ROW_SHIFT == process_bits() ? (uint32_t)found : 0;
}

void csink_lock_note_site(uint64_t lock)
{
	struct made *made = place_of(lock);
	uint64_t was = atomic_load_explicit(&made->site, memory_order_relaxed), found = was ^ mixed(lock);
	uint64_t site = found & ((1ULL << NOTED_SHIFT) - 1);
	uint64_t noted = site | process_bits() << NOTED_SHIFT;
	struct csink_rec_wait *entry;

	/* Without a site it is an entry that is free. */
	if (!site || atomic_load_explicit(&made->lock, memory_order_relaxed) != lock || found >> (NOTED_SHIFT + 8) ||
	    found == noted || !atomic_compare_exchange_strong(&made->site, &was, noted ^ mixed(lock)))
		return;
	entry = csink_lock_agent.entry(row_of(made, lock), CSINK_WAIT_MADE, lock);
	if (entry)
		entry->open = site;
}

intptr_t csink_lock_init(uintptr_t a, uintptr_t b, uintptr_t c, enum csink_lock_how how,
			 const struct csink_caller *caller)
{
	uint32_t row = 0;
	uint64_t mask;

	if (!csink_lock_passes_on() && may_walk() && csink_block(&mask)) {
		CSINK_KEEP_ERRNO;

		row = csink_lock_walk(caller);
		csink_unblock(&mask);
	}
	keep((const void *)a, (const void *)caller->pc, row);
	switch (how) {
	case INIT_MUTEX:
		return next.pthread_mutex_init((pthread_mutex_t *)a, (const pthread_mutexattr_t *)b);
	case INIT_RWLOCK:
		return next.pthread_rwlock_init((pthread_rwlock_t *)a, (const pthread_rwlockattr_t *)b);
	case INIT_CONDITION:
		return next.pthread_cond_init((pthread_cond_t *)a, (const pthread_condattr_t *)b);
	case INIT_BARRIER:
		return next.pthread_barrier_init((pthread_barrier_t *)a, (const pthread_barrierattr_t *)b,
						 (unsigned int)c);
	case INIT_SEMAPHORE:
		return next.sem_init((sem_t *)a, (int)b, (unsigned int)c);
	case INIT_MTX:
		return next.mtx_init((mtx_t *)a, (int)b);
	default:
		return next.cnd_init((cnd_t *)a);
	}
}

/* ---- what the program calls ---- */

#define INIT(name, arguments, how, a, b, c)                                                                            \
	CSINK_EXPORT int name arguments                                                                                \
	{                                                                                                              \
		return csink_slow_entry_int((uintptr_t)(a), (uintptr_t)(b), (uintptr_t)(c), how);                      \
	}

INIT(pthread_mutex_init, (pthread_mutex_t * mutex, const pthread_mutexattr_t *attr), INIT_MUTEX, mutex, attr, 0)
INIT(pthread_rwlock_init, (pthread_rwlock_t *restrict lock, const pthread_rwlockattr_t *restrict attr), INIT_RWLOCK,
     lock, attr, 0)
INIT(pthread_barrier_init,
     (pthread_barrier_t *restrict barrier, const pthread_barrierattr_t *restrict attr, unsigned int count),
     INIT_BARRIER, barrier, attr, count)
INIT(sem_init, (sem_t * semaphore, int shared, unsigned int value), INIT_SEMAPHORE, semaphore, shared, value)
INIT(mtx_init, (mtx_t * mutex, int type), INIT_MTX, mutex, type, 0)
INIT(cnd_init, (cnd_t * condition), INIT_CND, condition, 0, 0)

/* Of the newer layout: see libcountersink-lock.map. */
CSINK_EXPORT int csink_cond_init(pthread_cond_t *condition,
				 const pthread_condattr_t *attr) __asm__("pthread_cond_init");
INIT(csink_cond_init, (pthread_cond_t * condition, const pthread_condattr_t *attr), INIT_CONDITION, condition, attr, 0)
