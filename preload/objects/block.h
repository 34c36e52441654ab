/*
 * No handler of the program's runs while the agent stores something for an object: it could enter the agent again,
 * would find itself on the agent's stack, or leave it by a jump. Signals that the kernel raises for what the code
 * itself does, and those that it does not block, stay. A thread on its alternate stack may not leave it for the
 * agent's: SIGTRAP, which samples CPU time, would then begin at its top, over what runs there. Three system calls.
 */
#ifndef CSINK_OBJECT_BLOCK_H
#define CSINK_OBJECT_BLOCK_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "include/internal/rawcall.h"

/** Returns false, and blocks nothing, on an alternate stack. */
static inline bool csink_block(uint64_t *before)
{
	static const uint64_t own = 1u << (SIGSEGV - 1) | 1u << (SIGBUS - 1) | 1u << (SIGILL - 1) | 1u << (SIGFPE - 1) |
				    1u << (SIGTRAP - 1) | 1u << (SIGABRT - 1) | 1u << (SIGSYS - 1);
	uint64_t all = ~own;
	stack_t stack = {.ss_flags = 0};

	if (csink_rawcall(SYS_sigaltstack, NULL, &stack) || stack.ss_flags & SS_ONSTACK)
		return false;
	csink_rawcall(SYS_rt_sigprocmask, SIG_BLOCK, &all, before, sizeof(all));
	return true;
}

static inline void csink_unblock(const uint64_t *before)
{
	csink_rawcall(SYS_rt_sigprocmask, SIG_SETMASK, before, NULL, sizeof(*before));
}

#endif
