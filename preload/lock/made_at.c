/*
 * Where locks were initialised: the address behind the call, for those that threads wait for later. A table of a fixed
 * size, by the lock's address; a lock that is not in it has no such name. Any thread; no lock: an entry that two
 * threads write at once does not fit together, and is none.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stddef.h>
#include <threads.h>

#include "include/internal/base.h"
#include "preload/lock/lock_impl.h"
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

enum { NR_MADE = 4096, WINDOW = 4, NOTED_SHIFT = 48 };

static struct made {
	_Atomic uintptr_t lock;
	/* The address, hidden by the lock's. Above it, of which process the recording has it: one more than its
	 * nr_forks. */
	_Atomic uint64_t site;
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

static void keep(const void *lock, const void *site)
{
	struct made *made = place_of((uintptr_t)lock);

	atomic_store_explicit(&made->lock, (uintptr_t)lock, memory_order_relaxed);
	atomic_store_explicit(&made->site, (uintptr_t)site ^ mixed((uintptr_t)lock), memory_order_relaxed);
}

void csink_lock_note_site(uint64_t lock)
{
	struct made *made = place_of(lock);
	uint64_t was = atomic_load_explicit(&made->site, memory_order_relaxed), found = was ^ mixed(lock);
	uint64_t site = found & ((1ULL << NOTED_SHIFT) - 1);
	uint64_t noted = site | (uint64_t)((csink_lock_nr_forks + 1) & 0xff) << NOTED_SHIFT;
	struct csink_rec_wait *entry;

	/* Without a site it is an entry that is free. */
	if (!site || atomic_load_explicit(&made->lock, memory_order_relaxed) != lock || found >> (NOTED_SHIFT + 8) ||
	    found == noted || !atomic_compare_exchange_strong(&made->site, &was, noted ^ mixed(lock)))
		return;
	entry = csink_lock_agent.entry(0, CSINK_WAIT_MADE, lock);
	if (entry)
		entry->open = site;
}

/* ---- what the program calls ---- */

#define INIT(name, lock, arguments, values)                                                                            \
	CSINK_EXPORT int name arguments                                                                                \
	{                                                                                                              \
		keep(lock, __builtin_return_address(0));                                                               \
		return next.name values;                                                                               \
	}

INIT(pthread_mutex_init, mutex, (pthread_mutex_t * mutex, const pthread_mutexattr_t *attr), (mutex, attr))
INIT(pthread_rwlock_init, lock, (pthread_rwlock_t *restrict lock, const pthread_rwlockattr_t *restrict attr),
     (lock, attr))
INIT(pthread_barrier_init, barrier,
     (pthread_barrier_t *restrict barrier, const pthread_barrierattr_t *restrict attr, unsigned int count),
     (barrier, attr, count))
INIT(sem_init, semaphore, (sem_t * semaphore, int shared, unsigned int value), (semaphore, shared, value))
INIT(mtx_init, mutex, (mtx_t * mutex, int type), (mutex, type))
INIT(cnd_init, condition, (cnd_t * condition), (condition))

/* Of the newer layout: see libcountersink-lock.map. */
CSINK_EXPORT int csink_cond_init(pthread_cond_t *condition,
				 const pthread_condattr_t *attr) __asm__("pthread_cond_init");

int csink_cond_init(pthread_cond_t *condition, const pthread_condattr_t *attr)
{
	keep(condition, __builtin_return_address(0));
	return next.pthread_cond_init(condition, attr);
}
