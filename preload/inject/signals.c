/*
 * Our signals, kept out of the program's sight. The program may read, set, block and wait for every signal as if we did
 * not exist: for the engine's own signals its wishes are noted here and the kernel is not told.
 *
 * What arrives and is not ours (a debugger's trap, kill -TRAP) is handed to the program's disposition as the kernel would
 * have done it.
 */
#include "preload/inject/signals.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "preload/inject/real.h"
#include "preload/sample/process.h"
#include "preload/sample/thread.h"

/* The kernel's size of a signal set. */
#define KERNEL_SET_BYTES (_NSIG / 8)

static _Atomic uint64_t taken;            /* bit signo - 1: a signal of ours */
static struct sigaction wanted[_NSIG];    /* what the program set for them */
static _Atomic uint32_t wanted_lock;

extern int __sigaction(int signo, const struct sigaction *act, struct sigaction *old);

static bool is_taken(int signo)
{
	return signo > 0 && signo < _NSIG &&
	       atomic_load_explicit(&taken, memory_order_relaxed) & 1ULL << (signo - 1);
}

/* The program's dispositions are read and written with every signal blocked, so a handler never waits for itself. */
static void lock_wanted(sigset_t *saved)
{
	uint64_t all = ~0ULL;

	syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, saved, KERNEL_SET_BYTES);
	while (atomic_exchange_explicit(&wanted_lock, 1, memory_order_acquire))
		;
}

static void unlock_wanted(const sigset_t *saved)
{
	atomic_store_explicit(&wanted_lock, 0, memory_order_release);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, saved, NULL, KERNEL_SET_BYTES);
}

/* ---- a signal that is not ours ----------------------------------------------------------------------------------- */

static void default_action(int signo)
{
	struct sigaction plain = {.sa_handler = SIG_DFL};

	/* Raised again with nobody in the way; the context that we return to has it unblocked, so it takes effect there. */
	__sigaction(signo, &plain, NULL);
	syscall(SYS_tgkill, getpid(), gettid(), signo);
}

static void call_program(int signo, siginfo_t *info, ucontext_t *uc, const struct sigaction *act)
{
	sigset_t mask = uc->uc_sigmask, ours;

	for (int i = 1; i < _NSIG; i++)
		if (sigismember(&act->sa_mask, i) == 1)
			sigaddset(&mask, i);
	if (!(act->sa_flags & SA_NODEFER))
		sigaddset(&mask, signo);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, &ours, KERNEL_SET_BYTES);
	if (act->sa_flags & SA_SIGINFO)
		act->sa_sigaction(signo, info, uc);
	else
		act->sa_handler(signo);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &ours, NULL, KERNEL_SET_BYTES);
}

static void pass_on(int signo, siginfo_t *info, ucontext_t *uc)
{
	struct sigaction act;
	sigset_t saved;

	lock_wanted(&saved);
	act = wanted[signo];
	if (act.sa_flags & SA_RESETHAND)
		wanted[signo].sa_handler = SIG_DFL;
	unlock_wanted(&saved);
	if (act.sa_handler == SIG_DFL)
		default_action(signo);
	else if (act.sa_handler != SIG_IGN)
		call_program(signo, info, uc, &act);
}

static void entry(int signo, siginfo_t *info, void *context)
{
	if (CSINK_LIKELY(csink_sample_is_ours(signo, info)))
		csink_sample_handler(signo, info, context);
	else
		pass_on(signo, info, context);
}

/* ---- taking a signal and giving it back -------------------------------------------------------------------------- */

int csink_signal_install(int signo)
{
	struct sigaction act = {.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
	uint64_t bit = 1ULL << (signo - 1), old_mask = 0;

	if (is_taken(signo))
		return 0;
	act.sa_sigaction = entry;
	/* Nothing may interrupt the handler: a program's handler could leave it by longjmp. */
	memset(&act.sa_mask, 0xff, sizeof(act.sa_mask));
	if (__sigaction(signo, &act, &wanted[signo]) < 0)
		return -errno;
	atomic_fetch_or_explicit(&taken, bit, memory_order_release);
	/* It may have come blocked from a parent. */
	syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &bit, &old_mask, KERNEL_SET_BYTES);
	if (csink_self)
		csink_self->app_blocks_signal = (old_mask & bit) != 0;
	return 0;
}

void csink_signals_before_exec(void)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	uint64_t ours = atomic_load(&taken);

	/* exec resets handlers to the default but keeps "ignored" and the mask: give the program's wishes back. */
	for (int signo = 1; signo < _NSIG; signo++)
		if (ours & 1ULL << (signo - 1) && wanted[signo].sa_handler == SIG_IGN)
			__sigaction(signo, &ignore, NULL);
	if (csink_self && csink_self->app_blocks_signal)
		syscall(SYS_rt_sigprocmask, SIG_BLOCK, &ours, NULL, KERNEL_SET_BYTES);
}

void csink_signals_exec_failed(void)
{
	struct sigaction act = {.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
	uint64_t ours = atomic_load(&taken);

	act.sa_sigaction = entry;
	memset(&act.sa_mask, 0xff, sizeof(act.sa_mask));
	for (int signo = 1; signo < _NSIG; signo++)
		if (ours & 1ULL << (signo - 1) && wanted[signo].sa_handler == SIG_IGN)
			__sigaction(signo, &act, NULL);
	syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &ours, NULL, KERNEL_SET_BYTES);
}

/* ---- what the program calls -------------------------------------------------------------------------------------- */

CSINK_EXPORT int sigaction(int signo, const struct sigaction *act, struct sigaction *old)
{
	struct sigaction before;
	sigset_t saved;

	if (!is_taken(signo))
		return __sigaction(signo, act, old);
	lock_wanted(&saved);
	before = wanted[signo];
	if (act)
		wanted[signo] = *act;
	unlock_wanted(&saved);
	if (old)
		*old = before;
	return 0;
}

static sighandler_t set_handler(int signo, sighandler_t handler, int flags)
{
	struct sigaction act = {.sa_flags = flags}, old;

	act.sa_handler = handler;
	if (!(flags & SA_NODEFER))
		sigaddset(&act.sa_mask, signo);
	return sigaction(signo, &act, &old) < 0 ? SIG_ERR : old.sa_handler;
}

CSINK_EXPORT sighandler_t signal(int signo, sighandler_t handler)
{
	return is_taken(signo) ? set_handler(signo, handler, SA_RESTART) : REAL(signal)(signo, handler);
}

CSINK_EXPORT sighandler_t sysv_signal(int signo, sighandler_t handler)
{
	return is_taken(signo) ? set_handler(signo, handler, SA_RESETHAND | SA_NODEFER) :
				 REAL(sysv_signal)(signo, handler);
}

/* The set without our signals, in @room if they were in it. */
static const sigset_t *without_ours(const sigset_t *set, sigset_t *room)
{
	uint64_t ours = atomic_load_explicit(&taken, memory_order_relaxed);

	if (!set || !(*(const uint64_t *)set & ours))
		return set;
	*room = *set;
	*(uint64_t *)room &= ~ours;
	return room;
}

static int set_mask(int (*real)(int, const sigset_t *, sigset_t *), int how, const sigset_t *set, sigset_t *old)
{
	struct csink_thread *thread = csink_self;
	uint64_t ours = atomic_load_explicit(&taken, memory_order_relaxed);
	bool blocked = thread && thread->app_blocks_signal;
	bool in_set = set && *(const uint64_t *)set & ours;
	sigset_t room;
	int err = real(how, without_ours(set, &room), old);

	if (err || !ours || !thread)
		return err;
	if (set && how == SIG_SETMASK)
		thread->app_blocks_signal = in_set;
	else if (in_set)
		thread->app_blocks_signal = how == SIG_BLOCK;
	if (old && blocked)
		*(uint64_t *)old |= 1ULL << (csink_process.signo - 1);
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

CSINK_EXPORT int sigwait(const sigset_t *set, int *signo)
{
	sigset_t room;

	return REAL(sigwait)(without_ours(set, &room), signo);
}

CSINK_EXPORT int sigwaitinfo(const sigset_t *set, siginfo_t *info)
{
	sigset_t room;

	return REAL(sigwaitinfo)(without_ours(set, &room), info);
}

CSINK_EXPORT int sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *timeout)
{
	sigset_t room;

	return REAL(sigtimedwait)(without_ours(set, &room), info, timeout);
}
