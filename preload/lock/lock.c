/*
 * The program's locks, measured: who waits, for which lock, and who released it meanwhile. A lock that is free costs a
 * trylock, an unlock without a waiter a load. Who waits is registered; who releases a lock that somebody waits for
 * walks its own stack, after the unlock. The waiter cuts its wait at each of these releases, when it unlocks itself.
 *
 * Any thread, at any time: before constructors run, too. No lock of ours, and no call of libc's but the clock and the
 * program's own locks.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <threads.h>
#include <time.h>
#include <ucontext.h>

#include "include/internal/base.h"
#include "include/internal/lock_object.h"
#include "include/internal/rawcall.h"
#include "include/internal/shared_options.h"
#include "preload/lock/lock_impl.h"
#include "preload/objects/block.h"
#include "preload/objects/caller.h"
#include "preload/objects/next.h"
#include "preload/objects/plain_text.h"

/* ---- the next definitions ---- */

/* clang-format off */
#define NEXT(X) \
	X(int, pthread_mutex_lock, (pthread_mutex_t *m), (m)) \
	X(int, pthread_mutex_trylock, (pthread_mutex_t *m), (m)) \
	X(int, pthread_mutex_timedlock, (pthread_mutex_t *m, const struct timespec *t), (m, t)) \
	X(int, pthread_mutex_clocklock, (pthread_mutex_t *m, clockid_t c, const struct timespec *t), (m, c, t)) \
	X(int, pthread_mutex_unlock, (pthread_mutex_t *m), (m)) \
	X(int, pthread_rwlock_rdlock, (pthread_rwlock_t *l), (l)) \
	X(int, pthread_rwlock_tryrdlock, (pthread_rwlock_t *l), (l)) \
	X(int, pthread_rwlock_timedrdlock, (pthread_rwlock_t *l, const struct timespec *t), (l, t)) \
	X(int, pthread_rwlock_clockrdlock, (pthread_rwlock_t *l, clockid_t c, const struct timespec *t), (l, c, t)) \
	X(int, pthread_rwlock_wrlock, (pthread_rwlock_t *l), (l)) \
	X(int, pthread_rwlock_trywrlock, (pthread_rwlock_t *l), (l)) \
	X(int, pthread_rwlock_timedwrlock, (pthread_rwlock_t *l, const struct timespec *t), (l, t)) \
	X(int, pthread_rwlock_clockwrlock, (pthread_rwlock_t *l, clockid_t c, const struct timespec *t), (l, c, t)) \
	X(int, pthread_rwlock_unlock, (pthread_rwlock_t *l), (l)) \
	X(int, mtx_lock, (mtx_t *m), (m)) \
	X(int, mtx_trylock, (mtx_t *m), (m)) \
	X(int, mtx_timedlock, (mtx_t *m, const struct timespec *t), (m, t)) \
	X(int, mtx_unlock, (mtx_t *m), (m))
/* clang-format on */

CSINK_NEXT_TABLE(NEXT)

#define X(type, name, arguments, values) CSINK_LOCK_FINDER(type, name, arguments, values)
NEXT(X)
#undef X

/*
 * From glibc 2.25 on, before 2.30, to try a lock of this kind could leave other threads asleep (its bug 23844): there
 * they are passed on. What came with 2.30 shows which it is.
 */
static int no_try(pthread_rwlock_t *lock)
{
	(void)lock;
	return CSINK_LOCK_NONE;
}

static void choose_tries(void)
{
	if (csink_next_function("pthread_rwlock_clockrdlock"))
		return;
	next.pthread_rwlock_tryrdlock = no_try;
	next.pthread_rwlock_trywrlock = no_try;
}

/* ---- who waits ---- */

/* A slot's releases are four pages: 40 bytes each. */
enum {
	NR_SLOTS = 4096,
	NR_RELEASES = 409,
	FEW = 100,
	NR_UNDER_WAY = 16,
	BEING_WALKED = UINT32_MAX,
	READER = UINT32_MAX
};

/* A release of a lock that somebody waited for. */
struct release {
	_Atomic uint64_t time_ns; /* 0: it is being written */
	_Atomic uint64_t lock;
	_Atomic uint64_t had_ns; /* since when the thread had it; 0: not known, as no thread waited then */
	_Atomic uint32_t holder; /* the agent's number of a stack; BEING_WALKED: it is being walked */
	_Atomic uint32_t owner;  /* the thread, in the lock's own words; READER: one of several */
};

/* Locks whose addresses have the same hash share one. */
struct slot {
	_Alignas(64) _Atomic uint32_t nr_waiting;
	_Atomic uint32_t nr_releases;
	_Atomic uint32_t has_others; /* another process has held one that is shared by processes */
	struct release *_Atomic releases;
};
static struct slot slots[NR_SLOTS];

static struct slot *slot_of(const void *lock)
{
	return &slots[((uintptr_t)lock >> 3) * 0x9e3779b97f4a7c15ULL >> 52];
}

/* A wait that is over, until its thread releases the lock. */
struct wait {
	const void *lock; /* NULL: there is none */
	uint64_t begin_ns, end_ns;
	uint32_t waiter;
	/* Of the slot, by their numbers: as the wait began, once its stack was walked, and at its end. */
	uint32_t seen_release, first_release, last_release;
	uint32_t owner;                 /* of a lock that processes share: who had it as the wait began; 0: not known */
	bool is_shared;                 /* it is such a lock, and this thread has it now */
	bool is_late;                   /* who released it last was still being walked */
	bool is_refused;                /* it ended without the lock, as its time was over */
	uint32_t nr_forks;              /* as it began */
	struct csink_rec_wait *pending; /* has it until its lock is released; NULL: none */
};

static __thread struct {
	struct wait wait;
	/* Locks that it took lately while other threads waited, and when. */
	struct taken {
		const void *lock;
		uint64_t time_ns;
	} taken[4];
	uint32_t next_taken;
} self __attribute__((tls_model("initial-exec")));

static void note_taken(const void *lock, uint64_t time_ns)
{
	self.taken[self.next_taken++ % CSINK_ARRAY_SIZE(self.taken)] = (struct taken){lock, time_ns};
}

/* Since when this thread has a lock, as it took it last, which is forgotten; 0: not known, no other thread waited then.
 */
static uint64_t taken_ns(const void *lock)
{
	struct taken *last = NULL;

	for (uint32_t i = 0; i < CSINK_ARRAY_SIZE(self.taken); i++)
		if (self.taken[i].lock == lock && (!last || self.taken[i].time_ns > last->time_ns))
			last = &self.taken[i];
	if (!last)
		return 0;
	last->lock = NULL;
	return last->time_ns;
}

static void add_to(struct csink_rec_wait *entry, uint64_t ns, uint64_t nr)
{
	if (!entry)
		return;
	__atomic_fetch_add(&entry->delay_ns, ns, __ATOMIC_RELAXED);
	__atomic_fetch_add(&entry->contentions, nr, __ATOMIC_RELAXED);
}

static void add(const struct wait *wait, uint32_t holder, uint64_t ns, uint32_t nr)
{
	if (ns || nr)
		add_to(csink_lock_entry(wait->waiter, holder, (uintptr_t)wait->lock), ns, nr);
}

/* A release in a wait. Times are since the wait's beginning, in units (struct cuts); small, as some are on the stack.
 */
struct cut {
	uint32_t at;
	uint32_t since; /* since when the thread had the lock; NOT_KNOWN, until find_since() */
	uint32_t held;  /* its part of the wait */
	uint32_t holder, owner;
};

struct cuts {
	struct cut *all; /* oldest first: those on the stack, or a mapping for more */
	uint32_t nr, cap;
	uint32_t shift; /* a unit is 1 << shift ns: a wait of more than 4 s has larger ones */
	bool is_cut;    /* there were more, which are overwritten */
	bool is_late;   /* one of them is still being walked */
	struct cut few[FEW];
};

/* For a release at that time. Without memory for more, the oldest one is dropped. Returns false if that is this one. */
static bool make_room(struct cuts *cuts, uint32_t time)
{
	long at;

	if (cuts->nr < cuts->cap)
		return true;
	at = cuts->is_cut ? -ENOMEM
			  : csink_rawcall(SYS_mmap, NULL, NR_RELEASES * sizeof(*cuts->all), PROT_READ | PROT_WRITE,
					  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (csink_raw_failed(at)) {
		cuts->is_cut = true;
		if (time < cuts->all[0].at)
			return false;
		memmove(cuts->all, cuts->all + 1, --cuts->nr * sizeof(*cuts->all));
		return true;
	}
	memcpy((void *)at, cuts->few, sizeof(cuts->few));
	cuts->all = (struct cut *)at;
	cuts->cap = NR_RELEASES;
	return true;
}

static void free_cuts(struct cuts *cuts)
{
	if (cuts->all != cuts->few)
		csink_rawcall(SYS_munmap, cuts->all, NR_RELEASES * sizeof(*cuts->all));
}

enum { NOT_KNOWN = UINT32_MAX };

static bool has_timeline;
static _Atomic uint32_t nr_dated;

/* The release that ended a wait, with its time: the critical path goes on there. So many that a recording has room for
 * them, however long it gets. */
static void date(const struct wait *wait, const struct cuts *cuts)
{
	const struct cut *last = &cuts->all[cuts->nr - 1];
	struct csink_rec_wait *entry = NULL;

	if (has_timeline && last->holder >= CSINK_WAIT_NR_HOLDERS &&
	    wait->end_ns - wait->begin_ns >=
		    CSINK_WAIT_DATED_LEAST_NS(atomic_load_explicit(&nr_dated, memory_order_relaxed)))
		entry = csink_lock_agent.entry(wait->waiter, last->holder, (uintptr_t)wait->lock);
	if (!entry)
		return;
	atomic_fetch_add_explicit(&nr_dated, 1, memory_order_relaxed);
	/* Without a time, a reader passes it over. */
	__atomic_store_n(&entry->contentions, CSINK_WAIT_DATED, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->delay_ns, wait->begin_ns + ((uint64_t)last->at << cuts->shift), __ATOMIC_RELEASE);
}

/*
 * The releases of a lock between the begin and the end of a wait. Of those that were overwritten, it is not known whose
 * they were. A thread takes a number before its time: a few of the numbers that were given as the wait began may be of
 * the wait. A mutex has one such thread; only readers, and locks that share the slot, could have more than are visited.
 */
static void take_releases(const struct wait *wait, const struct slot *slot, struct cuts *cuts)
{
	struct release *all = atomic_load_explicit(&slot->releases, memory_order_acquire);
	uint64_t ns = wait->end_ns - wait->begin_ns;
	uint32_t nr = atomic_load_explicit(&slot->nr_releases, memory_order_relaxed);
	uint32_t nr_new = nr - wait->seen_release + NR_UNDER_WAY;
	uint32_t from = nr - CSINK_MIN(nr_new, CSINK_MIN(nr, (uint32_t)NR_RELEASES));

	cuts->all = cuts->few;
	cuts->nr = 0;
	cuts->cap = FEW;
	cuts->is_late = cuts->is_cut = false;
	cuts->shift = ns >> 32 ? 32 - (uint32_t)__builtin_clzll(ns) : 0;
	for (uint32_t n = from; all && n != nr; n++) {
		uint32_t i = n % NR_RELEASES;
		uint64_t time_ns = atomic_load_explicit(&all[i].time_ns, memory_order_acquire);
		uint64_t had_ns = atomic_load_explicit(&all[i].had_ns, memory_order_relaxed);
		uint32_t holder = atomic_load_explicit(&all[i].holder, memory_order_relaxed), k;
		uint32_t owner = atomic_load_explicit(&all[i].owner, memory_order_relaxed);
		struct cut cut = {.holder = holder == BEING_WALKED ? CSINK_WAIT_UNKNOWN : holder, .owner = owner};

		if (time_ns <= wait->begin_ns || time_ns > wait->end_ns ||
		    atomic_load_explicit(&all[i].lock, memory_order_relaxed) != (uintptr_t)wait->lock)
			continue;
		atomic_thread_fence(memory_order_acquire);
		if (atomic_load_explicit(&all[i].time_ns, memory_order_relaxed) != time_ns)
			continue;
		cuts->is_late |= holder == BEING_WALKED;
		cut.at = (uint32_t)((time_ns - wait->begin_ns) >> cuts->shift);
		/* A time from before the wait may be that of an earlier hold. */
		cut.since = had_ns <= wait->begin_ns
				    ? NOT_KNOWN
				    : (uint32_t)((CSINK_MIN(had_ns, time_ns) - wait->begin_ns) >> cuts->shift);
		if (!make_room(cuts, cut.at))
			continue;
		for (k = cuts->nr++; k && cuts->all[k - 1].at > cut.at; k--)
			cuts->all[k] = cuts->all[k - 1];
		cuts->all[k] = cut;
	}
	cuts->is_cut |= wait->last_release != wait->first_release && nr - wait->first_release > NR_RELEASES;
}

/* Of a lock that processes share: did another one have it as the wait began? */
static bool is_others(const struct wait *wait, const struct cuts *cuts)
{
	return wait->is_shared && (cuts->nr ? wait->owner && wait->owner != cuts->all[0].owner : true);
}

/*
 * Since when each of them had the lock. Readers that took it in the wait, and who waited for it themselves, are known.
 * A reader else had it before the wait, or since the last writer gave it back; a writer since anybody gave it back.
 */
static void find_since(struct cuts *cuts, bool begins_with_others)
{
	uint32_t alone = 0;

	for (uint32_t i = 0; i < cuts->nr; i++) {
		struct cut *cut = &cuts->all[i];
		bool is_alone = cut->owner != READER;
		uint32_t least = is_alone && i ? cuts->all[i - 1].at : alone;

		if (!i && begins_with_others)
			least = cut->at;
		cut->since = cut->since == NOT_KNOWN ? least : CSINK_MAX(cut->since, i ? least : 0);
		cut->held = 0;
		if (is_alone)
			alone = cut->at;
	}
}

/*
 * Divide the time until the last release among those who held the lock: readers hold it together, and have equal parts
 * of each time in which as many did. @no_holder  has the time in which none of them did. Returns what is left of the
 * wait.
 */
static uint64_t add_held(const struct wait *wait, struct cuts *cuts, uint32_t no_holder)
{
	bool begins_with_others = is_others(wait, cuts);
	uint64_t left_ns = wait->end_ns - wait->begin_ns, free = 0, unknown_ns = 0;
	uint32_t from = 0, to;

	find_since(cuts, begins_with_others);
	if (cuts->is_cut) {
		from = cuts->all[0].at;
		unknown_ns = (uint64_t)from << cuts->shift;
		add(wait, CSINK_WAIT_UNKNOWN, unknown_ns, 1);
	}
	for (uint32_t first = 0; first < cuts->nr; from = to) {
		uint32_t nr_together = 0;

		/* To where another one takes or releases it. Those before @first have released it. */
		to = cuts->all[first].at;
		for (uint32_t i = first; i < cuts->nr; i++) {
			if (cuts->all[i].since > from)
				to = CSINK_MIN(to, cuts->all[i].since);
			nr_together += cuts->all[i].since <= from;
		}
		for (uint32_t i = first; nr_together && i < cuts->nr; i++)
			if (cuts->all[i].since <= from)
				cuts->all[i].held += (to - from) / nr_together;
		free += nr_together ? 0 : to - from;
		while (first < cuts->nr && cuts->all[first].at <= to)
			first++;
	}
	add(wait, no_holder, free << cuts->shift, begins_with_others && !cuts->is_cut);
	left_ns -= unknown_ns + (free << cuts->shift);
	for (uint32_t i = 0; i < cuts->nr; i++) {
		uint64_t ns = (uint64_t)cuts->all[i].held << cuts->shift;

		add(wait, cuts->all[i].holder, ns, !i && !begins_with_others && !cuts->is_cut);
		left_ns -= ns;
	}
	return left_ns;
}

/*
 * Who held the lock until each release; from the last one on it is free: the waiter was not on a CPU yet. So it is from
 * a release until who waited, too, has it. Where another process takes it, that time is the other process's. One whose
 * stack is still being walked, as it lost its CPU to the waiter, is asked for once more at the thread's next slow call.
 */
static void finish_wait(void)
{
	struct wait wait = self.wait;
	struct slot *slot = slot_of(wait.lock);
	uint64_t left_ns = wait.end_ns - wait.begin_ns;
	uint32_t no_holder = CSINK_WAIT_HAND_OFF;
	struct cuts cuts;

	take_releases(&wait, slot, &cuts);
	if (cuts.is_late && !wait.is_late) {
		self.wait.is_late = true;
		free_cuts(&cuts);
		return;
	}
	self.wait.lock = NULL;
	add_to(wait.pending, -left_ns, UINT64_MAX);
	csink_lock_agent.total(left_ns, 1);
	if (is_others(&wait, &cuts))
		atomic_store_explicit(&slot->has_others, 1, memory_order_relaxed);
	if (wait.is_shared && atomic_load_explicit(&slot->has_others, memory_order_relaxed))
		no_holder = CSINK_WAIT_OTHERS;
	if (cuts.nr)
		left_ns = add_held(&wait, &cuts, no_holder);
	/* Who had it when the wait was given up does not release it yet. */
	if (no_holder == CSINK_WAIT_HAND_OFF && (wait.is_refused || !cuts.nr))
		no_holder = CSINK_WAIT_UNKNOWN;
	if (no_holder == CSINK_WAIT_HAND_OFF)
		date(&wait, &cuts);
	add(&wait, no_holder, left_ns, !cuts.nr);
	free_cuts(&cuts);
}

void csink_lock_finish_late(void)
{
	uint64_t mask;

	if (!self.wait.lock || !self.wait.is_late || !csink_block(&mask))
		return;
	finish_wait();
	csink_unblock(&mask);
}

/* ---- slow halves ---- */

static int lock_now(void *lock, uintptr_t b, uintptr_t c, enum csink_lock_how how)
{
	switch (how) {
	case MUTEX:
		return next.pthread_mutex_lock(lock);
	case MUTEX_TIMED:
		return next.pthread_mutex_timedlock(lock, (const struct timespec *)b);
	case MUTEX_CLOCK:
		return next.pthread_mutex_clocklock(lock, (clockid_t)b, (const struct timespec *)c);
	case READ:
		return next.pthread_rwlock_rdlock(lock);
	case READ_TIMED:
		return next.pthread_rwlock_timedrdlock(lock, (const struct timespec *)b);
	case READ_CLOCK:
		return next.pthread_rwlock_clockrdlock(lock, (clockid_t)b, (const struct timespec *)c);
	case WRITE:
		return next.pthread_rwlock_wrlock(lock);
	case WRITE_TIMED:
		return next.pthread_rwlock_timedwrlock(lock, (const struct timespec *)b);
	case WRITE_CLOCK:
		return next.pthread_rwlock_clockwrlock(lock, (clockid_t)b, (const struct timespec *)c);
	case MTX:
		return next.mtx_lock(lock);
	case MTX_TIMED:
		return next.mtx_timedlock(lock, (const struct timespec *)b);
	case MUTEX_UNLOCK:
		return next.pthread_mutex_unlock(lock);
	case RW_UNLOCK:
		return next.pthread_rwlock_unlock(lock);
	default:
		return next.mtx_unlock(lock);
	}
}

/* The thread that has a lock, as glibc has it (C11's mutexes are the same); 0: one or more readers, or none. */
static uint32_t owner_of(const void *lock, enum csink_lock_how how)
{
	bool is_rwlock = (how >= READ && how <= WRITE_CLOCK) || how == RW_UNLOCK;
	const int *owner = is_rwlock ? &((const pthread_rwlock_t *)lock)->__data.__cur_writer
				     : &((const pthread_mutex_t *)lock)->__data.__owner;

	return (uint32_t)__atomic_load_n(owner, __ATOMIC_RELAXED);
}

/* Do processes share it? */
static bool is_shared(const void *lock, enum csink_lock_how how)
{
	if (how >= READ && how <= WRITE_CLOCK)
		return ((const pthread_rwlock_t *)lock)->__data.__shared;
	return ((const pthread_mutex_t *)lock)->__data.__kind & 0x80;
}

/* The stack is walked before the wait, which it is a part of. Returns the number of the wait; 0: it is not registered.
 */
static uint32_t begin_wait(struct wait *wait, struct slot *slot, const struct csink_caller *caller)
{
	uint32_t nr = 0;
	uint64_t mask;

	if (!csink_block(&mask))
		return 0;
	if (self.wait.lock) { /* a lock that the thread still holds, or one that was late */
		self.wait.is_late = true;
		finish_wait();
	}
	wait->waiter = csink_lock_walk(caller);
	if (wait->waiter)
		wait->pending = csink_lock_entry(wait->waiter, CSINK_WAIT_NOT_ENDED, (uintptr_t)wait->lock);
	nr = csink_lock_wait_begun(wait->pending, wait->begin_ns, &slot->nr_waiting, caller);
	csink_unblock(&mask);
	return nr;
}

/* The lock is not free. */
static int wait_for(void *lock, uintptr_t b, uintptr_t c, enum csink_lock_how how, const struct csink_caller *caller)
{
	struct slot *slot = slot_of(lock);
	struct wait wait = {.lock = lock, .nr_forks = csink_lock_nr_forks};
	uint64_t mask;
	uint32_t nr;
	int err;

	/* In this order: a release that is not seen now ends after the wait has begun. */
	wait.seen_release = atomic_load_explicit(&slot->nr_releases, memory_order_acquire);
	wait.begin_ns = csink_lock_agent.now_ns();
	atomic_fetch_add_explicit(&slot->nr_waiting, 1, memory_order_acq_rel);
	wait.is_shared = is_shared(lock, how);
	if (wait.is_shared)
		wait.owner = owner_of(lock, how);
	nr = begin_wait(&wait, slot, caller);
	wait.first_release = atomic_load_explicit(&slot->nr_releases, memory_order_relaxed);
	err = lock_now(lock, b, c, how);
	wait.last_release = atomic_load_explicit(&slot->nr_releases, memory_order_relaxed);
	wait.end_ns = CSINK_MAX(csink_lock_agent.now_ns(), wait.begin_ns);
	if (nr)
		csink_lock_wait_over(nr, caller);
	else
		csink_lock_count_down(&slot->nr_waiting);
	if (wait.nr_forks != csink_lock_nr_forks)
		return err; /* a handler has forked, and returned: the wait is the parent's */
	if (!wait.waiter) {
		csink_lock_agent.total(wait.end_ns - wait.begin_ns, 1);
	} else if (csink_block(&mask)) {
		if (!err || err == EOWNERDEAD)
			note_taken(lock, wait.end_ns);
		self.wait = wait;
		add_to(wait.pending, wait.end_ns - wait.begin_ns, 1);
		if (err && err != EOWNERDEAD) { /* no release follows */
			self.wait.is_late = self.wait.is_refused = true;
			self.wait.is_shared = false;
			finish_wait();
		}
		csink_unblock(&mask);
	}
	return err;
}

/* Before the lock is released: the place for who does it. NULL: no thread waits. */
static struct release *begin_release(struct slot *slot, const void *lock, enum csink_lock_how how)
{
	uint64_t had_ns = taken_ns(lock);
	struct release *all, *release;
	uint32_t owner;

	if (!atomic_load_explicit(&slot->nr_waiting, memory_order_relaxed))
		return NULL;
	all = atomic_load_explicit(&slot->releases, memory_order_acquire);
	if (!all) {
		long at = csink_rawcall(SYS_mmap, NULL, NR_RELEASES * sizeof(*all), PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (csink_raw_failed(at))
			return NULL;
		if (!atomic_compare_exchange_strong(&slot->releases, &all, (struct release *)at))
			csink_rawcall(SYS_munmap, at, NR_RELEASES * sizeof(*all));
		all = atomic_load_explicit(&slot->releases, memory_order_acquire);
	}
	release = &all[atomic_fetch_add_explicit(&slot->nr_releases, 1, memory_order_relaxed) % NR_RELEASES];
	atomic_store_explicit(&release->time_ns, 0, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	atomic_store_explicit(&release->lock, (uintptr_t)lock, memory_order_relaxed);
	atomic_store_explicit(&release->had_ns, had_ns, memory_order_relaxed);
	owner = owner_of(lock, how);
	atomic_store_explicit(&release->owner, how == RW_UNLOCK && !owner ? READER : owner, memory_order_relaxed);
	atomic_store_explicit(&release->holder, BEING_WALKED, memory_order_relaxed);
	atomic_store_explicit(&release->time_ns, csink_lock_agent.now_ns(), memory_order_release);
	return release;
}

/* After the release: the lock may be gone with its memory, only its address counts. */
static void end_release(struct release *release, const void *lock, bool is_released, const struct csink_caller *caller)
{
	uint64_t mask, time_ns;
	uint32_t holder;

	if (!csink_block(&mask))
		return;
	if (release && !is_released) {
		atomic_store_explicit(&release->time_ns, 0, memory_order_relaxed);
	} else if (release) {
		time_ns = atomic_load_explicit(&release->time_ns, memory_order_relaxed);
		holder = csink_lock_walk(caller);
		/* The place may be another release's by now. */
		if (atomic_load_explicit(&release->time_ns, memory_order_relaxed) == time_ns)
			atomic_store_explicit(&release->holder, holder, memory_order_relaxed);
	}
	if (self.wait.lock == lock)
		finish_wait();
	csink_lock_drop_left(caller);
	csink_unblock(&mask);
}

/* Is it locked more than once by this thread? As glibc has it; C11's mutexes are the same. */
static bool is_nested(const void *lock, enum csink_lock_how how)
{
	const pthread_mutex_t *mutex = lock;

	return how != RW_UNLOCK && (mutex->__data.__kind & 3) == PTHREAD_MUTEX_RECURSIVE_NP &&
	       mutex->__data.__count > 1;
}

static int unlock(void *lock, enum csink_lock_how how, const struct csink_caller *caller)
{
	struct release *release;
	int err;

	if (is_nested(lock, how))
		return lock_now(lock, 0, 0, how);
	release = begin_release(slot_of(lock), lock, how);
	err = lock_now(lock, 0, 0, how);
	end_release(release, lock, !err, caller);
	return err;
}

static int measure(void *lock, uintptr_t b, uintptr_t c, enum csink_lock_how how, const struct csink_caller *caller)
{
	CSINK_KEEP_ERRNO;

	if (csink_lock_passes_on())
		return lock_now(lock, b, c, how);
	return how < FIRST_UNLOCK ? wait_for(lock, b, c, how, caller) : unlock(lock, how, caller);
}

void *csink_slow(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t how, const struct csink_caller *caller)
{
	if (how >= FIRST_INIT)
		return (void *)csink_lock_init(a, b, c, (enum csink_lock_how)how, caller);
	if (how >= FIRST_PLAIN)
		return (void *)csink_lock_wait_plainly(a, b, c, (enum csink_lock_how)how, caller);
	return (void *)(uintptr_t)(unsigned int)measure((void *)a, b, c, (enum csink_lock_how)how, caller);
}

/* ---- what the program calls ---- */

static inline __attribute__((always_inline)) bool has_waiters(const void *lock)
{
	return atomic_load_explicit(&slot_of(lock)->nr_waiting, memory_order_relaxed);
}

static inline __attribute__((always_inline)) bool is_watched(const void *lock)
{
	return has_waiters(lock) || self.wait.lock == lock;
}

/* A lock that was free, and that others wait for. */
static void take_from_others(const void *lock)
{
	if (!csink_lock_passes_on())
		note_taken(lock, csink_lock_agent.now_ns());
}

/*
 * Taken if it is free, as by the call itself: with the same results, but for BUSY. What libc refuses of a lock that is
 * free, too, is left to it. @notes  whether it is noted when it is taken while others wait: readers hold it together.
 */
#define LOCK_CHECKED(name, arguments, values, try, busy, how, b, c, is_right, notes)                                   \
	CSINK_EXPORT int name arguments                                                                                \
	{                                                                                                              \
		int err = CSINK_LIKELY(is_right) ? next.try(lock) : CSINK_LOCK_NONE;                                   \
                                                                                                                       \
		if (notes && CSINK_LIKELY(!err) && CSINK_UNLIKELY(has_waiters(lock)))                                  \
			take_from_others(lock);                                                                        \
		if (CSINK_LIKELY(err != (busy)))                                                                       \
			return CSINK_UNLIKELY(err == CSINK_LOCK_NONE) ? next.name values : err;                        \
		return csink_slow_entry_int((uintptr_t)lock, (uintptr_t)(b), (uintptr_t)(c), how);                     \
	}
#define LOCK(name, arguments, values, try, busy, how, b, c)                                                            \
	LOCK_CHECKED(name, arguments, values, try, busy, how, b, c, true, false)
#define RW_LOCK(name, arguments, values, try, how, b, c, is_right)                                                     \
	LOCK_CHECKED(name, arguments, values, try, EBUSY, how, b, c, is_right, true)
#define UNLOCK(name, arguments, how)                                                                                   \
	CSINK_EXPORT int name arguments                                                                                \
	{                                                                                                              \
		if (CSINK_LIKELY(!is_watched(lock)))                                                                   \
			return next.name(lock);                                                                        \
		return csink_slow_entry_int((uintptr_t)lock, 0, 0, how);                                               \
	}

LOCK(pthread_mutex_lock, (pthread_mutex_t * lock), (lock), pthread_mutex_trylock, EBUSY, MUTEX, 0, 0)
LOCK(pthread_mutex_timedlock, (pthread_mutex_t * lock, const struct timespec *until), (lock, until),
     pthread_mutex_trylock, EBUSY, MUTEX_TIMED, until, 0)
LOCK_CHECKED(pthread_mutex_clocklock, (pthread_mutex_t * lock, clockid_t clock, const struct timespec *until),
	     (lock, clock, until), pthread_mutex_trylock, EBUSY, MUTEX_CLOCK, clock, until, csink_lock_is_clock(clock),
	     false)
UNLOCK(pthread_mutex_unlock, (pthread_mutex_t * lock), MUTEX_UNLOCK)

RW_LOCK(pthread_rwlock_rdlock, (pthread_rwlock_t * lock), (lock), pthread_rwlock_tryrdlock, READ, 0, 0, true)
RW_LOCK(pthread_rwlock_timedrdlock, (pthread_rwlock_t * lock, const struct timespec *until), (lock, until),
	pthread_rwlock_tryrdlock, READ_TIMED, until, 0, csink_lock_is_time(until))
RW_LOCK(pthread_rwlock_clockrdlock, (pthread_rwlock_t * lock, clockid_t clock, const struct timespec *until),
	(lock, clock, until), pthread_rwlock_tryrdlock, READ_CLOCK, clock, until,
	csink_lock_is_clock(clock) && csink_lock_is_time(until))
RW_LOCK(pthread_rwlock_wrlock, (pthread_rwlock_t * lock), (lock), pthread_rwlock_trywrlock, WRITE, 0, 0, true)
RW_LOCK(pthread_rwlock_timedwrlock, (pthread_rwlock_t * lock, const struct timespec *until), (lock, until),
	pthread_rwlock_trywrlock, WRITE_TIMED, until, 0, csink_lock_is_time(until))
RW_LOCK(pthread_rwlock_clockwrlock, (pthread_rwlock_t * lock, clockid_t clock, const struct timespec *until),
	(lock, clock, until), pthread_rwlock_trywrlock, WRITE_CLOCK, clock, until,
	csink_lock_is_clock(clock) && csink_lock_is_time(until))
UNLOCK(pthread_rwlock_unlock, (pthread_rwlock_t * lock), RW_UNLOCK)

LOCK(mtx_lock, (mtx_t * lock), (lock), mtx_trylock, thrd_busy, MTX, 0, 0)
LOCK(mtx_timedlock, (mtx_t * lock, const struct timespec *until), (lock, until), mtx_trylock, thrd_busy, MTX_TIMED,
     until, 0)
UNLOCK(mtx_unlock, (mtx_t * lock), MTX_UNLOCK)

/* There is no moment behind it to walk a stack in. */
void csink_lock_release_in_condition(void *lock)
{
	CSINK_KEEP_ERRNO;
	struct release *release;
	uint64_t mask;

	if (CSINK_LIKELY(!is_watched(lock)) || csink_lock_passes_on())
		return;
	release = begin_release(slot_of(lock), lock, MUTEX_UNLOCK);
	if (release)
		atomic_store_explicit(&release->holder, CSINK_WAIT_CONDITION, memory_order_relaxed);
	if (self.wait.lock == lock && csink_block(&mask)) {
		finish_wait();
		csink_unblock(&mask);
	}
}

/* ---- what the agent calls ---- */

static void start(const struct csink_lock_agent *from)
{
	choose_tries();
	has_timeline = csink_plain_is_yes(csink_plain_variable(CSINK_ENV_PREFIX "TIMELINE="));
	csink_lock_begin(from);
}

static void forked(void)
{
	for (uint32_t i = 0; i < NR_SLOTS; i++)
		if (atomic_load_explicit(&slots[i].nr_waiting, memory_order_relaxed)) /* touch no other page */
			atomic_store_explicit(&slots[i].nr_waiting, 0, memory_order_relaxed);
	csink_lock_forget();
	atomic_store_explicit(&nr_dated, 0, memory_order_relaxed);
	self.wait.lock = NULL;
}

static void event(uint32_t i, struct csink_rec_event *out)
{
	memset(out, 0, sizeof(*out));
	csink_plain_append(out->name, out->name + sizeof(out->name), i ? "contentions" : "delay");
	csink_plain_append(out->unit, out->unit + sizeof(out->unit), i ? "count" : "nanoseconds");
	out->flags = CSINK_EVENT_WAITED;
	if (!i && csink_plain_has(csink_plain_variable(CSINK_ENV_PREFIX "LOCK="), "first"))
		out->flags |= CSINK_EVENT_FIRST;
}

CSINK_EXPORT const struct csink_lock_object csink_lock_object = {event, start, forked};
