/* What the walk of copied stacks (walk_copied.c) shares with its part for code without tables (walk_code.c). */
#ifndef CSINK_WALK_COPIED_IMPL_H
#define CSINK_WALK_COPIED_IMPL_H

#include "launcher/attach/walk_copied.h"

struct csink_copy_walker {
	const struct csink_walk_copy *copy;
	struct csink_cfi_regs regs;
	uint64_t pc, rules_pc; /* rules_pc: where the frame's rules are looked up */
	bool exact, innermost, is_cut;
	uint32_t word; /* bytes: 8, or 4 of a 32-bit program */
};

enum csink_copy_step {
	CSINK_COPY_CALLER,
	CSINK_COPY_END,
	CSINK_COPY_BAD,
	CSINK_COPY_NO_TABLE,
	CSINK_COPY_NO_RULE,
	CSINK_COPY_OTHER_STACK,
};

/** A word of the copied stack, as wide as the program's are. False: it was not copied. */
static inline bool csink_copy_load(struct csink_copy_walker *w, uint64_t address, uint64_t *value)
{
	return csink_walk_copy_load(w->copy, address, value, &w->is_cut);
}

static inline bool csink_copy_known(const struct csink_copy_walker *w, uint64_t reg)
{
	return csink_cfi_knows(&w->regs, reg);
}

/** An address, as wide as the program's are. */
static inline uint64_t csink_copy_address(const struct csink_copy_walker *w, uint64_t value)
{
	return w->word == 4 ? value & UINT32_MAX : value;
}

/** By the frame pointer. */
enum csink_copy_step csink_copy_step_fp(struct csink_copy_walker *w);

/** By the code, and what lies on the stack. The walker is in an object that has no table of its address. */
enum csink_copy_step csink_copy_step_untabled(struct csink_copy_walker *w, const struct csink_attach_object *object,
					      uint64_t bias);

/**
 * To what a signal interrupted: sets the registers as the kernel wrote them.
 * @context  how far above the stack pointer its struct sigcontext lies
 */
enum csink_copy_step csink_copy_step_signal(struct csink_copy_walker *w, uint32_t context);

/**
 * By the code's own way to its return alone. False: there is none, or no call lies before the address that it gives;
 * the walker stays where it is.
 */
bool csink_copy_step_by_code(struct csink_copy_walker *w, const struct csink_attach_object *object, uint64_t bias);

#endif
