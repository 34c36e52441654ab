/*
 * Signals of the program's that use a number of ours and arrived while the program had it blocked: the kernel would
 * have kept them pending. A standard signal is kept once.
 *
 * Of a real-time signal only the first one is kept here. From then on the signal is blocked in that thread, so that the
 * kernel queues the others, in their order and within the sender's limit. If the thread's samples use the same signal,
 * it takes none, since they would be queued among the program's. This ends when the program has taken all of them or
 * unblocks the signal.
 */
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/rawcall.h"
#include "preload/agent/lifecycle/hidden_signals.h"
#include "preload/agent/sampler/engine.h"
#include "preload/agent/sampler/thread.h"
#include "preload/core/calls_off.h"

enum {
	MAX_PENDING = 128,
	MAX_DRAINED = 16, /* more samples than can be pending when they are stopped */
};

static struct pending {
	siginfo_t info;
	int32_t tid; /* 0: for the process */
} table[MAX_PENDING] CSINK_COLD;
static uint32_t nr_pending;
static _Atomic uint64_t any; /* bits of what is in there */

static bool is_for(const struct pending *entry, const struct csink_thread *thread)
{
	return !entry->tid || entry->tid == thread->tid;
}

static void recount(void)
{
	uint64_t bits = 0;

	for (uint32_t i = 0; i < nr_pending; i++)
		bits |= CSINK_SIGNAL_BIT(table[i].info.si_signo);
	atomic_store_explicit(&any, bits, memory_order_relaxed);
}

static bool is_there(int signo, int32_t tid)
{
	for (uint32_t i = 0; i < nr_pending; i++)
		if (table[i].info.si_signo == signo && table[i].tid == tid)
			return true;
	return false;
}

/* A thread that can take the signal: one that waits for it, else one that does not block it. */
static struct csink_thread *find_receiver(const struct csink_thread *but, uint64_t bit)
{
	struct csink_thread *found = NULL;

	for (struct csink_thread *at = csink_threads_first(); at; at = at->next) {
		if (at == but || atomic_load_explicit(&at->state, memory_order_acquire) != CSINK_THREAD_LIVE)
			continue;
		if (__atomic_load_n(&at->hidden.waiting, __ATOMIC_RELAXED) & bit)
			return at;
		if (at->hidden.signals & bit && !(at->hidden.blocked & bit))
			found = at;
	}
	return found;
}

/* Returns the TID that a signal is directed to, which only tgkill's si_code shows; 0: the whole process. */
static int32_t directed_to(const struct csink_thread *thread, const siginfo_t *info)
{
	return info->si_code == SI_TKILL ? thread->tid : 0;
}

/* Returns false if there is no room. */
static bool keep(const struct csink_thread *thread, int signo, const siginfo_t *info)
{
	int32_t tid = directed_to(thread, info);
	bool is_kept = true;
	uint64_t saved;

	csink_signals_lock(&saved);
	if (signo >= SIGRTMIN || !is_there(signo, tid)) {
		is_kept = nr_pending < MAX_PENDING;
		if (is_kept) {
			table[nr_pending].info = *info;
			table[nr_pending].info.si_signo = signo;
			table[nr_pending++].tid = tid;
			recount();
		}
	}
	csink_signals_unlock(&saved);
	return is_kept;
}

/*
 * Take the samples of this thread out of the kernel's queue, after they were stopped. Signals of the program that were
 * queued before them are kept here; those that remain in the queue are all the program's.
 * Context: signal, with every signal blocked.
 */
static void drop_samples(struct csink_thread *thread, int signo)
{
	static const struct timespec at_once;
	uint64_t set = CSINK_SIGNAL_BIT(signo);
	siginfo_t info;

	for (int i = 0; i < MAX_DRAINED; i++) {
		if (csink_rawcall(SYS_rt_sigtimedwait, &set, &info, &at_once, CSINK_SET_BYTES) < 0)
			return;
		if (csink_sample_is_ours(signo, &info) || keep(thread, signo, &info))
			continue;
		csink_signal_raise(directed_to(thread, &info), signo, &info);
		return;
	}
}

/* The thread opens its groups: until that is done the kernel queues all signals of ours. */
static void block_until_open(struct csink_thread *thread, ucontext_t *context)
{
	csink_engine_block_in(context);
	atomic_fetch_or_explicit(&thread->is_held, CSINK_HELD_PENDING, memory_order_relaxed);
}

/* Let the kernel queue the next ones. */
static void queue_in_kernel(struct csink_thread *thread, int signo, ucontext_t *context)
{
	if (signo < SIGRTMIN || csink_calls_are_off(CSINK_CALLS_LIFE | CSINK_CALLS_PAUSE))
		return;
	if (atomic_load_explicit(&thread->engine_busy, memory_order_relaxed)) {
		block_until_open(thread, context);
		return;
	}
	if (thread->hidden.queued & CSINK_SIGNAL_BIT(signo)) {
		/* It is being let through, but a handler of the program's came first, and blocks it. */
		*csink_set_word(&context->uc_sigmask) |= CSINK_SIGNAL_BIT(signo);
		return;
	}
	if (csink_thread_samples_by(thread, signo))
		csink_engine_pause(thread);
	drop_samples(thread, signo);
	thread->hidden.queued |= CSINK_SIGNAL_BIT(signo);
	*csink_set_word(&context->uc_sigmask) |= CSINK_SIGNAL_BIT(signo);
}

void csink_pending_settle(struct csink_thread *thread, uint64_t blocked)
{
	uint64_t pending = 0, done;

	if (CSINK_LIKELY(!thread->hidden.queued) || csink_in_vfork_child())
		return;
	/* Where it cannot be asked, the kernel hands on all that is left there, to be kept here. */
	if (!csink_calls_are_off(CSINK_CALLS_PAUSE))
		csink_rawcall(SYS_rt_sigpending, &pending, CSINK_SET_BYTES);
	done = thread->hidden.queued & ~(blocked & (pending | csink_pending_signals(thread)));
	thread->hidden.queued &= ~done;
	for (int signo = SIGRTMIN; signo <= SIGRTMAX; signo++)
		if (done & CSINK_SIGNAL_BIT(signo) && csink_thread_samples_by(thread, signo))
			csink_thread_resume(thread);
	/* From here on samples and the program's signals may be delivered. */
	if (done)
		csink_raw_mask(SIG_UNBLOCK, done, NULL);
}

/* The table is full, since many threads have kept signals: return this one to the kernel's queue, as its last. */
static void return_to_kernel(struct csink_thread *thread, int signo, const siginfo_t *info, ucontext_t *context)
{
	if (thread->hidden.queued & CSINK_SIGNAL_BIT(signo)) {
		/* it is blocked */
	} else if (atomic_load_explicit(&thread->engine_busy, memory_order_relaxed)) {
		/* Once the groups are open it comes again. */
		block_until_open(thread, context);
	} else {
		thread->hidden.queued |= CSINK_SIGNAL_BIT(signo);
		*csink_set_word(&context->uc_sigmask) |= CSINK_SIGNAL_BIT(signo);
	}
	csink_signal_raise(directed_to(thread, info), signo, info);
}

/* Send the pending signal to a thread that began to wait for it, or unblocked it, after find_receiver() and before the
 * signal was kept. */
static void send_to_receiver(const struct csink_thread *thread, uint64_t bit)
{
	struct csink_thread *receiver;
	siginfo_t info;
	int32_t tid;

	/* Pairs with the fences of the calls that wait or change the mask: they see it kept, or we see them. */
	atomic_thread_fence(memory_order_seq_cst);
	receiver = find_receiver(thread, bit);
	if (CSINK_UNLIKELY(receiver) && csink_pending_take(receiver, bit, &info, &tid))
		csink_signal_raise(receiver->tid, info.si_signo, &info);
}

void csink_pending_add(struct csink_thread *thread, int signo, const siginfo_t *info, ucontext_t *context)
{
	bool is_directed = directed_to(thread, info);
	struct csink_thread *receiver = is_directed ? NULL : find_receiver(thread, CSINK_SIGNAL_BIT(signo));
	bool is_kept;

	if (receiver) {
		csink_signal_raise(receiver->tid, signo, info);
		return;
	}
	is_kept = keep(thread, signo, info);
	if (is_kept && !is_directed)
		send_to_receiver(thread, CSINK_SIGNAL_BIT(signo));
	queue_in_kernel(thread, signo, context);
	if (!is_kept)
		return_to_kernel(thread, signo, info, context);
}

void csink_pending_defer(struct csink_thread *thread, int signo, const siginfo_t *info, ucontext_t *context)
{
	*csink_set_word(&context->uc_sigmask) |= CSINK_SIGNAL_BIT(signo);
	thread->hidden.deferred = true;
	/* In a forked child thread->tid may be the parent's yet. */
	csink_signal_raise(directed_to(thread, info) ? (int32_t)csink_rawcall(SYS_gettid) : 0, signo, info);
}

bool csink_pending_take(struct csink_thread *thread, uint64_t set, siginfo_t *info, int32_t *tid)
{
	uint64_t saved;
	bool found = false;

	if (!(atomic_load_explicit(&any, memory_order_relaxed) & set))
		return false;
	csink_signals_lock(&saved);
	for (uint32_t i = 0; i < nr_pending && !found; i++) {
		if (!(CSINK_SIGNAL_BIT(table[i].info.si_signo) & set) || !is_for(&table[i], thread))
			continue;
		*info = table[i].info;
		*tid = table[i].tid;
		memmove(&table[i], &table[i + 1], (--nr_pending - i) * sizeof(*table));
		found = true;
	}
	recount();
	csink_signals_unlock(&saved);
	return found;
}

uint64_t csink_pending_signals(const struct csink_thread *thread)
{
	uint64_t bits = 0, saved;

	if (!atomic_load_explicit(&any, memory_order_relaxed))
		return 0;
	csink_signals_lock(&saved);
	for (uint32_t i = 0; i < nr_pending; i++)
		if (is_for(&table[i], thread))
			bits |= CSINK_SIGNAL_BIT(table[i].info.si_signo);
	csink_signals_unlock(&saved);
	return bits;
}

/*
 * The kernel keeps one pending signal of each standard number. If the caller blocks the number while one of our samples
 * is pending, a signal that the program raises would be lost. So the thread's samples are stopped, and pending ones are
 * dropped.
 */
static bool stop_samples(struct csink_thread *thread, int signo)
{
	if (signo != SIGTRAP || thread->engine != CSINK_ENGINE_SIGTRAP || csink_calls_are_off(CSINK_CALLS_PAUSE))
		return false;
	csink_thread_pause(thread);
	drop_samples(thread, signo);
	return true;
}

void csink_pending_release(struct csink_thread *thread, uint64_t blocked)
{
	bool is_stopped = false;
	uint64_t behind = 0;
	siginfo_t info;
	int32_t tid;

	if (CSINK_UNLIKELY(thread->hidden.queued) && !csink_calls_are_off(CSINK_CALLS_PAUSE))
		csink_rawcall(SYS_rt_sigpending, &behind, CSINK_SET_BYTES);
	behind &= thread->hidden.queued;
	while (csink_pending_take(thread, ~blocked, &info, &tid)) {
		is_stopped = is_stopped || stop_samples(thread, info.si_signo);
		csink_signal_raise(behind & CSINK_SIGNAL_BIT(info.si_signo) ? thread->tid : tid, info.si_signo, &info);
	}
	if (CSINK_UNLIKELY(is_stopped))
		csink_thread_resume(thread);
}

void csink_pending_reset(void)
{
	nr_pending = 0;
	atomic_store(&any, 0);
}
