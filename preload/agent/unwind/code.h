/*
 * What code says itself, by its bytes, where no table covers it. All of it is a guess that was found to be right.
 * Context of everything here: signal; addresses may be anything.
 */
#ifndef CSINK_CODE_H
#define CSINK_CODE_H

#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

/** True if pc is in the kernel's way back from a signal handler. */
bool csink_code_is_sigreturn(uintptr_t pc);

/** True if pc is where glibc makes a makecontext function return to: no call led there. */
bool csink_code_is_start_context(uintptr_t pc);

/* Code around an address, read once; what is beyond is read by each question. */
struct csink_code_near {
	uintptr_t start; /* UINTPTR_MAX: it could not be read */
	uint8_t bytes[48];
};
void csink_code_read_near(uintptr_t pc, struct csink_code_near *near);

/**
 * How many bytes were pushed since the call that led to pc: by a stub for calls into other objects; none where nothing
 * is, and so a call through a bad pointer led. -1: it is neither.
 */
int csink_code_pushed(const struct csink_code_near *near, uintptr_t pc);

#if defined(__x86_64__)
/** True if shortly before pc, in code without tables, a word of stack was taken and not given back, as the beginning
 * and end of every object (_init, _fini) do. */
bool csink_code_has_word(uintptr_t pc);

/** True if pc is at a return, or at what functions begin with: the address to return to is on top of the stack. */
bool csink_code_is_edge(const struct csink_code_near *near, uintptr_t pc);

/** True if mov $r12, %r12 and a call come before a return address: V8's code that is not optimized has called the
 * builtin that makes its frame. */
bool csink_code_called_first(uintptr_t ra, uint64_t r12);

/**
 * Where the return address is of a function that has aligned its stack (aligned_code.h); 0: pc is in no such function.
 * @saved_fp  where the frame pointer was saved; 0: it was not.
 */
uintptr_t csink_code_aligned(uintptr_t pc, const mcontext_t *context, uintptr_t *saved_fp);

/** True if the instruction before pc is push %rbp. */
bool csink_code_has_pushed(const struct csink_code_near *near, uintptr_t pc);
#endif

/* How the code before a return address could have led to pc. */
enum csink_code_call {
	CSINK_NO_CALL,
	CSINK_CALL_ELSEWHERE, /* a call of other code, which may have gone on to pc by a jump, or be over long since */
	CSINK_CALL,           /* a call of something: through a register, or of a stub that may lead anywhere */
	CSINK_CALL_NEARBY,    /* a call of what begins shortly before pc */
};
enum csink_code_call csink_code_call(uintptr_t ra, uintptr_t pc);

#endif
