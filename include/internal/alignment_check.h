/* The processor's check of alignment, which a program may have turned on. */
#ifndef CSINK_ALIGNMENT_CHECK_H
#define CSINK_ALIGNMENT_CHECK_H

#include <ucontext.h>

#include "include/internal/base.h"

/**
 * Turn it off in a signal handler: the kernel leaves it on, and an unaligned load would be SIGBUS. The interrupted code
 * has it again when the handler returns. (Java 17 has it on for some instructions, to find out which processor it is.)
 * Context: signal.
 */
static inline void csink_alignment_check_off(const void *context)
{
#if defined(__x86_64__)
	enum { AC = 1 << 18 };

	if (CSINK_UNLIKELY(((const ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] & AC))
		__builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() & ~(unsigned long long)AC);
	__asm__ volatile("" ::: "memory");
#else
	(void)context; /* programs cannot turn it on */
#endif
}

#endif
