/*
 * The frames that the hot path of our walker (walk_dwarf.c) leaves: the innermost one with all its registers, frames of
 * realigned stacks, signal frames, code without tables, memory that must be checked first, and what rows cannot say.
 */
#include "preload/sample/walk_step.h"

#include "preload/sample/code.h"
#include "preload/sample/modules.h"

/* On a stack of unknown bounds a frame that only its frame pointer describes is not believed to be larger than this. */
#define MAX_FRAME_BYTES (1UL << 20)
/* Stands for a frame pointer that could not be had: no frame is there. */
#define LOST_FP 1

static struct csink_walk_dwarf_counts counts;

static void count(uint64_t *counter)
{
	__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

void csink_walk_dwarf_counts(struct csink_walk_dwarf_counts *out)
{
	out->untabled_steps = __atomic_load_n(&counts.untabled_steps, __ATOMIC_RELAXED);
	out->complex_steps = __atomic_load_n(&counts.complex_steps, __ATOMIC_RELAXED);
	out->libunwind_walks = __atomic_load_n(&counts.libunwind_walks, __ATOMIC_RELAXED);
}

/* ---- one frame --------------------------------------------------------------------------------------------------- */

static bool end_walk(struct csink_walker *w, enum csink_walk_end end)
{
	w->walk->end = end;
	return false;
}

/* The walker is at `caller` now. False: the walk ended. */
static bool add_frame(struct csink_walker *w, uintptr_t caller)
{
	struct csink_walk *walk = w->walk;

	if (!w->exact && !csink_address_plausible(caller))
		return end_walk(w, caller ? CSINK_WALK_BAD_STACK : CSINK_WALK_COMPLETE);
	if (walk->nr_frames == walk->max_frames)
		return end_walk(w, CSINK_WALK_DEPTH);
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

/* Go to a caller whose frame begins at cfa. */
static bool step_to(struct csink_walker *w, uintptr_t cfa, uint64_t fp, uint64_t ra)
{
	/* The innermost function may have no frame where calls do not push; its callers have. */
	if (cfa < w->sp || (cfa == w->sp && !w->innermost))
		return end_walk(w, CSINK_WALK_BAD_STACK);
	w->sp = cfa;
	w->fp = fp;
	w->exact = w->innermost = false;
	return add_frame(w, STRIP_SIGNATURE(ra));
}

/* By a row whose CFA is known; fp_at: where the frame pointer is saved, or 0 if it is kept. */
static bool step_saved(struct csink_walker *w, csink_row_t row, uintptr_t cfa, uintptr_t fp_at)
{
	uint64_t fp = w->fp, ra = 0;

	(void)row; /* has no place for the return address where calls push it */
	if (!csink_load_word(&w->load, cfa + (uintptr_t)RA_BYTES(row), &ra))
		return end_walk(w, CSINK_WALK_BAD_STACK);
	if (fp_at && !csink_load_word(&w->load, fp_at, &fp)) /* no harm unless a caller needs it */
		fp = LOST_FP;
	return step_to(w, cfa, fp, ra);
}

/* Nothing on the way here made a frame of it: it is what the innermost function, some assembly's, has in it. */
static bool is_value_in_fp(const struct csink_walker *w)
{
	return w->innermost ||
	       (w->walk->nr_frames == w->nr_before + 1 && w->fp == context_reg(w->context, CSINK_REG_FP));
}

/* The frame pointer is zero: the ABI's mark of the outermost frame, or just a value, or this is no frame. Outermost
 * functions are some object's; what is made at run time is called. */
static bool end_at_zero(struct csink_walker *w, bool in_object)
{
	if (!in_object && !w->innermost && !w->exact && csink_code_call(w->pc, 0) == CSINK_NO_CALL)
		return end_walk(w, CSINK_WALK_BAD_STACK);
	return end_walk(w, is_value_in_fp(w) ? CSINK_WALK_NO_CFI : CSINK_WALK_COMPLETE);
}

/* By the frame pointer, if that looks like one. */
static bool step_fp(struct csink_walker *w, bool in_object)
{
	uint64_t fp, ra;

	if (!w->fp)
		return end_at_zero(w, in_object);
	if (w->fp % 8 || w->fp < w->sp || (w->fp >= w->load.high && w->fp - w->sp > MAX_FRAME_BYTES) ||
	    !csink_load_word(&w->load, w->fp, &fp) || !csink_load_word(&w->load, w->fp + 8, &ra))
		return end_walk(w, CSINK_WALK_NO_CFI);
	return step_to(w, w->fp + 16, fp, ra);
}

/* What the word at an address says, taken for a return address. */
static enum csink_code_call call_at(struct csink_walker *w, uintptr_t at, uint64_t *ra)
{
	if (!csink_load_word(&w->load, at, ra) || !csink_address_plausible(*ra))
		return CSINK_NO_CALL;
	return csink_code_call(*ra, w->pc);
}

#if defined(__x86_64__)
/* The frame pointer points to one that was saved, and next to that lies a return address with such a call before it. */
static bool is_fp_frame(struct csink_walker *w, enum csink_code_call call, uint64_t *fp, uint64_t *ra)
{
	return w->fp % 8 == 0 && w->fp >= w->sp && csink_load_word(&w->load, w->fp, fp) &&
	       call_at(w, w->fp + 8, ra) == call;
}
#endif

/*
 * The innermost function is some assembly. Most such code has no frame, or one word of it (as _init has), or a plain
 * one with a frame pointer: where a return address lies with a call of this very code before it, that is the frame.
 * Failing that, any call before the word on top of the stack that may have led here (by way of a stub), or before the
 * one next to the frame pointer's. A call of other code is believed last: on top of the stack an old one may lie, where
 * code (a just-in-time compiler's) takes room and does not fill it yet.
 */
static bool step_frameless(struct csink_walker *w)
{
	uint64_t ra, fp;

#if defined(__x86_64__)
	enum csink_code_call top = call_at(w, w->sp, &ra);

	if (top != CSINK_NO_CALL && csink_code_is_edge(w->pc))
		return step_to(w, w->sp + 8, w->fp, ra);
	/* The caller's frame pointer has just been put there, and now ours points to it. */
	if (w->fp == w->sp && csink_load_word(&w->load, w->sp, &fp) && call_at(w, w->sp + 8, &ra) != CSINK_NO_CALL)
		return step_to(w, w->sp + 16, fp, ra);
	/* Or not yet. */
	if (csink_load_word(&w->load, w->sp, &fp) && fp == w->fp && call_at(w, w->sp + 8, &ra) != CSINK_NO_CALL)
		return step_to(w, w->sp + 16, w->fp, ra);
	if (top == CSINK_CALL_NEARBY && csink_load_word(&w->load, w->sp, &ra))
		return step_to(w, w->sp + 8, w->fp, ra);
	if (call_at(w, w->sp + 8, &ra) == CSINK_CALL_NEARBY)
		return step_to(w, w->sp + 16, w->fp, ra);
	if (is_fp_frame(w, CSINK_CALL_NEARBY, &fp, &ra))
		return step_to(w, w->fp + 16, fp, ra);
	if (top != CSINK_CALL && is_fp_frame(w, CSINK_CALL, &fp, &ra))
		return step_to(w, w->fp + 16, fp, ra);
	if (top != CSINK_NO_CALL && csink_load_word(&w->load, w->sp, &ra))
		return step_to(w, w->sp + 8, w->fp, ra);
#elif defined(__aarch64__)
	if (w->fp % 8 == 0 && w->fp >= w->sp && csink_load_word(&w->load, w->fp, &fp) &&
	    call_at(w, w->fp + 8, &ra) == CSINK_CALL_NEARBY)
		return step_to(w, w->fp + 16, fp, ra);
	ra = STRIP_SIGNATURE(context_reg(w->context, CSINK_REG_RA));
	if (csink_address_plausible(ra) && csink_code_call(ra, w->pc) != CSINK_NO_CALL)
		return step_to(w, w->sp, w->fp, ra);
#endif
	return step_fp(w, true);
}

/* Nothing of the caller's was touched, but for what its call and a stub's push put on the stack. */
static bool step_bare_call(struct csink_walker *w, uintptr_t pushed)
{
#if defined(__x86_64__)
	uint64_t ra;

	if (!csink_load_word(&w->load, w->sp + pushed, &ra))
		return end_walk(w, CSINK_WALK_BAD_STACK);
	return step_to(w, w->sp + pushed + 8, w->fp, ra);
#elif defined(__aarch64__)
	return step_to(w, w->sp + pushed, w->fp, context_reg(w->context, CSINK_REG_RA));
#endif
}

/* Somewhere in an object, but not where its code is: nothing returns there. */
static bool is_data(const struct csink_walker *w)
{
	struct csink_module module;

	return !w->innermost && !w->exact && !csink_modules_find(w->pc, &module) &&
	       csink_code_call(w->pc, 0) == CSINK_NO_CALL;
}

/* Code without tables: some assembly in an object that has them, or what a just-in-time compiler made. */
static bool step_untabled(struct csink_walker *w, csink_row_t row)
{
	int pushed = w->innermost ? csink_code_pushed(w->pc) : -1;
#if defined(__x86_64__)
	uint64_t ra;
#endif

	count(&counts.untabled_steps);
	if (csink_row_near(row) && is_data(w))
		return end_walk(w, CSINK_WALK_BAD_STACK);
	if (pushed >= 0)
		return step_bare_call(w, (uintptr_t)pushed);
#if defined(__x86_64__)
	/* A word is there which is never written: what lies in it may be an old address. Some objects call from there.
	 */
	if (csink_row_near(row) && csink_code_has_word(w->pc) && call_at(w, w->sp + 8, &ra) != CSINK_NO_CALL)
		return step_to(w, w->sp + 16, w->fp, ra);
#endif
	return w->innermost && csink_row_near(row) ? step_frameless(w) : step_fp(w, csink_row_near(row));
}

/* Over a signal frame: the walk goes on in what was interrupted, with all registers known. */
static bool step_signal(struct csink_walker *w)
{
	uintptr_t at = signal_context(w->sp);
	uint64_t *frames = w->walk->frames, word;

	if (at % 8 || !csink_load_word(&w->load, at, &word) ||
	    !csink_load_word(&w->load, at + CONTEXT_BYTES - 8, &word))
		return end_walk(w, CSINK_WALK_BAD_STACK);
	if (w->walk->nr_frames && !w->innermost) /* the trampoline itself: nobody called it */
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

/* As step_fp(), on all registers. */
static enum csink_cfi_step step_regs_by_fp(struct csink_walker *w, struct csink_cfi_regs *regs, uintptr_t *pc)
{
	uint64_t fp = regs->value[CSINK_REG_FP], caller_fp, ra;

	if (!(regs->known >> CSINK_REG_FP & 1) || fp < regs->value[CSINK_REG_SP] ||
	    !csink_load_word(&w->load, fp, &caller_fp) || !csink_load_word(&w->load, fp + 8, &ra))
		return CSINK_STEP_NO_CFI;
	regs->value[CSINK_REG_FP] = caller_fp;
	regs->value[CSINK_REG_SP] = fp + 16;
	regs->known = 1ULL << CSINK_REG_FP | 1ULL << CSINK_REG_SP;
	*pc = ra;
	return CSINK_STEP_CALLER;
}

/* Walk again from the innermost frame with all registers, and one frame further than we came. */
__attribute__((noinline)) static bool step_complex(struct csink_walker *w)
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
			exact = false;
			step = step_regs_by_fp(w, &regs, &pc);
		}
		if (step == CSINK_STEP_END)
			return end_walk(w, CSINK_WALK_COMPLETE);
		if (step != CSINK_STEP_CALLER) {
			w->beyond_rows = true;
			return end_walk(w, step == CSINK_STEP_BAD     ? CSINK_WALK_BAD_STACK
					   : step == CSINK_STEP_RULES ? CSINK_WALK_RULES
								      : CSINK_WALK_NO_CFI);
		}
		pc = STRIP_SIGNATURE(pc);
	}
	w->sp = regs.value[CSINK_REG_SP];
	w->fp = regs.known >> CSINK_REG_FP & 1 ? regs.value[CSINK_REG_FP] : LOST_FP;
	w->innermost = false;
	w->exact = exact;
	/* longjmp has the stack of where it goes before it goes there */
	if (w->sp < last_sp || (w->sp == last_sp && !was_innermost && !exact))
		return end_walk(w, CSINK_WALK_BAD_STACK);
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
			return end_walk(w, CSINK_WALK_BAD_STACK);
		cfa += (uint64_t)csink_row_near(row) * 8;
	}
	if (kind == CSINK_ROW_REG_SAVED || kind == CSINK_ROW_DEREF_SAVED)
		fp_at = cfa + (uint64_t)FP_BYTES(row);
	/*
	 * Where a realigned frame saved the frame pointer is said from the frame pointer itself. GCC says so even after
	 * the epilogue's pop has given it back to the caller: then it lies outside of the frame, and is right as it is.
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
		return end_walk(w, CSINK_WALK_BAD_STACK);
	return step_to(w, cfa + (uint64_t)csink_row_cfa_offset(row), w->fp, context_reg(w->context, CSINK_REG_RA));
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
		return end_walk(w, CSINK_WALK_COMPLETE);
	case CSINK_ROW_NO_CFI:
		return step_untabled(w, row);
	case CSINK_ROW_COMPLEX:
		return step_complex(w);
	default:
		cfa = (kind & CSINK_ROW_BASE_FP ? w->fp : w->sp) + (uintptr_t)csink_row_cfa_offset(row);
		return step_saved(w, row, cfa, kind & CSINK_ROW_SAVED ? cfa + (uintptr_t)FP_BYTES(row) : 0);
	}
}

void csink_walker_give_up(struct csink_walker *w, const ucontext_t *uc)
{
	if (!csink_libunwind_ready())
		return;
	count(&counts.libunwind_walks);
	csink_walk_libunwind(w->walk, uc);
}
