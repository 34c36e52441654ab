/*
 * Inside of our own walker (walk_dwarf.c walks, walk_step.c takes the frames that are not plain, walk_untabled.c those
 * of code without tables). No other file includes this. Context of everything here: signal.
 */
#ifndef CSINK_WALK_STEP_H
#define CSINK_WALK_STEP_H

#include <signal.h>
#include <stddef.h>

#include "include/internal/base.h"
#include "preload/agent/unwind/cfi_row.h"
#include "preload/agent/unwind/unwind.h"
#include "preload/core/safe_load.h"

struct csink_walker {
	struct csink_walk *walk;
	uintptr_t pc, sp, fp;
	bool exact;     /* pc is of an instruction that was about to run, not one to return to */
	bool innermost; /* all registers are known: those at `context` */
	uint64_t mix;   /* for the row cache */
	struct csink_loader load;
	/* The innermost frame, or the one that the last signal frame on the way interrupted. */
	const mcontext_t *context;
	uint32_t nr_before; /* frames that were there then */
	/* Where the last walk may be joined (walk_memo.h): the innermost of its frames that may be, and its CFA. */
	uint32_t join;
	uintptr_t join_sp;
};

/** Begin at a context whose registers are readable. The walk and its frames so far stay. */
void csink_walker_start(struct csink_walker *w, const mcontext_t *context);

/** One frame, whatever it is; where the walker is must have this row. False: the walk ended. */
bool csink_walker_step(struct csink_walker *w, csink_row_t row);

/** A word of the stack, as csink_load_word(), but not inline: it has many callers. */
bool csink_walker_load(struct csink_walker *w, uintptr_t at, uint64_t *value);

/** One frame of code without tables. */
bool csink_walker_step_untabled(struct csink_walker *w, csink_row_t row);

/** One frame of Go whose row is none of the plain ones (go_frames.h). */
bool csink_walker_step_go(struct csink_walker *w, csink_row_t row);

/** Go to a caller that may be on another stack. @exact: pc is of an interrupted instruction. False: the walk ended. */
bool csink_walker_step_across(struct csink_walker *w, uintptr_t sp, uint64_t fp, uintptr_t pc, bool exact);

/** Go to a caller, whose frame begins at @cfa. False: the walk ended. */
bool csink_walker_step_to(struct csink_walker *w, uintptr_t cfa, uint64_t fp, uint64_t ra);

/** The walk ends here. Returns false. */
bool csink_walker_end(struct csink_walker *w, enum csink_walk_end end);

/** Only such addresses can be returned to: not 0, and no more bits than user addresses have. */
static inline bool csink_address_plausible(uintptr_t pc)
{
	return !((pc - 1) >> 48);
}

#if defined(__x86_64__)
#define STRIP_SIGNATURE(address) (address)
/* Where rows say that the return address and the frame pointer are saved, from the CFA. */
#define RA_BYTES(row) (-8)
#define FP_BYTES(row) csink_row_far(row)

static inline uint64_t context_reg(const mcontext_t *context, unsigned int reg)
{
	static const uint8_t index[CSINK_NR_REGS] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
						     REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
						     REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};

	return (uint64_t)context->gregs[index[reg]];
}

static inline uint64_t context_pc(const mcontext_t *context)
{
	return (uint64_t)context->gregs[REG_RIP];
}

/* Where the kernel put the context that a handler's frame returns to. */
static inline uintptr_t signal_context(uintptr_t sp)
{
	return sp + offsetof(ucontext_t, uc_mcontext);
}

#define CONTEXT_BYTES offsetof(mcontext_t, fpregs)
#elif defined(__aarch64__)
/* XPACLRI in the space of hints: it takes the signature out of x30, or does nothing on machines without. */
static inline uintptr_t strip_signature(uintptr_t address)
{
	register uintptr_t x30 __asm__("x30") = address;

	__asm__("hint #7" : "+r"(x30));
	return x30;
}
#define STRIP_SIGNATURE(address) strip_signature(address)
#define RA_BYTES(row) csink_row_far(row)
#define FP_BYTES(row) (csink_row_far(row) + csink_row_near(row) * 8)

static inline uint64_t context_reg(const mcontext_t *context, unsigned int reg)
{
	return reg == CSINK_REG_SP ? context->sp : context->regs[reg];
}

static inline uint64_t context_pc(const mcontext_t *context)
{
	return context->pc;
}

static inline uintptr_t signal_context(uintptr_t sp)
{
	return sp + sizeof(siginfo_t) + offsetof(ucontext_t, uc_mcontext);
}

#define CONTEXT_BYTES offsetof(mcontext_t, pstate)
#endif

#endif
