/*
 * Signals of the program's that use a number of ours and arrived while the program had it blocked: the kernel would
 * have kept them pending. A standard signal is kept once, a real-time one as often as it came.
 */
#include <string.h>

#include "include/internal/base.h"
#include "preload/inject/signals.h"
#include "preload/sample/process.h"
#include "preload/sample/thread.h"

enum { MAX_HELD = 128 };

static struct held {
	siginfo_t info;
	int32_t tid; /* 0: for the process */
} held[MAX_HELD] CSINK_SELDOM;
static uint32_t nr_held;
static _Atomic uint64_t any; /* bits of what is in there */

static bool is_for(const struct held *entry, const struct csink_thread *thread)
{
	return !entry->tid || entry->tid == thread->tid;
}

static void recount(void)
{
	uint64_t bits = 0;

	for (uint32_t i = 0; i < nr_held; i++)
		bits |= CSINK_SIGNAL_BIT(held[i].info.si_signo);
	atomic_store_explicit(&any, bits, memory_order_relaxed);
}

static bool is_there(int signo, int32_t tid)
{
	for (uint32_t i = 0; i < nr_held; i++)
		if (held[i].info.si_signo == signo && held[i].tid == tid)
			return true;
	return false;
}

/* A thread that would rather have it: one that waits for it, else one that lets it through. */
static struct csink_thread *find_taker(const struct csink_thread *but, uint64_t bit)
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

void csink_held_add(struct csink_thread *thread, int signo, const siginfo_t *info)
{
	/* Only tgkill says that one thread is meant. */
	int32_t tid = info->si_code == SI_TKILL ? thread->tid : 0;
	struct csink_thread *taker = tid ? NULL : find_taker(thread, CSINK_SIGNAL_BIT(signo));
	uint64_t saved;

	if (taker) {
		csink_signal_raise(taker->tid, signo, info);
		return;
	}
	csink_signals_lock(&saved);
	if (nr_held < MAX_HELD && (signo >= SIGRTMIN || !is_there(signo, tid))) {
		held[nr_held].info = *info;
		held[nr_held].info.si_signo = signo;
		held[nr_held++].tid = tid;
		recount();
	}
	csink_signals_unlock(&saved);
}

bool csink_held_take(struct csink_thread *thread, uint64_t set, siginfo_t *info, int32_t *tid)
{
	uint64_t saved;
	bool found = false;

	if (!(atomic_load_explicit(&any, memory_order_relaxed) & set))
		return false;
	csink_signals_lock(&saved);
	for (uint32_t i = 0; i < nr_held && !found; i++) {
		if (!(CSINK_SIGNAL_BIT(held[i].info.si_signo) & set) || !is_for(&held[i], thread))
			continue;
		*info = held[i].info;
		*tid = held[i].tid;
		memmove(&held[i], &held[i + 1], (--nr_held - i) * sizeof(*held));
		found = true;
	}
	recount();
	csink_signals_unlock(&saved);
	return found;
}

uint64_t csink_held_signals(const struct csink_thread *thread)
{
	uint64_t bits = 0, saved;

	if (!atomic_load_explicit(&any, memory_order_relaxed))
		return 0;
	csink_signals_lock(&saved);
	for (uint32_t i = 0; i < nr_held; i++)
		if (is_for(&held[i], thread))
			bits |= CSINK_SIGNAL_BIT(held[i].info.si_signo);
	csink_signals_unlock(&saved);
	return bits;
}

void csink_held_release(struct csink_thread *thread, uint64_t blocked)
{
	siginfo_t info;
	int32_t tid;

	while (csink_held_take(thread, ~blocked, &info, &tid))
		csink_signal_raise(tid, info.si_signo, &info);
}

void csink_held_forget(void)
{
	nr_held = 0;
	atomic_store(&any, 0);
}
