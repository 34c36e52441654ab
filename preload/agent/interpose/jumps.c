/*
 * Jumps out of handlers that run on a small alternate stack. There our signals are blocked (adapt_mask in
 * hidden_signals.c), and a jump that does not restore the mask would leave them so, until the program's next call about
 * masks. They are let through on the way: from a stack of ours, for the one that is left has no room for a signal, and
 * only if the jump does leave it.
 *
 * The target of a jump is in the jmp_buf, mangled by glibc (PTR_MANGLE); a jmp_buf of our own shows the key first.
 */
#include <setjmp.h>
#include <signal.h>

#include "include/internal/base.h"
#include "include/internal/rawcall.h"
#include "preload/agent/lifecycle/hidden_signals.h"
#include "preload/agent/lifecycle/real.h"
#include "preload/agent/sampler/call_on_stack.h"
#include "preload/agent/sampler/thread.h"
#include "preload/core/calls_off.h"

typedef void (*jump_fn)(struct __jmp_buf_tag *env, int value);

#if defined(__x86_64__)
enum { STACK_WORD = 6 };

static uintptr_t demangle(uint64_t word)
{
	uint64_t guard;

	__asm__("rorq $17, %0\n"
		"movq %%fs:0x30, %1\n"
		: "+r"(word), "=&r"(guard));
	return word ^ guard;
}

/* Does this libc write them as we read them? */
static __attribute__((noinline)) bool can_read(void)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0), there;
	jmp_buf env;

	if (_setjmp(env))
		return false;
	there = demangle((uint64_t)env[0].__jmpbuf[STACK_WORD]);
	return there <= here && here - there < 4096;
}

static bool leaves(const struct __jmp_buf_tag *env, const stack_t *stack)
{
	uintptr_t to = demangle((uint64_t)env->__jmpbuf[STACK_WORD]);

	return can_read() && (to < (uintptr_t)stack->ss_sp || to > (uintptr_t)stack->ss_sp + stack->ss_size);
}
#else
static bool leaves(const struct __jmp_buf_tag *env, const stack_t *stack)
{
	(void)env;
	(void)stack;
	return false;
}
#endif

/* Runs on a stack of the agent's, so that the alternate one is free for the next signal. */
static void unblock_and_jump(int value, siginfo_t *env, void *real)
{
	csink_raw_mask(SIG_UNBLOCK, csink_self->hidden.signals, NULL);
	((jump_fn)real)((struct __jmp_buf_tag *)env, value);
}

static bool must_unblock(const struct csink_thread *thread, const struct __jmp_buf_tag *env)
{
	uint64_t kernel = 0;
	stack_t stack;

	if (!csink_signals_small_stacks() || !thread || !thread->hidden.signals || !env ||
	    csink_calls_are_off(CSINK_CALLS_LIFE) || csink_in_vfork_child())
		return false;
	csink_raw_mask(SIG_BLOCK, 0, &kernel);
	return kernel & thread->hidden.signals && !csink_rawcall(SYS_sigaltstack, NULL, &stack) &&
	       stack.ss_flags & SS_ONSTACK && leaves(env, &stack);
}

static void jump(jump_fn real, struct __jmp_buf_tag *env, int value)
{
	struct csink_thread *thread = csink_self;

	/* The sample handler runs on the upper part of the same stack. */
	if (CSINK_UNLIKELY(must_unblock(thread, env)))
		csink_call_on_stack(unblock_and_jump, value, (siginfo_t *)env, (void *)real,
				    thread->handler_stack + CSINK_JUMP_STACK);
	real(env, value);
}

/* In a frame of the caller's caller they would not be what they are: nothing here may return. */
#define JUMP(name)                                                                                                     \
	CSINK_EXPORT __attribute__((noreturn)) void name(struct __jmp_buf_tag env[1], int value)                       \
	{                                                                                                              \
		jump((jump_fn)REAL(name), env, value);                                                                 \
		__builtin_unreachable();                                                                               \
	}

JUMP(longjmp)
JUMP(_longjmp)
JUMP(siglongjmp)

/* As programs that were compiled with _FORTIFY_SOURCE call it: it looks which way the stack goes, so on our own stack
 * the plain one must do. */
CSINK_EXPORT __attribute__((noreturn)) void __longjmp_chk(struct __jmp_buf_tag env[1], int value)
{
	struct csink_thread *thread = csink_self;

	jump(must_unblock(thread, env) ? (jump_fn)REAL(longjmp) : (jump_fn)REAL(__longjmp_chk), env, value);
	__builtin_unreachable();
}
