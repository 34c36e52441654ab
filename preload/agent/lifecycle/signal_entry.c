/*
 * The kernel's handler of our signals. A signal that the engine raised goes to the sampler, mostly on a stack of ours;
 * one that the program was sent goes to the program's own handler, or is kept while the program has it blocked. Runs as
 * a signal handler on any thread: no lock but that of the hidden signals, no call of libc.
 */
#include <errno.h>
#include <ucontext.h>

#include "include/internal/alignment_check.h"
#include "include/internal/base.h"
#include "include/internal/rawcall.h"
#include "preload/agent/lifecycle/hidden_signals.h"
#include "preload/agent/sampler/call_on_stack.h"
#include "preload/agent/sampler/engine.h"
#include "preload/agent/sampler/thread.h"
#include "preload/core/calls_off.h"
#include "preload/core/safe_load.h"

/* Four times the handler's own stack: a stack may end above what is known as its lowest address. */
enum { LEAST_ROOM = 128 << 10 };

static void default_action(int signo)
{
	struct csink_kernel_action plain = {0};

	/* Raised again, without a handler; the context that we return to has it unblocked, so it takes effect
	 * there. */
	csink_rawcall(SYS_rt_sigaction, signo, &plain, NULL, CSINK_SET_BYTES);
	csink_rawcall(SYS_tgkill, csink_rawcall(SYS_getpid), csink_rawcall(SYS_gettid), signo);
}

/*
 * The kernel restarted the call that was interrupted, because our handler asks for that. The program's asks for EINTR:
 * the call is stepped over, with that result.
 */
static void interrupt_call(ucontext_t *uc)
{
#if defined(__x86_64__)
	static const uint16_t waits[] = {
		SYS_read,         SYS_write,         SYS_readv,    SYS_writev,   SYS_wait4,
		SYS_waitid,       SYS_futex,         SYS_accept,   SYS_accept4,  SYS_connect,
		SYS_recvfrom,     SYS_recvmsg,       SYS_sendto,   SYS_sendmsg,  SYS_flock,
		SYS_fcntl,        SYS_openat,        SYS_open,     SYS_ioctl,    SYS_mq_timedreceive,
		SYS_mq_timedsend, SYS_getrandom,     SYS_splice,   SYS_tee,      SYS_vmsplice,
		SYS_sendfile,     SYS_preadv2,       SYS_pwritev2, SYS_recvmmsg, SYS_sendmmsg,
		SYS_creat,        437 /* openat2 */, 449 /* futex_waitv */};
	/* Bits of the operation that FUTEX_WAIT, FUTEX_WAIT_BITSET and the flags do not have. */
	enum { FUTEX_NO_WAIT = 0x76 };
	greg_t *regs = uc->uc_mcontext.gregs;
	const unsigned char *at = (const unsigned char *)regs[REG_RIP];

	if (!csink_readable((uintptr_t)at, 2) || at[0] != 0x0f || at[1] != 0x05)
		return;
	/* The kernel restarts FUTEX_LOCK_PI whatever the handler asks for: libc would take EINTR for a lock. */
	if (regs[REG_RAX] == SYS_futex && regs[REG_RSI] & FUTEX_NO_WAIT)
		return;
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(waits); i++)
		if (regs[REG_RAX] == waits[i]) {
			regs[REG_RAX] = -EINTR;
			regs[REG_RIP] += 2;
			return;
		}
#else
	(void)uc; /* a gap that is in countersink(7) */
#endif
}

static void call_program(int signo, siginfo_t *info, ucontext_t *uc, const struct sigaction *act)
{
	uint64_t mask = csink_set_bits(&uc->uc_sigmask) | csink_set_bits(&act->sa_mask), ours;

	if (!(act->sa_flags & SA_NODEFER))
		mask |= CSINK_SIGNAL_BIT(signo);
	if (!(act->sa_flags & SA_RESTART))
		interrupt_call(uc);
	csink_raw_mask(SIG_SETMASK, mask, &ours);
	if (act->sa_flags & SA_SIGINFO)
		act->sa_sigaction(signo, info, uc);
	else
		act->sa_handler(signo);
	csink_raw_mask(SIG_SETMASK, ours, NULL);
}

static void give(int signo, siginfo_t *info, ucontext_t *uc)
{
	struct sigaction act = csink_signal_take_action(signo);

	if (act.sa_handler == SIG_DFL)
		default_action(signo);
	else if (act.sa_handler != SIG_IGN)
		call_program(signo, info, uc, &act);
}

static void pass_on(int signo, siginfo_t *info, ucontext_t *uc)
{
	struct csink_thread *thread = csink_thread_checked();
	siginfo_t kept;
	int32_t tid;

	if (thread && csink_masks_blocked(thread, csink_set_bits(&uc->uc_sigmask)) & CSINK_SIGNAL_BIT(signo)) {
		/* A forked child that has not begun, or a vfork child: what is in our memory is the parent's. */
		if (csink_in_vfork_child())
			csink_pending_defer(thread, signo, info, uc);
		else
			csink_pending_add(thread, signo, info, uc);
		return;
	}
	/* Kept while a handler of the program's blocked the number: these came before. */
	while (thread && signo >= SIGRTMIN && csink_pending_take(thread, CSINK_SIGNAL_BIT(signo), &kept, &tid))
		give(signo, &kept, uc);
	give(signo, info, uc);
}

/* Has the interrupted code just come back from a system call that a signal ended? */
static bool is_after_eintr(const ucontext_t *uc)
{
#if defined(__x86_64__)
	const unsigned char *at = (const unsigned char *)uc->uc_mcontext.gregs[REG_RIP];

	return uc->uc_mcontext.gregs[REG_RAX] == -EINTR && at[-2] == 0x0f && at[-1] == 0x05;
#else
	return uc->uc_mcontext.regs[0] == (uint64_t)-EINTR && ((const uint32_t *)uc->uc_mcontext.pc)[-1] == 0xd4000001;
#endif
}

/*
 * Has our handler itself been interrupted? It blocks our signals, but the kernel delivers a blocked SIGTRAP that waits
 * before a SIGBUS of the same thread (dequeue_synchronous_signal() in its kernel/signal.c). What such a sample counted
 * is the next one's.
 */
static inline bool is_in_handler(const struct csink_thread *thread, const ucontext_t *uc)
{
	uintptr_t lowest = (uintptr_t)(thread->handler_stack + CSINK_JUMP_STACK);

	return thread->is_in_handler || csink_context_sp(uc) - lowest < CSINK_HANDLER_STACK - CSINK_JUMP_STACK;
}

static bool has_room(const struct csink_thread *thread, uintptr_t sp)
{
	return sp > thread->stack.low + LEAST_ROOM && sp < thread->stack.high;
}

/* Does the handler run on the interrupted stack? */
static inline bool stays_on_stack(const struct csink_thread *thread, const ucontext_t *uc)
{
	return CSINK_UNLIKELY(csink_engine_state.stay_on_stack) ||
	       (CSINK_UNLIKELY(!csink_engine_state.alternate_stack) && has_room(thread, csink_context_sp(uc)));
}

/*
 * A signal has ended a sigsuspend or ppoll. If it was a sample whose number the program has blocked outside of the
 * call, the call is repeated (waits.c), and the program's signals end it. Else the program's pending signals are
 * delivered now, under the mask of the call: the handler returns to the mask from before the call, which would block
 * them. A signal that was just delivered is not delivered a second time in the same call.
 */
static void end_wait(struct csink_thread *thread, int signo, uint64_t served, const ucontext_t *uc)
{
	if (!served && csink_set_bits(&uc->uc_sigmask) & CSINK_SIGNAL_BIT(signo))
		thread->hidden.ended_by_sample = true;
	else
		csink_raw_mask(SIG_SETMASK, thread->hidden.swap | served, NULL);
}

/*
 * The kernel restarts a system call that a sample and a signal of the program's interrupt together: it looks at the
 * sample's handler alone, ours. The program's handler runs when ours returns. If it is one that ends calls, this one is
 * ended here. A restarted call is known by RCX, where syscall has left the address behind itself: no load, no call.
 */
static inline bool is_restarted(const ucontext_t *uc)
{
#if defined(__x86_64__)
	return uc->uc_mcontext.gregs[REG_RCX] == uc->uc_mcontext.gregs[REG_RIP] + 2;
#else
	(void)uc;
	return false;
#endif
}

static __attribute__((noinline, cold)) void end_restarted(ucontext_t *uc)
{
	uint64_t pending = 0;

	if (csink_calls_are_off(CSINK_CALLS_PAUSE | CSINK_CALLS_LIFE))
		return;
	csink_rawcall(SYS_rt_sigpending, &pending, CSINK_SET_BYTES);
	for (pending &= ~csink_set_bits(&uc->uc_sigmask); pending; pending &= pending - 1) {
		struct csink_kernel_action act = {0};

		csink_rawcall(SYS_rt_sigaction, __builtin_ctzll(pending) + 1, NULL, &act, CSINK_SET_BYTES);
		if ((uintptr_t)act.handler > (uintptr_t)SIG_IGN) {
			if (!(act.flags & SA_RESTART))
				interrupt_call(uc);
			return;
		}
	}
}

void csink_signal_entry(int signo, siginfo_t *info, void *context)
{
	struct csink_thread *thread = csink_self;
	uint64_t served = 0;

	csink_alignment_check_off();
	if (CSINK_UNLIKELY(!csink_sample_is_ours(signo, info) || (signo == SIGIO && !csink_signal_is_default(signo)))) {
		pass_on(signo, info, context);
		thread = csink_thread_checked();
		served = CSINK_SIGNAL_BIT(signo);
	} else if (CSINK_LIKELY(thread != NULL && !is_in_handler(thread, context))) {
		if (stays_on_stack(thread, context)) {
			thread->is_in_handler = true;
			csink_sample_handler(signo, info, context);
			thread->is_in_handler = false;
		} else {
			csink_call_on_stack(csink_sample_handler, signo, info, context,
					    thread->handler_stack + sizeof(thread->handler_stack));
		}
	}
	if (CSINK_UNLIKELY(thread && thread->hidden.swapped) && is_after_eintr(context))
		end_wait(thread, signo, served, context);
	else if (CSINK_UNLIKELY(!served && is_restarted(context)))
		end_restarted(context);
}
