/*
 * From a function that a preload object has in libc's place to its slow half, with the registers of its caller: what
 * the objects of `-e alloc` and `-e lock` share. Each of them has one slow half, csink_slow().
 */
#ifndef CSINK_CALLER_H
#define CSINK_CALLER_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

/* As they are at the call: what a walk of the caller's stack begins with. */
struct csink_caller {
	uintptr_t pc; /* the return address */
	uintptr_t sp; /* after the return */
#if defined(__x86_64__)
	uintptr_t rbp, rbx, r12, r13, r14, r15;
	uintptr_t more[2]; /* the fifth and the sixth argument */
#elif defined(__aarch64__)
	uintptr_t x19_to_x29[11];
	uintptr_t more[3]; /* the arguments from the fifth on */
#else
#error "unsupported architecture"
#endif
};

/** csink_slow(a, b, c, how, caller), as the last thing that a function does: the caller is that function's own.
 */
void *csink_slow_entry(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t how);

/** The same, for a function that returns an int. */
int csink_slow_entry_int(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t how) __asm__("csink_slow_entry");

/** The same, with caller->more[0]. */
int csink_slow_entry_more(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t how,
			  uintptr_t more) __asm__("csink_slow_entry");

/* The object's own. */
void *csink_slow(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t how, const struct csink_caller *caller);

/**
 * The object's own, too: the personality routine of csink_slow_entry(), which is called when a thread is cancelled or
 * exits in csink_slow(), or an exception leaves it. As the C++ ABI for exceptions has it.
 * Returns CSINK_CONTINUE_UNWIND.
 */
int csink_unwound(int version, int actions, uint64_t class, void *exception, void *context);
enum { CSINK_UNWIND_CLEANUP = 2, CSINK_CONTINUE_UNWIND = 8 };

/** The context that a walk begins with: the call itself, not what follows it. The rest of *uc is not set. */
static inline void csink_caller_describe(ucontext_t *uc, const struct csink_caller *caller)
{
#if defined(__x86_64__)
	greg_t *regs = uc->uc_mcontext.gregs;

	memset(regs, 0, sizeof(uc->uc_mcontext.gregs));
	regs[REG_RIP] = (greg_t)caller->pc - 1;
	regs[REG_RSP] = (greg_t)caller->sp;
	regs[REG_RBP] = (greg_t)caller->rbp;
	regs[REG_RBX] = (greg_t)caller->rbx;
	regs[REG_R12] = (greg_t)caller->r12;
	regs[REG_R13] = (greg_t)caller->r13;
	regs[REG_R14] = (greg_t)caller->r14;
	regs[REG_R15] = (greg_t)caller->r15;
#else
	memset(uc->uc_mcontext.regs, 0, sizeof(uc->uc_mcontext.regs));
	memcpy(&uc->uc_mcontext.regs[19], caller->x19_to_x29, sizeof(caller->x19_to_x29));
	uc->uc_mcontext.regs[30] = caller->pc;
	uc->uc_mcontext.pc = caller->pc - 4;
	uc->uc_mcontext.sp = caller->sp;
#endif
}

#endif
