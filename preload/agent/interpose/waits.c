/*
 * Calls that wait for signals.
 *
 * sigsuspend and similar calls set a mask while they wait. If our signals are in it, the kernel may block them for that
 * time: a thread that waits takes no samples. Signals that the program has blocked and that the mask of the call lets
 * through must still reach the program.
 *
 * sigwait and similar calls take signals that are blocked. If ours are among the signals that the program waits for,
 * the kernel blocks them during the call, and a signal that was a sample is dropped: the next sample has its weight.
 */
#include <errno.h>
#include <time.h>

#include "include/internal/base.h"
#include "include/internal/clock.h"
#include "preload/agent/lifecycle/hidden_signals.h"
#include "preload/agent/lifecycle/real.h"
#include "preload/agent/sampler/engine.h"
#include "preload/agent/sampler/thread.h"

/* ---- a mask for the time of a call --------------------------------------------------------------------------------
 */

struct swap {
	struct csink_thread *thread; /* NULL: nothing of ours is in this thread */
	uint64_t blocked;
	int8_t anchor;
	uint64_t let_in; /* blocked by the kernel outside of the call, as the program has it */
};

/*
 * Let the kernel block the signals that the program has blocked and the call lets in, until the call has set its mask:
 * if a handler ran before, the call would wait for a signal that was delivered already. Signals that we kept for the
 * program become pending in the kernel.
 */
static void block_until_call(struct swap *swap, uint64_t let_in, uint64_t asked)
{
	struct csink_thread *thread = swap->thread;
	uint64_t ours = thread->hidden.signals;

	swap->let_in = let_in;
	if (let_in)
		csink_raw_mask(SIG_BLOCK, let_in, NULL);
	if (asked != thread->hidden.blocked) {
		thread->hidden.blocked = asked;
		thread->hidden.anchor = CSINK_ANCHOR_ANY;
	}
	atomic_thread_fence(memory_order_seq_cst); /* pairs with send_to_receiver()'s in pending_signals.c */
	if (!(csink_pending_signals(thread) & ~asked) || csink_in_vfork_child())
		return;
	swap->let_in = ours;
	csink_raw_mask(SIG_BLOCK, ours, NULL);
	csink_pending_release(thread, asked);
}

static void swap_in(struct swap *swap, const sigset_t *mask)
{
	struct csink_thread *thread = csink_self;
	uint64_t let_in;

	swap->thread = NULL;
	if (!thread || !thread->hidden.signals || !mask)
		return;
	let_in = csink_masks_own_blocked() & ~csink_set_bits(mask);
	/* The kernel keeps one pending SIGTRAP: the program's would be lost while a sample's is pending. */
	if (CSINK_UNLIKELY(let_in & CSINK_SIGNAL_BIT(SIGTRAP)) && !csink_signal_is_default(SIGTRAP) &&
	    !csink_in_vfork_child())
		csink_engine_leave_sigtrap(thread, "the program waits for SIGTRAP");
	*swap = (struct swap){thread, thread->hidden.blocked, thread->hidden.anchor, 0};
	block_until_call(swap, let_in, csink_set_bits(mask) & thread->hidden.signals);
	thread->hidden.swap = csink_set_bits(mask);
	thread->hidden.ended_by_sample = false;
	atomic_signal_fence(memory_order_release);
	thread->hidden.swapped = true;
}

static void swap_out(const struct swap *swap)
{
	if (!swap->thread)
		return;
	swap->thread->hidden.swapped = false;
	swap->thread->hidden.blocked = swap->blocked;
	swap->thread->hidden.anchor = swap->anchor;
	if (swap->let_in)
		csink_raw_mask(SIG_UNBLOCK, swap->let_in & csink_masks_open(swap->thread), NULL);
	csink_pending_settle(swap->thread, swap->blocked);
}

/* Was the call ended only by a sample that became pending before the call had set its mask? */
static bool is_to_repeat(const struct swap *swap, bool has_failed)
{
	bool by_sample = swap->thread && swap->thread->hidden.ended_by_sample;

	if (CSINK_UNLIKELY(by_sample))
		swap->thread->hidden.ended_by_sample = false;
	return by_sample && has_failed && errno == EINTR;
}

#define WITH_MASK(mask, call)                                                                                          \
	({                                                                                                             \
		struct swap swap;                                                                                      \
		__typeof__(call) result;                                                                               \
		swap_in(&swap, mask);                                                                                  \
		do {                                                                                                   \
			result = (call);                                                                               \
		} while (CSINK_UNLIKELY(is_to_repeat(&swap, result < 0)));                                             \
		swap_out(&swap);                                                                                       \
		result;                                                                                                \
	})

CSINK_EXPORT int sigsuspend(const sigset_t *mask)
{
	return WITH_MASK(mask, REAL(sigsuspend)(mask));
}

CSINK_EXPORT int pselect(int nr, fd_set *in, fd_set *out, fd_set *err, const struct timespec *timeout,
			 const sigset_t *mask)
{
	return WITH_MASK(mask, REAL(pselect)(nr, in, out, err, timeout, mask));
}

CSINK_EXPORT int ppoll(struct pollfd *fds, nfds_t nr, const struct timespec *timeout, const sigset_t *mask)
{
	return WITH_MASK(mask, REAL(ppoll)(fds, nr, timeout, mask));
}

CSINK_EXPORT int __ppoll_chk(struct pollfd *fds, nfds_t nr, const struct timespec *timeout, const sigset_t *mask,
			     size_t bytes)
{
	return WITH_MASK(mask, REAL(__ppoll_chk)(fds, nr, timeout, mask, bytes));
}

CSINK_EXPORT int epoll_pwait(int epfd, struct epoll_event *events, int max, int timeout, const sigset_t *mask)
{
	return WITH_MASK(mask, REAL(epoll_pwait)(epfd, events, max, timeout, mask));
}

CSINK_EXPORT int epoll_pwait2(int epfd, struct epoll_event *events, int max, const struct timespec *timeout,
			      const sigset_t *mask)
{
	if (!REAL(epoll_pwait2)) {
		errno = ENOSYS;
		return -1;
	}
	return WITH_MASK(mask, REAL(epoll_pwait2)(epfd, events, max, timeout, mask));
}

/* X/Open's, by number, and BSD's, by mask. */
CSINK_EXPORT int __xpg_sigpause(int signo)
{
	sigset_t mask;

	/* As the program would: its own view of the mask. */
	if (CSINK_ALLOW(sigprocmask)(SIG_BLOCK, NULL, &mask) < 0 || sigdelset(&mask, signo) < 0)
		return -1;
	return WITH_MASK(&mask, REAL(sigsuspend)(&mask));
}

/* ---- taking what is blocked ---------------------------------------------------------------------------------------
 */

/* Waits until @end_ns (UINT64_MAX: for ever), over samples that come in between. */
static int wait_over_samples(const sigset_t *set, siginfo_t *info, uint64_t end_ns)
{
	for (;;) {
		uint64_t now = end_ns == UINT64_MAX ? 0 : csink_monotonic_ns();
		uint64_t left = end_ns > now ? end_ns - now : 0;
		struct timespec timeout = {(time_t)(left / CSINK_NS_PER_S), (long)(left % CSINK_NS_PER_S)};
		int signo = REAL(sigtimedwait)(set, info, end_ns == UINT64_MAX ? NULL : &timeout);

		if (signo < 0 || !(CSINK_SIGNAL_BIT(signo) & csink_signals_taken()) ||
		    !csink_sample_is_ours(signo, info))
			return signo;
	}
}

static int take(const sigset_t *set, siginfo_t *out, const struct timespec *timeout)
{
	struct csink_thread *thread = csink_self;
	uint64_t ours = thread && set ? thread->hidden.signals & csink_set_bits(set) : 0;
	uint64_t end_ns = UINT64_MAX;
	siginfo_t info;
	int signo;
	int32_t tid;

	if (!ours || csink_in_vfork_child())
		return REAL(sigtimedwait)(set, out, timeout);
	if (timeout) {
		if (timeout->tv_nsec < 0 || timeout->tv_nsec >= (long)CSINK_NS_PER_S || timeout->tv_sec < 0)
			return REAL(sigtimedwait)(set, out, timeout);
		end_ns = csink_monotonic_ns() + (uint64_t)timeout->tv_nsec;
		if (__builtin_add_overflow(end_ns, (uint64_t)timeout->tv_sec * CSINK_NS_PER_S, &end_ns) ||
		    (uint64_t)timeout->tv_sec > UINT64_MAX / CSINK_NS_PER_S)
			end_ns = UINT64_MAX;
	}
	csink_raw_mask(SIG_BLOCK, ours, NULL);
	__atomic_store_n(&thread->hidden.waiting, ours, __ATOMIC_RELAXED);
	atomic_thread_fence(memory_order_seq_cst); /* pairs with send_to_receiver()'s in pending_signals.c */
	if (csink_pending_take(thread, ours, &info, &tid))
		signo = info.si_signo;
	else
		signo = wait_over_samples(set, &info, end_ns);
	__atomic_store_n(&thread->hidden.waiting, 0, __ATOMIC_RELAXED);
	csink_raw_mask(SIG_UNBLOCK, csink_masks_open(thread), NULL);
	if (CSINK_UNLIKELY(thread->hidden.queued))
		csink_pending_settle(thread, csink_masks_own_blocked());
	if (signo > 0 && out)
		*out = info;
	return signo;
}

CSINK_EXPORT int sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *timeout)
{
	return take(set, info, timeout);
}

CSINK_EXPORT int sigwaitinfo(const sigset_t *set, siginfo_t *info)
{
	return take(set, info, NULL);
}

CSINK_EXPORT int sigwait(const sigset_t *set, int *signo)
{
	int saved = errno, got;

	do {
		errno = 0;
		got = take(set, NULL, NULL);
	} while (got < 0 && errno == EINTR);
	if (got < 0)
		return errno;
	errno = saved;
	*signo = got;
	return 0;
}

/* ---- signalfd ------------------------------------------------------------------------------------------------------
 */

/* Ours are never left pending, so that nothing of theirs could be read there; a sample must not be. */
CSINK_EXPORT int signalfd(int fd, const sigset_t *mask, int flags)
{
	sigset_t room;

	if (!(csink_set_bits(mask) & csink_signals_taken()) || csink_in_vfork_child())
		return REAL(signalfd)(fd, mask, flags);
	room = *mask;
	*csink_set_word(&room) &= ~csink_signals_taken();
	return REAL(signalfd)(fd, &room, flags);
}
