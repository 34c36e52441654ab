/*
 * Walking the stack of another process from what the kernel copied with a sample: registers and the top of the stack.
 * The rules come from the objects' own tables, by the same code that reads them inside a program, or from those of Go
 * (walk_go.h); where no table covers the code, from its instructions (code_paths.h); where those cannot be read (made
 * at run time), frame pointers lead on.
 */
#ifndef CSINK_WALK_COPIED_H
#define CSINK_WALK_COPIED_H

#include <stdint.h>

#include "launcher/attach/objects.h"

/* For perf_event_attr.sample_regs_user: what a walk needs; and the program counter alone. */
extern const uint64_t csink_walk_regs_mask, csink_walk_pc_mask;

/* Where an address is: false if no object has it. bias as csink_attach_object_bias. */
typedef bool (*csink_walk_locate)(void *arg, uint64_t pc, const struct csink_attach_object **object, uint64_t *bias);

/* What frames of code without tables were found by. */
struct csink_walk_trust {
	bool by_code;  /* by the instructions of the code, which say where the return address is */
	bool by_guess; /* by a word that looks like a return address, where instructions say nothing */
};

struct csink_walk_copy {
	const uint64_t *regs; /* in the order of the kernel's, those of csink_walk_regs_mask */
	const char *stack;    /* what lies from the stack pointer on */
	uint64_t stack_bytes;
	csink_walk_locate locate;
	void *arg;
	uint64_t *cfas; /* set, for each frame, to the stack pointer on return to it; NULL: not wanted */
	/* The kernel's own walk by frame pointers, as a sample has it; nr_chain 0: none. */
	const uint64_t *chain;
	uint64_t nr_chain;
	bool is_32;                     /* the program runs in 32-bit mode */
	struct csink_walk_trust *trust; /* set; NULL: not wanted */
};

enum csink_walk_copy_end {
	CSINK_COPY_COMPLETE,
	CSINK_COPY_DEPTH,     /* max_frames */
	CSINK_COPY_CUT,       /* the rest of the stack was not copied */
	CSINK_COPY_NO_CFI,    /* code without tables, and no frame pointer helped */
	CSINK_COPY_BAD_STACK, /* a frame that does not lie above the last */
	CSINK_COPY_RULES,     /* rules that are not followed */
	CSINK_COPY_SWITCHED,  /* the thread came from another stack, which was not copied */
};

/** The interrupted instruction. */
uint64_t csink_walk_copy_pc(const uint64_t *regs);

/** The value that a register had there, by DWARF's number, below CSINK_NR_REGS. */
uint64_t csink_walk_copy_reg(const uint64_t *regs, uint32_t dwarf_reg);

/** The same for a walk, whose registers are as wide as the program's. Of 32-bit code si and di, which it preserves,
 * have the numbers of registers that 64-bit code preserves: 12 and 13. */
uint64_t csink_walk_copy_first(const struct csink_walk_copy *copy, uint32_t dwarf_reg);

/** A word of the copied stack, as wide as the program's. False: it was not copied; *is_cut is set where it lies above,
 * on the same stack. */
bool csink_walk_copy_load(const struct csink_walk_copy *copy, uint64_t address, uint64_t *value, bool *is_cut);

/* Whether a call pushes the return address, and what is an address in a signed one. */
#if defined(__x86_64__)
#define CSINK_CALL_PUSHES 1
#define CSINK_STRIP_SIGNATURE(address) (address)
#elif defined(__aarch64__)
#define CSINK_CALL_PUSHES 0
#define CSINK_STRIP_SIGNATURE(address) ((address)&0xffffffffffffULL) /* the signature is in the bits above */
#endif

/**
 * Give the callers, innermost first, as recordings have them (CSINK_FRAME_EXACT marked).
 * Returns how many; *end says why it ended. Context: thread; keeps a cache of rules: one thread only.
 */
uint32_t csink_walk_copy(const struct csink_walk_copy *copy, uint64_t *frames, uint32_t max_frames,
			 enum csink_walk_copy_end *end);

#endif
