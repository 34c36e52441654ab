/* The processor's check of alignment, which a program may have turned on. */
#ifndef CSINK_ALIGNMENT_CHECK_H
#define CSINK_ALIGNMENT_CHECK_H

#include "include/internal/base.h"

/**
 * Turn it off in a signal handler: the kernel leaves it on, and an unaligned load would be SIGBUS. The interrupted code
 * has it again when the handler returns. (Java 17 has it on for some instructions, to find out which processor it is.)
 * Context: signal.
 */
static inline void csink_alignment_check_off(void)
{
#if defined(__x86_64__)
	enum { AC = 1 << 18 };
	unsigned long long flags = __builtin_ia32_readeflags_u64();

	if (CSINK_UNLIKELY(flags & AC))
		__builtin_ia32_writeeflags_u64(flags & ~(unsigned long long)AC);
	__asm__ volatile("" ::: "memory");
#endif
}

#endif
