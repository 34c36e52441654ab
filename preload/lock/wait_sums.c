/*
 * Sums of waits, by waiter, holder and lock: entries of the recording, which are found by a hash. Any thread; no lock.
 */
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "include/internal/base.h"
#include "include/internal/rawcall.h"
#include "include/internal/shared_options.h"
#include "preload/lock/lock_impl.h"
#include "preload/objects/caller.h"
#include "preload/objects/plain_text.h"

struct csink_lock_agent csink_lock_agent; /* all NULL: it has not begun */
uint32_t csink_lock_nr_forks;
bool csink_lock_has_conditions;

/* Half of them are for sums that are kept apart, so that there is a free one near; the others for what is left then. */
enum { NR_CELLS = 2 * CSINK_WAIT_MAX_APART, WINDOW = 32 };

static struct cell {
	_Atomic uint64_t key; /* a hash; 0: free */
	struct csink_rec_wait *_Atomic entry;
} * cells;

static _Atomic uint32_t nr_used;

static struct csink_rec_wait none; /* in a cell: the recording had no room */

/* @max_used  no more cells are taken for it. */
static struct csink_rec_wait *find_entry(uint32_t waiter, uint32_t holder, uint64_t lock, uint32_t max_used)
{
	uint64_t key = (lock ^ (uint64_t)waiter << 32 ^ holder) * 0x9e3779b97f4a7c15ULL;

	key = (key ^ key >> 29 ^ (uint64_t)holder * 0xbf58476d1ce4e5b9ULL) | 1;
	for (uint32_t i = 0; cells && i < WINDOW; i++) {
		struct cell *cell = &cells[((uint32_t)(key >> 40) + i) % NR_CELLS];
		uint64_t was = atomic_load_explicit(&cell->key, memory_order_relaxed);
		struct csink_rec_wait *entry;

		if (!was && atomic_load_explicit(&nr_used, memory_order_relaxed) >= max_used)
			return NULL;
		if (!was && atomic_compare_exchange_strong(&cell->key, &was, key)) {
			atomic_fetch_add_explicit(&nr_used, 1, memory_order_relaxed);
			atomic_store_explicit(&cell->entry, csink_lock_agent.entry(waiter, holder, lock) ?: &none,
					      memory_order_release);
			csink_lock_note_site(lock);
		}
		if (atomic_load_explicit(&cell->key, memory_order_relaxed) != key)
			continue;
		entry = atomic_load_explicit(&cell->entry, memory_order_acquire);
		if (!entry) /* another thread is making it */
			return csink_lock_agent.entry(waiter, holder, lock);
		if (entry == &none)
			return NULL;
		if (entry->waiter == waiter && entry->holder == holder && entry->lock == lock)
			return entry;
	}
	return NULL;
}

struct csink_rec_wait *csink_lock_entry(uint32_t waiter, uint32_t holder, uint64_t lock)
{
	return find_entry(waiter, holder, lock, CSINK_WAIT_MAX_APART)
		       ?: find_entry(waiter, holder < CSINK_WAIT_NR_HOLDERS ? holder : CSINK_WAIT_UNKNOWN,
				     CSINK_WAIT_OTHER_LOCKS, NR_CELLS);
}

/* ---- waits that have not ended ---- */

enum { MAX_OPEN = 4, MAX_SHOWN = (1 << CSINK_WAIT_OPEN_BITS) - 1000 };

/* Of this thread: the latest one last, in handlers of those before. Tasks that clone(2) made with this thread's storage
 * have it, too, at the same time: whatever is counted then, no place beside it is touched. */
static __thread struct {
	uint32_t nr;
	struct open {
		uintptr_t sp;
		struct csink_rec_wait *entry;
		uint64_t word;
		_Atomic uint32_t *nr_waiting;
		uint32_t nr_forks;
	} all[MAX_OPEN];
} waits __attribute__((tls_model("initial-exec")));

void csink_lock_count_down(_Atomic uint32_t *nr_waiting)
{
	uint32_t nr = atomic_load_explicit(nr_waiting, memory_order_relaxed);

	/* In a child that a handler has forked meanwhile, no thread waits. */
	while (nr && !atomic_compare_exchange_weak(nr_waiting, &nr, nr - 1))
		;
}

/* The number of the latest one; 0: there is none. */
static uint32_t last_of(void)
{
	uint32_t nr = *(volatile uint32_t *)&waits.nr;

	return nr <= MAX_OPEN ? nr : 0;
}

static void close_wait(uint32_t nr)
{
	struct open open = waits.all[nr - 1];

	waits.nr = nr - 1;
	if (open.entry && open.nr_forks == csink_lock_nr_forks)
		__atomic_fetch_sub(&open.entry->open, open.word, __ATOMIC_RELAXED);
	if (open.nr_waiting && open.nr_forks == csink_lock_nr_forks)
		csink_lock_count_down(open.nr_waiting);
}

/* A wait goes on while its caller's frame is above that of the thread's next call. */
void csink_lock_drop_left(const struct csink_caller *caller)
{
	for (uint32_t nr; (nr = last_of()) && waits.all[nr - 1].sp <= caller->sp;)
		close_wait(nr);
}

uint32_t csink_lock_wait_begun(struct csink_rec_wait *entry, uint64_t begin_ns, _Atomic uint32_t *nr_waiting,
			       const struct csink_caller *caller)
{
	struct open *open;
	uint32_t nr;

	csink_lock_drop_left(caller);
	nr = last_of();
	if (nr == MAX_OPEN)
		return 0;
	if (entry && (__atomic_load_n(&entry->open, __ATOMIC_RELAXED) & ((1 << CSINK_WAIT_OPEN_BITS) - 1)) > MAX_SHOWN)
		entry = NULL;
	open = &waits.all[nr];
	*open = (struct open){caller->sp, entry, begin_ns / 1000 << CSINK_WAIT_OPEN_BITS | 1, nr_waiting,
			      csink_lock_nr_forks};
	if (entry)
		__atomic_fetch_add(&entry->open, open->word, __ATOMIC_RELAXED);
	waits.nr = nr + 1;
	return nr + 1;
}

void csink_lock_wait_over(uint32_t nr, const struct csink_caller *caller)
{
	for (uint32_t last; nr && (last = last_of()) >= nr && waits.all[nr - 1].sp == caller->sp;)
		close_wait(last);
}

/* A thread that is cancelled, or exits: none of its waits goes on. */
int csink_unwound(int version, int actions, uint64_t class, void *exception, void *context)
{
	(void)version;
	(void)class;
	(void)exception;
	(void)context;
	for (uint32_t nr; actions & CSINK_UNWIND_CLEANUP && (nr = last_of());)
		close_wait(nr);
	return CSINK_CONTINUE_UNWIND;
}

uint32_t csink_lock_walk(const struct csink_caller *caller)
{
	ucontext_t uc;

	csink_caller_describe(&uc, caller);
	return csink_lock_agent.stack(&uc);
}

bool csink_lock_passes_on(void)
{
	bool (*may_block)(void) = __atomic_load_n(&csink_lock_agent.may_block, __ATOMIC_ACQUIRE);

	return !may_block || !may_block();
}

void csink_lock_begin(const struct csink_lock_agent *from)
{
	long at = csink_rawcall(SYS_mmap, NULL, NR_CELLS * sizeof(*cells), PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	cells = csink_raw_failed(at) ? NULL : (struct cell *)at;
	csink_lock_has_conditions =
		csink_plain_has(csink_plain_variable(CSINK_ENV_PREFIX "LOCK="), CSINK_LOCK_CONDITIONS);
	csink_lock_agent = (struct csink_lock_agent){
		.now_ns = from->now_ns, .stack = from->stack, .entry = from->entry, .total = from->total};
	/* Threads that a constructor has started may wait already: this is what they look for. Partner:
	 * csink_lock_passes_on(). */
	__atomic_store_n(&csink_lock_agent.may_block, from->may_block, __ATOMIC_RELEASE);
}

void csink_lock_forget(void)
{
	csink_lock_nr_forks++;
	atomic_store_explicit(&nr_used, 0, memory_order_relaxed);
	if (cells)
		csink_rawcall(SYS_madvise, cells, NR_CELLS * sizeof(*cells), MADV_DONTNEED);
}
