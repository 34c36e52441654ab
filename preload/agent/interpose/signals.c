/*
 * sigaction(2), sigaltstack(2), and the older names for sigaction() and sigprocmask(): signal(), System V's and BSD's.
 * Any thread, also in signal handlers: async-signal-safe.
 */
#include <stdbool.h>

#include "include/internal/base.h"
#include "preload/agent/lifecycle/bus_guard.h"
#include "preload/agent/lifecycle/hidden_signals.h"
#include "preload/agent/lifecycle/real.h"
#include "preload/agent/sampler/process.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

CSINK_EXPORT int sigaltstack(const stack_t *stack, stack_t *old)
{
	if (stack)
		csink_signals_add_stack(stack);
	return REAL(sigaltstack)(stack, old);
}

static int set_action(int signo, const struct sigaction *act, struct sigaction *old)
{
	csink_signals_note_stack(act);
	if (signo == SIGBUS && (csink_bus_guard_is_on() || atomic_load(&csink_process.active)))
		return csink_bus_guard_sigaction(act, old);
	if (!csink_signal_is_taken(signo))
		return csink_signal_set_other(signo, act, old);
	/* A vfork child's handlers are its own: the kernel keeps them apart from ours. */
	return csink_in_vfork_child() ? REAL(sigaction)(signo, act, old) : csink_signal_set_hidden(signo, act, old);
}

CSINK_EXPORT int sigaction(int signo, const struct sigaction *act, struct sigaction *old)
{
	return set_action(signo, act, old);
}

/* Our sigaction() says other things of it than the kernel. */
static bool is_watched(int signo)
{
	return csink_signal_is_taken(signo) || (signo == SIGBUS && csink_bus_guard_is_on());
}

static sighandler_t set_handler(int signo, sighandler_t handler, int flags)
{
	struct sigaction act = {.sa_flags = flags}, old;

	act.sa_handler = handler;
	if (!(flags & SA_NODEFER))
		*csink_set_word(&act.sa_mask) = CSINK_SIGNAL_BIT(signo);
	return set_action(signo, &act, &old) < 0 ? SIG_ERR : old.sa_handler;
}

CSINK_EXPORT sighandler_t signal(int signo, sighandler_t handler)
{
	return is_watched(signo) ? set_handler(signo, handler, SA_RESTART) : REAL(signal)(signo, handler);
}

CSINK_EXPORT sighandler_t sysv_signal(int signo, sighandler_t handler)
{
	return is_watched(signo) ? set_handler(signo, handler, SA_RESETHAND | SA_NODEFER)
				 : REAL(sysv_signal)(signo, handler);
}

/* By the interposed call (masks.c), as if the program had made it. */
static bool block_one(int how, int signo)
{
	sigset_t one = {0}, old;

	*csink_set_word(&one) = CSINK_SIGNAL_BIT(signo);
	return CSINK_ALLOW(sigprocmask)(how, &one, &old) == 0 && csink_set_bits(&old) & CSINK_SIGNAL_BIT(signo);
}

CSINK_EXPORT sighandler_t sigset(int signo, sighandler_t handler)
{
	struct sigaction act = {.sa_flags = 0}, old;
	bool was_blocked;

	if (!is_watched(signo))
		return REAL(sigset)(signo, handler);
	was_blocked = block_one(handler == SIG_HOLD ? SIG_BLOCK : SIG_UNBLOCK, signo);
	act.sa_handler = handler;
	if (set_action(signo, handler == SIG_HOLD ? NULL : &act, &old) < 0)
		return SIG_ERR;
	return was_blocked ? SIG_HOLD : old.sa_handler;
}

CSINK_EXPORT int sighold(int signo)
{
	if (!csink_signal_is_taken(signo))
		return REAL(sighold)(signo);
	block_one(SIG_BLOCK, signo);
	return 0;
}

CSINK_EXPORT int sigrelse(int signo)
{
	if (!csink_signal_is_taken(signo))
		return REAL(sigrelse)(signo);
	block_one(SIG_UNBLOCK, signo);
	return 0;
}

CSINK_EXPORT int sigignore(int signo)
{
	struct sigaction act = {.sa_handler = SIG_IGN};

	return is_watched(signo) ? set_action(signo, &act, NULL) : REAL(sigignore)(signo);
}

CSINK_EXPORT int siginterrupt(int signo, int interrupt)
{
	struct sigaction act;

	if (!csink_signal_is_taken(signo))
		return REAL(siginterrupt)(signo, interrupt);
	set_action(signo, NULL, &act);
	if (interrupt)
		act.sa_flags &= ~SA_RESTART;
	else
		act.sa_flags |= SA_RESTART;
	return set_action(signo, &act, NULL);
}
