/*
 * The frames that the hot path of our walker (walk_dwarf.c) leaves: the innermost one with all its registers, frames of
 * realigned stacks, signal frames, code without tables, memory that must be checked first, and what rows cannot say.
 */
#include "preload/agent/unwind/walk_step.h"

#include "preload/agent/unwind/made_code.h"

/* The value of a frame pointer that could not be read: no frame is there. */
#define LOST_FP 1

static struct csink_walk_dwarf_counts counts;

static void count(uint64_t *counter)
{
	__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

CSINK_OPTIONAL(csink_walk_dwarf_counts)
void csink_walk_dwarf_counts(struct csink_walk_dwarf_counts *out)
{
	out->untabled_steps = __atomic_load_n(&counts.untabled_steps, __ATOMIC_RELAXED);
	out->complex_steps = __atomic_load_n(&counts.complex_steps, __ATOMIC_RELAXED);
}

/* ---- one frame --------------------------------------------------------------------------------------------------- */

bool csink_walker_load(struct csink_walker *w, uintptr_t at, uint64_t *value)
{
	return csink_load_word(&w->load, at, value);
}

bool csink_walker_end(struct csink_walker *w, enum csink_walk_end end)
{
	w->walk->end = end;
	return false;
}

/* The walker is at `caller` now. False: the walk ended. */
static bool add_frame(struct csink_walker *w, uintptr_t caller)
{
	struct csink_walk *walk = w->walk;

	if (!w->exact && !csink_address_plausible(caller))
		return csink_walker_end(w, caller ? CSINK_WALK_BAD_STACK : CSINK_WALK_COMPLETE);
	if (walk->nr_frames == walk->max_frames)
		return csink_walker_end(w, CSINK_WALK_DEPTH);
	walk->frames[walk->nr_frames++] = caller | (w->exact ? CSINK_FRAME_EXACT : 0);
	w->pc = caller;
	return true;
}

void csink_walker_start(struct csink_walker *w, const mcontext_t *context)
{
	w->context = context;
	w->nr_before = w->walk->nr_frames;
	w->pc = context_pc(context);
	w->sp = context_reg(context, CSINK_REG_SP);
	w->fp = context_reg(context, CSINK_REG_FP);
	w->exact = w->innermost = true;
	csink_loader_init(&w->load, w->walk->stack,
			  w->sp - CSINK_MIN((uintptr_t)CSINK_RED_ZONE_BYTES, w->sp - w->walk->stack->low));
}

bool csink_walker_step_to(struct csink_walker *w, uintptr_t cfa, uint64_t fp, uint64_t ra)
{
	/* The innermost function may have no frame where calls do not push; its callers have. */
	if (cfa < w->sp || (cfa == w->sp && !w->innermost))
		return csink_walker_end(w, CSINK_WALK_BAD_STACK);
	w->sp = cfa;
	w->fp = fp;
	w->exact = w->innermost = false;
	return add_frame(w, STRIP_SIGNATURE(ra));
}

bool csink_walker_step_across(struct csink_walker *w, uintptr_t sp, uint64_t fp, uintptr_t pc, bool exact)
{
	if (sp < w->load.low || sp > w->load.high)
		csink_loader_init(&w->load, w->walk->stack, sp);
	w->sp = sp;
	w->fp = fp;
	w->exact = exact;
	w->innermost = false;
	return add_frame(w, pc);
}

/* By a row whose CFA is known; fp_at: where the frame pointer is saved, or 0 if it is kept. */
static bool step_saved(struct csink_walker *w, csink_row_t row, uintptr_t cfa, uintptr_t fp_at)
{
	uint64_t fp = w->fp, ra = 0;

	(void)row; /* has no place for the return address where calls push it */
	if (!csink_load_word(&w->load, cfa + (uintptr_t)RA_BYTES(row), &ra))
		return csink_walker_end(w, CSINK_WALK_BAD_STACK);
	if (fp_at && !csink_load_word(&w->load, fp_at, &fp)) /* no harm unless a caller needs it */
		fp = LOST_FP;
	return csink_walker_step_to(w, cfa, fp, ra);
}

/* Over a signal frame: the walk goes on in what was interrupted, with all registers known. */
static bool step_signal(struct csink_walker *w)
{
	uintptr_t at = signal_context(w->sp);
	uint64_t *frames = w->walk->frames, word;

	if (at % 8 || !csink_walker_load(w, at, &word) || !csink_walker_load(w, at + CONTEXT_BYTES - 8, &word))
		return csink_walker_end(w, CSINK_WALK_BAD_STACK);
	if (w->walk->nr_frames && !w->innermost) /* the trampoline itself: it has no caller */
		frames[w->walk->nr_frames - 1] |= CSINK_FRAME_EXACT;
	csink_walker_start(w, (const mcontext_t *)at);
	if (!add_frame(w, w->pc))
		return false;
	w->nr_before = w->walk->nr_frames;
	return true;
}

static void context_regs(const mcontext_t *context, struct csink_cfi_regs *regs)
{
	for (unsigned int i = 0; i < CSINK_NR_REGS; i++)
		regs->value[i] = context_reg(context, i);
	regs->known = (1ULL << CSINK_NR_REGS) - 1;
}

/* As step_fp(), on all registers. @exact: all of them are those of the context. */
static enum csink_cfi_step step_regs_by_fp(struct csink_walker *w, struct csink_cfi_regs *regs, uintptr_t *pc,
					   bool exact)
{
	uint64_t fp = regs->value[CSINK_REG_FP], caller_fp, ra;
	struct csink_made_frame frame = {*pc, regs->value[CSINK_REG_SP], fp, exact ? w->context : NULL, &w->load};

	if (csink_made_step(&frame) == CSINK_MADE_CALLER) {
		regs->value[CSINK_REG_FP] = frame.fp;
		regs->value[CSINK_REG_SP] = frame.sp;
		regs->known = 1ULL << CSINK_REG_FP | 1ULL << CSINK_REG_SP;
		*pc = frame.pc;
		return CSINK_STEP_CALLER;
	}
	if (!(regs->known >> CSINK_REG_FP & 1) || fp < regs->value[CSINK_REG_SP] ||
	    !csink_walker_load(w, fp, &caller_fp) || !csink_load_word(&w->load, fp + 8, &ra))
		return CSINK_STEP_NO_CFI;
	regs->value[CSINK_REG_FP] = caller_fp;
	regs->value[CSINK_REG_SP] = fp + 16;
	regs->known = 1ULL << CSINK_REG_FP | 1ULL << CSINK_REG_SP;
	*pc = ra;
	return CSINK_STEP_CALLER;
}

/* Walk again from the innermost frame with all registers, and one frame further than we came. */
__attribute__((noinline, cold)) static bool step_complex(struct csink_walker *w)
{
	uint32_t steps = w->walk->nr_frames - w->nr_before + 1;
	uintptr_t pc = context_pc(w->context), last_sp = w->sp;
	struct csink_cfi_regs regs;
	bool exact = true, was_innermost = w->innermost;

	count(&counts.complex_steps);
	context_regs(w->context, &regs);
	for (uint32_t i = 0; i < steps; i++) {
		enum csink_cfi_step step = csink_cfi_step(&regs, &pc, &exact, &w->load);

		if (step == CSINK_STEP_NO_CFI && i + 1 < steps) {
			step = step_regs_by_fp(w, &regs, &pc, exact);
			exact = false;
		}
		if (step == CSINK_STEP_END)
			return csink_walker_end(w, CSINK_WALK_COMPLETE);
		if (step != CSINK_STEP_CALLER)
			return csink_walker_end(w, step == CSINK_STEP_BAD     ? CSINK_WALK_BAD_STACK
						   : step == CSINK_STEP_RULES ? CSINK_WALK_RULES
									      : CSINK_WALK_NO_CFI);
		pc = STRIP_SIGNATURE(pc);
	}
	w->sp = regs.value[CSINK_REG_SP];
	w->fp = regs.known >> CSINK_REG_FP & 1 ? regs.value[CSINK_REG_FP] : LOST_FP;
	w->innermost = false;
	w->exact = exact;
	/* longjmp has the stack of where it goes before it goes there */
	if (w->sp < last_sp || (w->sp == last_sp && !was_innermost && !exact))
		return csink_walker_end(w, CSINK_WALK_BAD_STACK);
	return add_frame(w, pc);
}

/* The value of a register in the frame where the walker is. False: it was not kept. */
static bool frame_reg(const struct csink_walker *w, unsigned int reg, uint64_t *value)
{
	if (reg == CSINK_REG_SP || reg == CSINK_REG_FP)
		*value = reg == CSINK_REG_SP ? w->sp : w->fp;
	else if (w->innermost)
		*value = context_reg(w->context, reg);
	else
		return false;
	return true;
}

/* CFA = register + offset, or what is saved there. */
static bool step_reg(struct csink_walker *w, csink_row_t row)
{
	enum csink_row_kind kind = csink_row_kind(row);
	uint64_t cfa, fp_at = 0;

	if (!frame_reg(w, csink_row_reg(row), &cfa))
		return step_complex(w);
	cfa += (uint64_t)csink_row_cfa_offset(row);
	if (kind >= CSINK_ROW_DEREF) {
		if (!csink_load_word(&w->load, cfa, &cfa))
			return csink_walker_end(w, CSINK_WALK_BAD_STACK);
		cfa += (uint64_t)csink_row_near(row) * 8;
	}
	if (kind == CSINK_ROW_REG_SAVED || kind == CSINK_ROW_DEREF_SAVED)
		fp_at = cfa + (uint64_t)FP_BYTES(row);
	/*
	 * The rule for the frame pointer that a realigned frame saved is relative to the frame pointer itself. GCC says
	 * so even after the epilogue's pop has given it back to the caller: then it lies outside of the frame, and is
	 * right as it is.
	 */
	if ((kind == CSINK_ROW_REG_FPX || kind == CSINK_ROW_DEREF_FPX) && w->fp >= w->sp && w->fp < cfa)
		fp_at = w->fp + (uint64_t)csink_row_far(row);
	return step_saved(w, row, cfa, fp_at);
}

/* The return address is in its register still, where calls do not push it. */
static bool step_leaf(struct csink_walker *w, csink_row_t row)
{
	uint64_t cfa;

	if (!w->innermost || !frame_reg(w, csink_row_reg(row), &cfa))
		return csink_walker_end(w, CSINK_WALK_BAD_STACK);
	return csink_walker_step_to(w, cfa + (uint64_t)csink_row_cfa_offset(row), w->fp,
				    context_reg(w->context, CSINK_REG_RA));
}

bool csink_walker_step(struct csink_walker *w, csink_row_t row)
{
	enum csink_row_kind kind = csink_row_kind(row);
	uintptr_t cfa;

	switch (kind) {
	case CSINK_ROW_REG:
	case CSINK_ROW_REG_SAVED:
	case CSINK_ROW_REG_FPX:
	case CSINK_ROW_DEREF:
	case CSINK_ROW_DEREF_SAVED:
	case CSINK_ROW_DEREF_FPX:
		return step_reg(w, row);
	case CSINK_ROW_LEAF:
		return step_leaf(w, row);
	case CSINK_ROW_SIGNAL:
		return step_signal(w);
	case CSINK_ROW_END:
		return csink_walker_end(w, CSINK_WALK_COMPLETE);
	case CSINK_ROW_NO_CFI:
		count(&counts.untabled_steps);
		return csink_walker_step_untabled(w, row);
	case CSINK_ROW_COMPLEX:
		return step_complex(w);
	case CSINK_ROW_GO:
		return csink_walker_step_go(w, row);
	default:
		cfa = (kind & CSINK_ROW_BASE_FP ? w->fp : w->sp) + (uintptr_t)csink_row_cfa_offset(row);
		return step_saved(w, row, cfa, kind & CSINK_ROW_SAVED ? cfa + (uintptr_t)FP_BYTES(row) : 0);
	}
}
