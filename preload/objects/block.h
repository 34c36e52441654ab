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

/* What the kernel raises for the code itself, and SIGTRAP. */
#define CSINK_OWN_FAULTS                                                                                               \
	(1ULL << (SIGSEGV - 1) | 1ULL << (SIGBUS - 1) | 1ULL << (SIGILL - 1) | 1ULL << (SIGFPE - 1) |                  \
	 1ULL << (SIGTRAP - 1) | 1ULL << (SIGABRT - 1) | 1ULL << (SIGSYS - 1))

/** Does the calling thread run on its alternate stack? Also true where the kernel does not answer. */
static inline bool csink_is_on_alternate(void)
{
	stack_t stack = {.ss_flags = 0};

	return csink_rawcall(SYS_sigaltstack, NULL, &stack) || stack.ss_flags & SS_ONSTACK;
}

static inline void csink_block_all(uint64_t *before)
{
	uint64_t all = ~CSINK_OWN_FAULTS;

	csink_rawcall(SYS_rt_sigprocmask, SIG_BLOCK, &all, before, sizeof(all));
}

/** Returns false, and blocks nothing, on an alternate stack. */
static inline bool csink_block(uint64_t *before)
{
	if (csink_is_on_alternate())
		return false;
	csink_block_all(before);
	return true;
}

static inline void csink_unblock(const uint64_t *before)
{
	csink_rawcall(SYS_rt_sigprocmask, SIG_SETMASK, before, NULL, sizeof(*before));
}

#endif
