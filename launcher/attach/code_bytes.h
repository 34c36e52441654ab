/*
 * What the bytes of code without unwind tables show at an address, without a walk along the code (code_paths.h): where
 * functions begin, what call lies before a return address, jumps, and the way back from a signal handler. For x86.
 * Nothing of it is certain: bytes that look like an instruction may be the middle of another one.
 */
#ifndef CSINK_CODE_BYTES_H
#define CSINK_CODE_BYTES_H

#include "launcher/attach/objects.h"

/** Does a function seem to begin at an address, or behind bytes that only fill up? */
bool csink_code_begins_function(const struct csink_attach_object *object, uint64_t pc);

/**
 * Addresses before another one where functions seem to begin, as the code before them ends. Returns how many, the
 * likeliest and nearest first.
 */
uint32_t csink_code_find_starts(const struct csink_attach_object *object, uint64_t pc, uint64_t *starts, uint32_t max);

enum csink_code_preceding {
	CSINK_CODE_NO_CALL,
	CSINK_CODE_CALL,   /* through a register or memory */
	CSINK_CODE_DIRECT, /* of *target, an own address of the object */
};

/** What call lies before an address, if one does. */
enum csink_code_preceding csink_code_call_before(const struct csink_attach_object *object, uint64_t ra,
						 uint64_t *target);

/** Does code begin as a program's first function does, with a frame pointer of zero? Libraries have other entries. */
bool csink_code_is_first(const struct csink_attach_object *object, uint64_t vaddr);

/** Does code at the address go on where another function begins: a stub, or a jump? */
bool csink_code_is_jump(const struct csink_attach_object *object, uint64_t vaddr);

/**
 * Is it the way back from a signal handler? Then *context is how far above the stack pointer the kernel's
 * struct sigcontext lies.
 * @is_interrupted  vaddr is where a thread was when it was sampled: any instruction of it, or behind it, which is where
 *                  a thread is that is in the system call; else a handler returns to vaddr, its first instruction
 */
bool csink_code_returns_from_signal(const struct csink_attach_object *object, uint64_t vaddr, bool is_interrupted,
				    uint32_t *context);

#endif
