/*
 * Our own walker: rows from .eh_frame, cached by address (cfi_row.h), a few instructions a frame.
 *
 * walk_plain() is the hot path: it follows rows whose CFA is sp or fp plus an offset as long as they lie within memory
 * known to be the stack, and keeps three registers. Whatever else comes (a signal frame; code without tables; an
 * innermost frame whose CFA is in another register; memory to be checked first) is done by step_row(), one frame at a
 * time, and then the hot path goes on. What rows cannot say needs registers that were not kept: step_complex() walks
 * again from the innermost frame by all rules.
 */
#include <signal.h>
#include <stddef.h>

#include "include/internal/base.h"
#include "preload/sample/cfi_row.h"
#include "preload/sample/modules.h"
#include "preload/sample/safe_load.h"
#include "preload/sample/unwind.h"

/* On a stack of unknown bounds a frame that only its frame pointer describes is not believed to be larger than this. */
#define MAX_FRAME_BYTES (1UL << 20)
/* Stands for a frame pointer that could not be had: no frame is there. */
#define LOST_FP 1
/* No user address has more bits. */
#define ADDRESS_BITS 48

struct walker {
	struct csink_walk *walk;
	uintptr_t pc, sp, fp;
	bool exact;     /* pc is of an instruction that was about to run, not one to return to */
	bool innermost; /* all registers are known: those at `context` */
	uint64_t mix;   /* of the module snapshot's generation, for the row cache */
	struct csink_loader load;
	/* The innermost frame, or the one that the last signal frame on the way interrupted. */
	const mcontext_t *context;
	uint32_t nr_before; /* frames that were there then */
	bool beyond_rows;   /* a frame's rules could not be followed at all */
};

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

/* ---- machine ------------------------------------------------------------------------------------------------------
 */

#if defined(__x86_64__)
#define STRIP_SIGNATURE(address) (address)
/* Where rows say that the return address and the frame pointer are saved, from the CFA. */
#define RA_BYTES(row) (-8)
#define FP_BYTES(row) csink_row_far(row)

static uint64_t context_reg(const mcontext_t *context, unsigned int reg)
{
	static const uint8_t index[CSINK_NR_REGS] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
						     REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
						     REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};

	return (uint64_t)context->gregs[index[reg]];
}

static uint64_t context_pc(const mcontext_t *context)
{
	return (uint64_t)context->gregs[REG_RIP];
}

/* Where the kernel put the context that a handler's frame returns to. */
static uintptr_t signal_context(uintptr_t sp)
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

static uint64_t context_reg(const mcontext_t *context, unsigned int reg)
{
	return reg == CSINK_REG_SP ? context->sp : context->regs[reg];
}

static uint64_t context_pc(const mcontext_t *context)
{
	return context->pc;
}

static uintptr_t signal_context(uintptr_t sp)
{
	return sp + sizeof(siginfo_t) + offsetof(ucontext_t, uc_mcontext);
}

#define CONTEXT_BYTES offsetof(mcontext_t, pstate)
#endif

/* ---- one frame ----------------------------------------------------------------------------------------------------
 */

static bool end_walk(struct walker *w, enum csink_walk_end end)
{
	w->walk->end = end;
	return false;
}

/* Only such addresses can be returned to. */
static bool address_plausible(uintptr_t pc)
{
	return !((pc - 1) >> ADDRESS_BITS);
}

/* The walker is at `caller` now. False: the walk ended. */
static bool add_frame(struct walker *w, uintptr_t caller)
{
	struct csink_walk *walk = w->walk;

	if (!w->exact && !address_plausible(caller))
		return end_walk(w, caller ? CSINK_WALK_BAD_STACK : CSINK_WALK_COMPLETE);
	if (walk->nr_frames == walk->max_frames)
		return end_walk(w, CSINK_WALK_DEPTH);
	walk->frames[walk->nr_frames++] = caller | (w->exact ? CSINK_FRAME_EXACT : 0);
	w->pc = caller;
	return true;
}

static void start_at(struct walker *w, const mcontext_t *context)
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
static bool step_to(struct walker *w, uintptr_t cfa, uint64_t fp, uint64_t ra)
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
static bool step_saved(struct walker *w, csink_row_t row, uintptr_t cfa, uintptr_t fp_at)
{
	uint64_t fp = w->fp, ra = 0;

	(void)row; /* has no place for the return address where calls push it */
	if (!csink_load_word(&w->load, cfa + (uintptr_t)RA_BYTES(row), &ra))
		return end_walk(w, CSINK_WALK_BAD_STACK);
	if (fp_at && !csink_load_word(&w->load, fp_at, &fp)) /* no harm unless a caller needs it */
		fp = LOST_FP;
	return step_to(w, cfa, fp, ra);
}

/* By the frame pointer, if that looks like one. */
static bool step_fp(struct walker *w)
{
	uint64_t fp, ra;

	if (!w->fp) /* the ABI's mark of the outermost frame; in the innermost it may be just a value */
		return end_walk(w, w->innermost ? CSINK_WALK_NO_CFI : CSINK_WALK_COMPLETE);
	if (w->fp % 8 || w->fp < w->sp || (w->fp >= w->load.high && w->fp - w->sp > MAX_FRAME_BYTES) ||
	    !csink_load_word(&w->load, w->fp, &fp) || !csink_load_word(&w->load, w->fp + 8, &ra))
		return end_walk(w, CSINK_WALK_NO_CFI);
	return step_to(w, w->fp + 16, fp, ra);
}

/* What the word at an address says, taken for a return address. */
static enum csink_code_call call_at(struct walker *w, uintptr_t at, uint64_t *ra)
{
	if (!csink_load_word(&w->load, at, ra) || !address_plausible(*ra))
		return CSINK_NO_CALL;
	return csink_code_call(*ra, w->pc);
}

/*
 * The innermost function is some assembly. Most such code has no frame, or one word of it (as _init has), or a plain
 * one with a frame pointer: where a return address lies with a call of this very code before it, that is the frame.
 * Failing that, any call before the word on top of the stack (it may have led here by way of a stub).
 */
static bool step_frameless(struct walker *w)
{
	uint64_t ra, fp;

#if defined(__x86_64__)
	if (call_at(w, w->sp, &ra) == CSINK_CALL_NEARBY)
		return step_to(w, w->sp + 8, w->fp, ra);
	if (call_at(w, w->sp + 8, &ra) == CSINK_CALL_NEARBY)
		return step_to(w, w->sp + 16, w->fp, ra);
	if (w->fp % 8 == 0 && w->fp >= w->sp && csink_load_word(&w->load, w->fp, &fp) &&
	    call_at(w, w->fp + 8, &ra) == CSINK_CALL_NEARBY)
		return step_to(w, w->fp + 16, fp, ra);
	if (call_at(w, w->sp, &ra) == CSINK_CALL)
		return step_to(w, w->sp + 8, w->fp, ra);
#elif defined(__aarch64__)
	if (w->fp % 8 == 0 && w->fp >= w->sp && csink_load_word(&w->load, w->fp, &fp) &&
	    call_at(w, w->fp + 8, &ra) == CSINK_CALL_NEARBY)
		return step_to(w, w->fp + 16, fp, ra);
	ra = STRIP_SIGNATURE(context_reg(w->context, CSINK_REG_RA));
	if (address_plausible(ra) && csink_code_call(ra, w->pc) != CSINK_NO_CALL)
		return step_to(w, w->sp, w->fp, ra);
#endif
	return step_fp(w);
}

/* Code without tables: some assembly in an object that has them, or what a just-in-time compiler made. */
static bool step_untabled(struct walker *w, csink_row_t row)
{
	count(&counts.untabled_steps);
	return w->innermost && csink_row_near(row) ? step_frameless(w) : step_fp(w);
}

/* Over a signal frame: the walk goes on in what was interrupted, with all registers known. */
static bool step_signal(struct walker *w)
{
	uintptr_t at = signal_context(w->sp);
	uint64_t *frames = w->walk->frames, word;

	if (at % 8 || !csink_load_word(&w->load, at, &word) ||
	    !csink_load_word(&w->load, at + CONTEXT_BYTES - 8, &word))
		return end_walk(w, CSINK_WALK_BAD_STACK);
	if (w->walk->nr_frames && !w->innermost) /* the trampoline itself: nobody called it */
		frames[w->walk->nr_frames - 1] |= CSINK_FRAME_EXACT;
	start_at(w, (const mcontext_t *)at);
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
static enum csink_cfi_step step_regs_by_fp(struct walker *w, struct csink_cfi_regs *regs, uintptr_t *pc)
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
__attribute__((noinline)) static bool step_complex(struct walker *w)
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
			return end_walk(w, step == CSINK_STEP_BAD ? CSINK_WALK_BAD_STACK : CSINK_WALK_NO_CFI);
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
static bool frame_reg(const struct walker *w, unsigned int reg, uint64_t *value)
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
static bool step_reg(struct walker *w, csink_row_t row)
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
static bool step_leaf(struct walker *w, csink_row_t row)
{
	uint64_t cfa;

	if (!w->innermost || !frame_reg(w, csink_row_reg(row), &cfa))
		return end_walk(w, CSINK_WALK_BAD_STACK);
	return step_to(w, cfa + (uint64_t)csink_row_cfa_offset(row), w->fp, context_reg(w->context, CSINK_REG_RA));
}

/* One frame, whatever it is; where the walker is must have this row. False: the walk ended. */
__attribute__((noinline)) static bool step_row(struct walker *w, csink_row_t row)
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

/* ---- the walk -----------------------------------------------------------------------------------------------------
 */

/* How many frames ahead rows are fetched; the last so many of the buffer are left to step_row(). */
enum { AHEAD = 8 };

static inline void prefetch_row(const char *callers, uint64_t frame)
{
	__builtin_prefetch(callers + csink_row_slot(frame, CSINK_ROW_CALLER_SHIFT));
}

/*
 * The hot path: follow plain rows while the cache has them and they stay within checked memory. Leaves the walker at
 * the first frame that needs more. True: *found is its row.
 *
 * The buffer for frames still has those of the last walk, which most likely were about the same: their rows are fetched
 * ahead of their use, since each row must be there before the next frame's address is known.
 */
static bool walk_plain(struct walker *w, csink_row_t *found)
{
	uint64_t *first = w->walk->frames + w->walk->nr_frames, *frames = first;
	uint64_t *end = w->walk->frames + CSINK_MAX(w->walk->max_frames, (uint32_t)AHEAD) - AHEAD;
	uintptr_t pc = w->pc, sp = w->sp, fp = w->fp, low = w->load.low, high = w->load.high;
	const char *callers = csink_rows.callers;
	const char *slot = w->exact ? csink_rows.leaves + csink_row_slot(pc, CSINK_ROW_LEAF_SHIFT)
				    : callers + csink_row_slot(pc, CSINK_ROW_CALLER_SHIFT);
	uint64_t mix = w->mix;
	bool hit;

	for (int i = 0; i < AHEAD && first < end; i++)
		prefetch_row(callers, first[i]);
	for (;;) {
		uintptr_t cfa, fp_at;
		csink_row_t row;
		uint64_t saved;

		hit = csink_row_get(slot, pc, mix, &row);
		if (CSINK_UNLIKELY(!hit)) {
			hit = csink_row_get((const char *)((uintptr_t)slot ^ CSINK_ROW_NEIGHBOUR), pc, mix, &row);
			if (!hit)
				break;
		}
		*found = row;
		if (CSINK_UNLIKELY(csink_row_kind(row) >= CSINK_ROW_NR_PLAIN))
			break;
		cfa = (row & CSINK_ROW_BASE_FP ? fp : sp) + (uintptr_t)csink_row_cfa_offset(row);
		fp_at = cfa + (uintptr_t)FP_BYTES(row);
		if (CSINK_UNLIKELY(cfa < sp + 8) || CSINK_UNLIKELY(cfa > high) || CSINK_UNLIKELY(fp_at < low) ||
		    CSINK_UNLIKELY(cfa + (uintptr_t)RA_BYTES(row) < low) || CSINK_UNLIKELY(frames >= end))
			break;
		prefetch_row(callers, frames[AHEAD]);
		pc = STRIP_SIGNATURE(csink_load_known(cfa + (uintptr_t)RA_BYTES(row)));
		saved = csink_load_known(fp_at);
		fp = row & CSINK_ROW_SAVED ? saved : fp;
		sp = cfa;
		*frames++ = pc;
		slot = callers + csink_row_slot(pc, CSINK_ROW_CALLER_SHIFT);
	}
	w->pc = pc;
	w->sp = sp;
	w->fp = fp;
	if (frames != first)
		w->exact = w->innermost = false;
	w->walk->nr_frames = (uint32_t)(frames - w->walk->frames);
	return hit;
}

/* The hot path took a return address that is none (an empty entry of the cache fits address 0): take it back. */
static bool pc_is_bad(struct walker *w)
{
	struct csink_walk *walk = w->walk;

	if (w->exact || address_plausible(w->pc))
		return false;
	walk->nr_frames--;
	walk->end = w->pc ? CSINK_WALK_BAD_STACK : CSINK_WALK_COMPLETE;
	return true;
}

void csink_walk_dwarf(struct csink_walk *walk, const ucontext_t *uc)
{
	struct walker w;
	csink_row_t row = 0;

	walk->nr_frames = 0;
	w.walk = walk;
	w.mix = csink_row_mix(csink_modules_generation());
	w.beyond_rows = false;
	start_at(&w, &uc->uc_mcontext);
	do {
		bool found = w.sp >= w.load.low && w.sp <= w.load.high && walk_plain(&w, &row);

		if (found && row == CSINK_ROW_END) {
			walk->end = CSINK_WALK_COMPLETE;
			return;
		}
		if (pc_is_bad(&w))
			return;
		if (!found || !row)
			row = csink_row_find(w.pc, w.exact, w.mix);
	} while (step_row(&w, row));
	if (w.beyond_rows && csink_libunwind_ready()) {
		count(&counts.libunwind_walks);
		csink_walk_libunwind(walk, uc);
	}
}

int csink_walk_dwarf_init(void)
{
	return csink_rows_init();
}
