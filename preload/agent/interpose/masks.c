/*
 * Calls that set or read the calling thread's signal mask: the program's mask of our signals is stored
 * (hidden_masks.c), and the kernel gets the rest. Any thread, also in signal handlers: async-signal-safe.
 */
#include "include/internal/base.h"
#include "include/internal/rawcall.h"
#include "preload/agent/lifecycle/hidden_signals.h"
#include "preload/agent/lifecycle/real.h"
#include "preload/agent/sampler/thread.h"

static uint64_t changed(int how, uint64_t mask, uint64_t set)
{
	return how == SIG_SETMASK ? set : how == SIG_BLOCK ? mask | set : mask & ~set;
}

/*
 * The kernel blocks ours all the same: a handler on an alternate stack runs so (adapt_mask in hidden_signals.c), and
 * one that was left by longjmp left it behind. Off that stack, they must not stay blocked; on it they must.
 */
static void unblock_in_kernel(const struct csink_thread *thread, uint64_t before, uint64_t after)
{
	uint64_t ours = thread->hidden.signals;
	stack_t stack;

	if (csink_rawcall(SYS_sigaltstack, NULL, &stack))
		return;
	if (stack.ss_flags & SS_ONSTACK)
		csink_raw_mask(SIG_BLOCK, before & ours, NULL);
	else if (after & csink_masks_open(thread))
		csink_raw_mask(SIG_UNBLOCK, csink_masks_open(thread), NULL);
}

/* What is kept for the program and is about to be let through becomes pending in the kernel, which then delivers it in
 * its own order, with what else there is. */
static bool make_pending(struct csink_thread *thread, int how, uint64_t asked, uint64_t *before)
{
	uint64_t ours = thread->hidden.signals, kernel, after;

	if (CSINK_LIKELY(!csink_pending_signals(thread)) || csink_in_vfork_child())
		return false;
	csink_raw_mask(SIG_BLOCK, ours, &kernel);
	*before = csink_masks_blocked(thread, kernel);
	after = changed(how, *before, asked & ours);
	/* If they are let through before the mask is in place, they must not be kept again. */
	csink_masks_set_blocked(thread, after, kernel);
	csink_pending_release(thread, after);
	return true;
}

/* The mask for the kernel: signals that are queued there stay blocked, unless the program unblocks them. */
static uint64_t keep_queued_blocked(const struct csink_thread *thread, int how, uint64_t asked, uint64_t room)
{
	uint64_t queued = thread->hidden.queued;

	return how == SIG_BLOCK ? room : how == SIG_UNBLOCK ? room | (asked & queued) : room | (queued & asked);
}

static int set_mask(int (*real)(int, const sigset_t *, sigset_t *), int how, const sigset_t *set, sigset_t *old)
{
	struct csink_thread *thread = csink_self;
	uint64_t ours = thread ? thread->hidden.signals : 0, asked, before = 0, kernel, after;
	sigset_t kernel_set, room;
	bool raised;
	int err;

	if (!ours || csink_masks_are_kernels() || (set && how != SIG_BLOCK && how != SIG_UNBLOCK && how != SIG_SETMASK))
		return real(how, set, old);
	if (!set) {
		err = real(how, NULL, &kernel_set);
		if (!err && old) {
			kernel = csink_set_bits(&kernel_set);
			*old = kernel_set;
			*csink_set_word(old) = (kernel & ~ours) | csink_masks_blocked(thread, kernel);
		}
		return err;
	}
	asked = csink_set_bits(set);
	room = *set;
	*csink_set_word(&room) &= ~ours;
	raised = make_pending(thread, how, asked, &before);
	if (raised && how == SIG_UNBLOCK)
		*csink_set_word(&room) |= csink_masks_open(thread);
	/* Signals that are unblocked now are delivered to the program, oldest first; the others stay queued. */
	if (CSINK_UNLIKELY(thread->hidden.queued))
		*csink_set_word(&room) = keep_queued_blocked(thread, how, asked, csink_set_bits(&room));
	err = real(how, &room, &kernel_set);
	if (CSINK_UNLIKELY(raised))
		csink_raw_mask(SIG_UNBLOCK, csink_masks_open(thread), NULL);
	if (err)
		return err;
	kernel = csink_set_bits(&kernel_set);
	after = changed(how, kernel, csink_set_bits(&room));
	if (!raised)
		before = csink_masks_blocked(thread, kernel);
	if (old) {
		*old = kernel_set;
		*csink_set_word(old) = (kernel & ~ours) | before;
	}
	if (CSINK_UNLIKELY(kernel & ours && !raised))
		unblock_in_kernel(thread, kernel, after);
	csink_masks_set_blocked(thread, changed(how, before, asked & ours), after);
	atomic_thread_fence(memory_order_seq_cst); /* pairs with send_to_receiver()'s in pending_signals.c */
	/* What was kept while a handler blocked it, which the call has let in; all of it before the first arrives. */
	if (CSINK_UNLIKELY(csink_pending_signals(thread) & ~thread->hidden.blocked) && !csink_in_vfork_child()) {
		csink_raw_mask(SIG_BLOCK, ours, NULL);
		csink_pending_release(thread, thread->hidden.blocked);
		csink_raw_mask(SIG_UNBLOCK, csink_masks_open(thread), NULL);
	}
	csink_pending_settle(thread, thread->hidden.blocked);
	return 0;
}

CSINK_EXPORT int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	return set_mask(REAL(pthread_sigmask), how, set, old);
}

CSINK_EXPORT int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
	return set_mask(REAL(sigprocmask), how, set, old);
}

CSINK_EXPORT int sigpending(sigset_t *set)
{
	struct csink_thread *thread = csink_self;
	int err = REAL(sigpending)(set);

	if (!err && thread && thread->hidden.signals && !csink_masks_are_kernels())
		*csink_set_word(set) =
			(csink_set_bits(set) & ~csink_masks_open(thread)) | csink_pending_signals(thread);
	return err;
}

/* ---- masks of one word, as BSD had them ---------------------------------------------------------------------------
 */

static int set_word(int how, int mask)
{
	sigset_t set = {0}, old;

	*csink_set_word(&set) = (unsigned int)mask;
	return set_mask(REAL(sigprocmask), how, &set, &old) < 0 ? -1 : (int)csink_set_bits(&old);
}

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
CSINK_EXPORT int sigblock(int mask)
{
	return set_word(SIG_BLOCK, mask);
}

CSINK_EXPORT int sigsetmask(int mask)
{
	return set_word(SIG_SETMASK, mask);
}
