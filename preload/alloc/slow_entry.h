/* From a function of the allocator to its slow half, with the registers of its caller. */
#ifndef CSINK_ALLOC_SLOW_ENTRY_H
#define CSINK_ALLOC_SLOW_ENTRY_H

#include <stddef.h>
#include <stdint.h>

/* As they are at the call: what a walk of the caller's stack begins with. */
struct csink_caller {
	uintptr_t pc; /* the return address */
	uintptr_t sp; /* after the return */
#if defined(__x86_64__)
	uintptr_t rbp, rbx, r12, r13, r14, r15;
#elif defined(__aarch64__)
	uintptr_t x19_to_x29[11];
#else
#error "unsupported architecture"
#endif
};

/** csink_alloc_slow(a, b, c, how, caller), as the last thing that a function does: the caller is that function's own.
 */
void *csink_alloc_slow_entry(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t how);

/** The same, for a function that returns an int. */
int csink_alloc_slow_entry_int(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t how) __asm__("csink_alloc_slow_entry");

/* In alloc.c. */
void *csink_alloc_slow(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t how, const struct csink_caller *caller);

#endif
