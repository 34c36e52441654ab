/*
 * Our signals, hidden from the program. The program may read, set, block and wait for every signal as if this library
 * did not exist: for the engine's own signals the program's settings are kept here, and the kernel gets ours.
 *
 *   hidden_signals.c   which signals are ours, the actions that the program set for them, exec and fork
 *   signal_entry.c     the kernel's handler of our signals: to the sampler, or to the program
 *   hidden_masks.c     which of our signals the program has blocked, thread by thread
 *   pending_signals.c  signals of the program that arrived while the program had them blocked
 *
 * The calls that programs make are in preload/agent/interpose: signals.c, masks.c, waits.c, jumps.c.
 *
 * All of it holds for tasks of this process alone. A vfork child shares our memory but has signals of its own: there
 * everything goes to the kernel, and nothing is stored (csink_in_vfork_child).
 */
#ifndef CSINK_HIDDEN_SIGNALS_H
#define CSINK_HIDDEN_SIGNALS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

#include "include/internal/rawcall.h"
#include "preload/agent/sampler/thread.h"

/* The kernel's size of a signal set, and ours: one word. */
#define CSINK_SET_BYTES (_NSIG / 8)
#define CSINK_SIGNAL_BIT(signo) (1ULL << ((signo)-1))

/* The kernel's struct sigaction. Its zeroes are SIG_DFL, no flags and an empty mask. */
struct csink_kernel_action {
	void (*handler)(int signo, siginfo_t *info, void *context);
	unsigned long flags;
	void (*restorer)(void);
	uint64_t mask;
};

static inline uint64_t *csink_set_word(sigset_t *set)
{
	return (uint64_t *)set;
}

static inline uint64_t csink_set_bits(const sigset_t *set)
{
	return *(const uint64_t *)set;
}

/* The kernel's own call; libc's would keep its internal signals out and may be interposed. */
static inline void csink_raw_mask(int how, uint64_t set, uint64_t *old)
{
	csink_rawcall(SYS_rt_sigprocmask, how, &set, old, CSINK_SET_BYTES);
}

/* ---- hidden_signals.c ---- */

/**
 * Make csink_signal_entry the kernel's handler of a signal, and hide the signal in the calling thread; what the program
 * had set is kept as its wish. Returns 0 or -errno. Idempotent. Context: init, thread.
 */
int csink_signal_install(int signo);

/** Give a signal back to the program, if this is the only thread: others may still be sampled by it. Context: thread.
 */
void csink_signal_uninstall(int signo);

/** Bits of the signals that are ours in this process. Context: any. */
uint64_t csink_signals_taken(void);

/** Whether a signal is one of ours. Context: any. */
static inline bool csink_signal_is_taken(int signo)
{
	return signo > 0 && signo < _NSIG && csink_signals_taken() & CSINK_SIGNAL_BIT(signo);
}

/** True in a task that runs in our memory but is another process: a vfork child; also in a forked child until
 * csink_image_begin_child(). Context: any (a syscall). */
bool csink_in_vfork_child(void);

/** True once some thread has had an alternate stack with room for little. Context: any. */
bool csink_signals_small_stacks(void);

/** A thread is about to get this alternate stack: if it is small, block our signals in the handlers that run on
 * alternate stacks. Context: thread. */
void csink_signals_add_stack(const stack_t *stack);

/** A handler that the program sets, or NULL: from its first one with SA_ONSTACK on, ours have that, too. Context: any.
 */
void csink_signals_note_stack(const struct sigaction *act);

/**
 * sigaction(2) for the program, of one of our signals and of another one. The first only keeps what the program set.
 * Return 0, or -1 with errno. Context: any.
 */
int csink_signal_set_hidden(int signo, const struct sigaction *act, struct sigaction *old);
int csink_signal_set_other(int signo, const struct sigaction *act, struct sigaction *old);

/** The program's action for one of our signals; taken for a delivery: SA_RESETHAND is applied. Context: signal. */
struct sigaction csink_signal_take_action(int signo);

/** Whether the program left one of our signals at its default action. Context: any. */
bool csink_signal_is_default(int signo);

/** Give the kernel the masks and flags of our own handlers again, after csink_bus_guard_is_on() or
 * csink_engine_state.alternate_stack has changed. Context: any. */
void csink_signals_renew(void);

/** Those of our signals that the program ignores. Context: thread. */
uint64_t csink_signals_ignored(void);

/**
 * Ignore what CSINK_ENV_IGNORED says, and take it out of the environment.
 * @caught  bit signo - 1: it has a handler now; until csink_signals_begun() no other code sets one, so that the others
 * need not be looked at when a signal is taken.
 * Context: init, before any signal is taken.
 */
void csink_signals_begin(uint64_t caught);
void csink_signals_begun(void);

/** Set what the program itself set for our signals, which the kernel passes on at exec; and undo that. The calling
 * thread is paused (csink_thread_pause) or stopped, or it is a vfork child. Context: thread. */
void csink_signals_before_exec(void);
void csink_signals_exec_failed(void);

/** In a forked child: locks that other threads of the parent held are free, and csink_process.pid is its own. Context:
 * init. */
void csink_signals_forked(void);

/** With every signal blocked, so that a handler never waits for the lock of the code that it interrupted. Context: any.
 */
void csink_signals_lock(uint64_t *saved);
void csink_signals_unlock(const uint64_t *saved);

/** A signal as if it had been sent to thread @tid, 0: to the process. It is pending when this returns, if the kernel
 * blocks it. Context: any. */
void csink_signal_raise(int32_t tid, int signo, const siginfo_t *info);

/* ---- signal_entry.c ---- */

/** The kernel's handler of each of our signals. Context: signal, with every signal but SIGBUS blocked. */
void csink_signal_entry(int signo, siginfo_t *info, void *context);

/* ---- hidden_masks.c ---- */

/** Hide signals in the calling thread, @blocked being those of them that the program has blocked. Context: thread. */
void csink_masks_hide(struct csink_thread *thread, uint64_t signals, uint64_t blocked);

/** Which hidden signals the program has blocked in a thread where the kernel blocks @kernel. Context: any. */
uint64_t csink_masks_blocked(const struct csink_thread *thread, uint64_t kernel);

/** The calling thread's, if it is known to us; else 0. Context: thread. */
uint64_t csink_masks_own_blocked(void);

/** Store what the program has blocked now, in a thread whose mask in the kernel is @kernel. Context: thread. */
void csink_masks_set_blocked(struct csink_thread *thread, uint64_t blocked, uint64_t kernel);

/** True in a vfork child that has set a mask: the kernel has all of it, our signals included. Context: any. */
bool csink_masks_are_kernels(void);

/** The kernel gets what the program has blocked, and the thread hides nothing any more. Context: thread, at its end. */
void csink_masks_reveal(struct csink_thread *thread);

/* ---- pending_signals.c ---- */

/**
 * Keep a signal that arrived in @thread, where the program has it blocked; or give it to a thread that waits for it or
 * has it unblocked, if it was sent to the whole process. Of a real-time signal the first is kept, and the thread's mask
 * in @context makes the kernel keep those that follow.
 * Context: signal.
 */
void csink_pending_add(struct csink_thread *thread, int signo, const siginfo_t *info, ucontext_t *context);

/** For one that arrived in a forked child before csink_image_begin_child(), or in a vfork child: have it pending in the
 * kernel, as it would be, and blocked there until csink_signals_forked(). Context: signal. */
void csink_pending_defer(struct csink_thread *thread, int signo, const siginfo_t *info, ucontext_t *context);

/**
 * The program has @blocked in this thread now, or has taken signals. Where it has no more of its own waiting in the
 * kernel, the kernel lets that number through again and the thread is sampled on. Context: thread.
 */
void csink_pending_settle(struct csink_thread *thread, uint64_t blocked);

/** The signals that are not to be blocked by the kernel in this thread. Context: any. */
static inline uint64_t csink_masks_open(const struct csink_thread *thread)
{
	return thread->hidden.signals & ~thread->hidden.queued;
}

/** Take one of @set that is kept for this thread or (*tid is 0 then) for all. Context: thread. */
bool csink_pending_take(struct csink_thread *thread, uint64_t set, siginfo_t *info, int32_t *tid);

/** Bits of what is kept for this thread or for all. Context: any. A load where nothing is. */
uint64_t csink_pending_signals(const struct csink_thread *thread);

/** Raise again what is kept and not in @blocked, for the thread or process that it was sent to; where the kernel has
 * more of that number, for the calling thread: the kernel gives it before what was sent to the process and came later.
 * Context: thread. */
void csink_pending_release(struct csink_thread *thread, uint64_t blocked);

/** Nothing is kept: a forked child begins so. Context: init. */
void csink_pending_reset(void);

#endif
