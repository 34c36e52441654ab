/*
 * Which signals are ours in this process, what the program set for them, and what the kernel has instead. Interposed
 * calls, the constructor and forked children enter here, on any thread, also in the program's signal handlers:
 * async-signal-safe but for csink_signals_begin(). The lock is taken with every signal blocked.
 */
#include "preload/agent/lifecycle/hidden_signals.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "include/internal/base.h"
#include "include/internal/rawcall.h"
#include "include/internal/shared_options.h"
#include "preload/agent/lifecycle/bus_guard.h"
#include "preload/agent/lifecycle/real.h"
#include "preload/agent/sampler/engine.h"
#include "preload/agent/sampler/process.h"
#include "preload/agent/sampler/thread.h"
#include "preload/agent/unwind/find_object.h"
#include "preload/core/calls_off.h"

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

static _Atomic uint64_t taken;                        /* bit signo - 1: a signal of ours */
static CSINK_COLD struct sigaction wanted[_NSIG - 1]; /* what the program set for them: from signal 1 on */
static uint64_t masked[_NSIG - 1]; /* of the other handlers' sa_mask: the bits that are ours, as the program set them */
static _Atomic uint32_t lock;
static uint64_t may_have_handler = UINT64_MAX; /* what is not in it has none; the constructor knows */
static bool small_stacks;                      /* some thread has a small alternate stack */

uint64_t csink_signals_taken(void)
{
	return atomic_load_explicit(&taken, memory_order_relaxed);
}

bool csink_signals_small_stacks(void)
{
	return small_stacks;
}

bool csink_in_vfork_child(void)
{
	/* A vfork child that cannot be recognized is treated as its parent, whose calls must behave as always. */
	return !csink_calls_are_off(CSINK_CALLS_SELF) && (pid_t)csink_rawcall(SYS_getpid) != csink_process.pid;
}

void csink_signals_lock(uint64_t *saved)
{
	csink_raw_mask(SIG_BLOCK, ~0ULL, saved);
	while (atomic_exchange_explicit(&lock, 1, memory_order_acquire))
		;
}

void csink_signals_unlock(const uint64_t *saved)
{
	atomic_store_explicit(&lock, 0, memory_order_release);
	csink_raw_mask(SIG_SETMASK, *saved, NULL);
}

void csink_signal_raise(int32_t tid, int signo, const siginfo_t *info)
{
	/* A forked child's own, before it has begun. */
	pid_t pid = csink_calls_are_off(CSINK_CALLS_SELF) ? csink_process.pid : (pid_t)csink_rawcall(SYS_getpid);

	/* A process may send itself a signal with any si_code and sender. */
	if (csink_calls_are_off(CSINK_CALLS_QUEUE) || (tid ? csink_rawcall(SYS_rt_tgsigqueueinfo, pid, tid, signo, info)
							   : csink_rawcall(SYS_rt_sigqueueinfo, pid, signo, info)))
		tid ? csink_rawcall(SYS_tgkill, pid, tid, signo) : csink_rawcall(SYS_kill, pid, signo);
}

/* ---- what the program set ---------------------------------------------------------------------------------------- */

bool csink_signal_is_default(int signo)
{
	return wanted[signo - 1].sa_handler == SIG_DFL;
}

struct sigaction csink_signal_take_action(int signo)
{
	struct sigaction act;
	uint64_t saved;

	csink_signals_lock(&saved);
	act = wanted[signo - 1];
	if (act.sa_flags & SA_RESETHAND)
		wanted[signo - 1].sa_handler = SIG_DFL;
	csink_signals_unlock(&saved);
	return act;
}

/* ---- taking a signal and giving it back -------------------------------------------------------------------------- */

/* Nothing may interrupt the handler: a program's handler could leave it by longjmp. A fault in the recording must. */
static uint64_t entry_mask(void)
{
	return csink_bus_guard_is_on() ? ~CSINK_SIGNAL_BIT(SIGBUS) : ~0ULL;
}

void csink_signals_renew(void)
{
	for (int signo = 1; signo < _NSIG; signo++) {
		struct csink_kernel_action act;

		if (!csink_signal_is_taken(signo) ||
		    csink_rawcall(SYS_rt_sigaction, signo, NULL, &act, CSINK_SET_BYTES) ||
		    act.handler != csink_signal_entry)
			continue;
		act.flags |= (unsigned long)csink_engine_state.alternate_stack;
		act.mask = entry_mask();
		csink_rawcall(SYS_rt_sigaction, signo, &act, NULL, CSINK_SET_BYTES);
	}
}

/*
 * A sanitizer's sigaction() installs a handler of its own, which calls ours later, from its own code: all samples would
 * be found there. So our handler is installed by the system call.
 */
static void set_kernel_handler(int signo)
{
	struct csink_kernel_action act;

	if (csink_rawcall(SYS_rt_sigaction, signo, NULL, &act, CSINK_SET_BYTES) || act.handler == csink_signal_entry)
		return;
	act.handler = csink_signal_entry;
	act.flags |= SA_SIGINFO | SA_RESTART | (unsigned long)csink_engine_state.alternate_stack;
	act.mask = entry_mask();
	csink_rawcall(SYS_rt_sigaction, signo, &act, NULL, CSINK_SET_BYTES);
}

static int set_entry(int signo, struct sigaction *old)
{
	struct sigaction act = {.sa_flags = SA_SIGINFO | SA_RESTART | csink_engine_state.alternate_stack};

	act.sa_sigaction = csink_signal_entry;
	memset(&act.sa_mask, 0xff, sizeof(act.sa_mask));
	*csink_set_word(&act.sa_mask) = entry_mask();
	if (REAL(sigaction)(signo, &act, old) < 0)
		return -errno;
	set_kernel_handler(signo);
	return 0;
}

/* In a forked child: clone3(2) may have reset all handlers (CLONE_CLEAR_SIGHAND). */
static void enter_again(void)
{
	struct sigaction was;

	for (int signo = 1; signo < _NSIG; signo++) {
		if (!csink_signal_is_taken(signo) || set_entry(signo, &was) || was.sa_handler != SIG_DFL)
			continue;
		csink_bus_guard_enter();
		if (wanted[signo - 1].sa_handler != SIG_IGN)
			wanted[signo - 1].sa_handler = SIG_DFL;
	}
}

void csink_signals_forked(void)
{
	atomic_store(&lock, 0);
	csink_pending_reset();
	enter_again();
	/* From here on signals are kept in the child's own state. Those that came earlier were deferred. */
	csink_process.pid = getpid();
	/* A signal that is deferred after the look at @deferred would stay blocked. */
	atomic_signal_fence(memory_order_seq_cst);
	if (csink_self && (csink_self->hidden.queued || csink_self->hidden.deferred)) {
		csink_self->hidden.queued = 0;
		csink_self->hidden.deferred = false;
		csink_raw_mask(SIG_UNBLOCK, csink_self->hidden.signals, NULL);
	}
}

/*
 * What a handler of the program's may block. Ours stays unblocked, or time spent there would be seen where it returns
 * to; but not on an alternate stack: that may have no room for a second signal's frame.
 */
static void adapt_mask(struct sigaction *act)
{
	uint64_t *mask = csink_set_word(&act->sa_mask);

	if (act->sa_flags & SA_ONSTACK && small_stacks)
		*mask |= csink_signals_taken();
	else
		*mask &= ~csink_signals_taken();
}

/* Handlers that were set before a signal became ours, or before there was a small stack. */
static void adapt_handlers(uint64_t taken_now)
{
	for (int signo = 1; signo < _NSIG; signo++) {
		struct sigaction act;

		if (!(may_have_handler & CSINK_SIGNAL_BIT(signo)) || csink_signal_is_taken(signo) ||
		    (signo == SIGBUS && csink_bus_guard_is_on()) || REAL(sigaction)(signo, NULL, &act) < 0 ||
		    act.sa_handler == SIG_DFL || act.sa_handler == SIG_IGN)
			continue;
		masked[signo - 1] = (masked[signo - 1] & ~taken_now) | (csink_set_bits(&act.sa_mask) & taken_now);
		adapt_mask(&act);
		REAL(sigaction)(signo, &act, NULL);
	}
}

/* Room on an alternate stack for two frames of the kernel's, beside the program's own needs. */
static size_t stack_bytes_wanted(void)
{
	size_t frame = getauxval(AT_MINSIGSTKSZ);

	return 2 * (frame ? frame : 4096) + 8192;
}

void csink_signals_add_stack(const stack_t *stack)
{
	if (!(stack->ss_flags & SS_DISABLE) && !small_stacks && stack->ss_size < stack_bytes_wanted() &&
	    csink_signals_taken() && !csink_in_vfork_child()) {
		uint64_t saved;

		csink_signals_lock(&saved);
		small_stacks = true;
		adapt_handlers(0);
		csink_signals_unlock(&saved);
	}
}

void csink_signals_note_stack(const struct sigaction *act)
{
	uint64_t saved;

	if (act && act->sa_flags & SA_ONSTACK && !csink_engine_state.alternate_stack &&
	    (!csink_signals_taken() || !csink_in_vfork_child())) {
		csink_signals_lock(&saved);
		csink_engine_state.alternate_stack = SA_ONSTACK;
		csink_signals_renew();
		csink_signals_unlock(&saved);
	}
}

int csink_signal_set_hidden(int signo, const struct sigaction *act, struct sigaction *old)
{
	struct sigaction before;
	uint64_t saved;

	csink_signals_lock(&saved);
	before = wanted[signo - 1];
	if (act)
		wanted[signo - 1] = *act;
	csink_signals_unlock(&saved);
	if (old)
		*old = before;
	return 0;
}

static int set_other(int signo, const struct sigaction *act, struct sigaction *old)
{
	uint64_t ours = csink_signals_taken(), bits = 0, before;
	struct sigaction adapted;

	if (act) {
		adapted = *act;
		bits = csink_set_bits(&act->sa_mask) & ours;
		adapt_mask(&adapted);
	}
	before = masked[signo - 1];
	if (REAL(sigaction)(signo, act ? &adapted : NULL, old) < 0)
		return -1;
	if (old)
		*csink_set_word(&old->sa_mask) = (csink_set_bits(&old->sa_mask) & ~ours) | before;
	if (act && bits != before && !csink_in_vfork_child())
		masked[signo - 1] = bits;
	return 0;
}

int csink_signal_set_other(int signo, const struct sigaction *act, struct sigaction *old)
{
	uint64_t saved;
	int result;

	if (!csink_signals_taken() || signo <= 0 || signo >= _NSIG)
		return REAL(sigaction)(signo, act, old);
	if (csink_is_single_threaded() || csink_in_vfork_child())
		return set_other(signo, act, old);
	/* Another thread may be making it ours, or be adapting the handler that this call replaces. */
	csink_signals_lock(&saved);
	result = csink_signal_is_taken(signo) ? 1 : set_other(signo, act, old);
	csink_signals_unlock(&saved);
	return result > 0 ? csink_signal_set_hidden(signo, act, old) : result;
}

int csink_signal_install(int signo)
{
	uint64_t bit = CSINK_SIGNAL_BIT(signo), saved;
	int err = 0;

	/* Two threads may choose the same one: the second would find our handler, and take it for the program's. */
	csink_signals_lock(&saved);
	if (!csink_signal_is_taken(signo)) {
		err = set_entry(signo, &wanted[signo - 1]);
		if (!err) {
			atomic_fetch_or_explicit(&taken, bit, memory_order_release);
			adapt_handlers(bit);
		}
	}
	csink_signals_unlock(&saved);
	if (err)
		return err;
	if (csink_self)
		csink_masks_hide(csink_self, bit, 0);
	return 0;
}

static bool is_alone(void)
{
	for (struct csink_thread *at = csink_threads_first(); at; at = at->next)
		if (at != csink_self && atomic_load(&at->state) != CSINK_THREAD_FREE)
			return false;
	return true;
}

void csink_signal_uninstall(int signo)
{
	struct csink_thread *thread = csink_self;
	uint64_t bit = CSINK_SIGNAL_BIT(signo), blocked;

	if (!csink_signal_is_taken(signo) || !thread || !is_alone())
		return;
	blocked = csink_masks_own_blocked() & bit;
	csink_raw_mask(SIG_BLOCK, blocked, NULL);
	REAL(sigaction)(signo, &wanted[signo - 1], NULL);
	atomic_fetch_and(&taken, ~bit);
	thread->hidden.signals &= ~bit;
	thread->hidden.blocked &= ~bit;
	csink_pending_release(thread, ~bit);
}

uint64_t csink_signals_ignored(void)
{
	uint64_t ours = csink_signals_taken(), ignored = 0;

	for (int signo = 1; signo < _NSIG && ours >> (signo - 1); signo++)
		if (csink_signal_is_taken(signo) && wanted[signo - 1].sa_handler == SIG_IGN)
			ignored |= CSINK_SIGNAL_BIT(signo);
	return ignored;
}

void csink_signals_begun(void)
{
	may_have_handler = UINT64_MAX;
}

void csink_signals_begin(uint64_t caught)
{
	const char *text = getenv(CSINK_ENV_IGNORED);
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	uint64_t ignored = text ? strtoull(text, NULL, 16) : 0;

	may_have_handler = caught;
	for (int signo = 1; signo < _NSIG && ignored; signo++)
		if (ignored & CSINK_SIGNAL_BIT(signo))
			REAL(sigaction)(signo, &ignore, NULL);
	if (text)
		unsetenv(CSINK_ENV_IGNORED);
}

void csink_signals_before_exec(void)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN}, now;
	uint64_t blocked = csink_masks_own_blocked(), ours = csink_signals_taken();

	/* exec resets handlers to the default but keeps "ignored" and the mask: set both as the program did. */
	for (int signo = 1; signo < _NSIG && ours >> (signo - 1); signo++)
		if (csink_signal_is_taken(signo) && wanted[signo - 1].sa_handler == SIG_IGN &&
		    REAL(sigaction)(signo, NULL, &now) == 0 && now.sa_sigaction == csink_signal_entry)
			REAL(sigaction)(signo, &ignore, NULL);
	if (csink_self) /* the handler may have blocked some (csink_engine_block_in) */
		csink_raw_mask(SIG_UNBLOCK, csink_self->hidden.signals & ~blocked, NULL);
	if (blocked)
		csink_raw_mask(SIG_BLOCK, blocked, NULL);
	/* What is pending stays so across an exec. */
	if (csink_self && !csink_in_vfork_child())
		csink_pending_release(csink_self, 0);
}

void csink_signals_exec_failed(void)
{
	for (int signo = 1; signo < _NSIG; signo++)
		if (csink_signal_is_taken(signo) && wanted[signo - 1].sa_handler == SIG_IGN)
			set_entry(signo, NULL);
	if (csink_self) /* what was raised again comes here, and is kept again */
		csink_raw_mask(SIG_UNBLOCK, csink_masks_open(csink_self), NULL);
}
