/*
 * No handler of the program's runs while the agent stores something for an object: it could enter the agent again,
 * would find itself on the agent's stack, or leave it by a jump. Signals that the kernel raises for what the code
 * itself does, and those that it does not block, stay. A thread on its alternate stack may not leave it for the
 * agent's: SIGTRAP, which samples CPU time, would then begin at its top, over what runs there. Three system
 * calls.
 */
#ifndef CSINK_OBJECT_BLOCK_H
#define CSINK_OBJECT_BLOCK_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "include/internal/rawcall.h"

/* A thread's alternate stack, as the kernel said it last; all zero: not asked yet. */
struct csink_alternate {
	uintptr_t low, bytes;
	uint32_t left; /* so many times it is believed. 0: the program may have changed it */
};

static inline void csink_block_all(uint64_t *before)
{
	static const uint64_t own = 1u << (SIGSEGV - 1) | 1u << (SIGBUS - 1) | 1u << (SIGILL - 1) | 1u << (SIGFPE - 1) |
				    1u << (SIGTRAP - 1) | 1u << (SIGABRT - 1) | 1u << (SIGSYS - 1);
	uint64_t all = ~own;

	csink_rawcall(SYS_rt_sigprocmask, SIG_BLOCK, &all, before, sizeof(all));
}

/** Returns false, and blocks nothing, on an alternate stack. */
static inline bool csink_block(uint64_t *before)
{
	stack_t stack = {.ss_flags = 0};

	if (csink_rawcall(SYS_sigaltstack, NULL, &stack) || stack.ss_flags & SS_ONSTACK)
		return false;
	csink_block_all(before);
	return true;
}

/**
 * The same for an object that has sigaltstack(3), and sets @known->left to 0 there, of the calling thread: two system
 * calls, but each 64th time, for an alternate stack that was set by the system call itself.
 */
static inline bool csink_block_known(uint64_t *before, struct csink_alternate *known)
{
	stack_t stack = {.ss_flags = 0};

	if (!known->left) {
		if (csink_rawcall(SYS_sigaltstack, NULL, &stack))
			return false;
		known->low = (uintptr_t)stack.ss_sp;
		known->bytes = stack.ss_flags & SS_DISABLE ? 0 : stack.ss_size;
		known->left = 64;
	}
	known->left--;
	if ((uintptr_t)__builtin_frame_address(0) - known->low < known->bytes)
		return false;
	csink_block_all(before);
	return true;
}

static inline void csink_unblock(const uint64_t *before)
{
	csink_rawcall(SYS_rt_sigprocmask, SIG_SETMASK, before, NULL, sizeof(*before));
}

#endif
