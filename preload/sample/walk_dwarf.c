/*
 * Our own walker: rows from .eh_frame, cached by address (cfi_row.h), a few instructions a frame.
 *
 * walk_fast() is the hot path: it follows rows whose CFA is sp or fp plus an offset as long as they lie within memory
 * known to be the stack, and keeps three registers. Whatever else comes (the innermost frame, with all its registers; a
 * signal frame; code without tables; memory to be checked first) is done by step_row(), one frame at a time, and then
 * the fast path goes on. What rows cannot say needs registers that were not kept: step_complex() walks again from the
 * innermost frame by all rules.
 */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "include/internal/base.h"
#include "preload/sample/cfi_row.h"
#include "preload/sample/modules.h"
#include "preload/sample/safe_load.h"
#include "preload/sample/unwind.h"

/* On a stack of unknown bounds a frame that only its frame pointer describes is not believed to be larger than this. */
#define MAX_FRAME_BYTES (1UL << 20)
/* No user address has more bits. */
#define ADDRESS_BITS 48

struct walker {
	struct csink_walk *walk;
	uintptr_t pc, sp, fp;
	bool exact;     /* pc is of an instruction that was about to run, not one to return to */
	bool innermost; /* all registers are known: those at `context` */
	uint32_t generation;
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
	out->fp_steps = __atomic_load_n(&counts.fp_steps, __ATOMIC_RELAXED);
	out->complex_steps = __atomic_load_n(&counts.complex_steps, __ATOMIC_RELAXED);
	out->libunwind_walks = __atomic_load_n(&counts.libunwind_walks, __ATOMIC_RELAXED);
}

/* ---- machine ------------------------------------------------------------------------------------------------------
 */

#if defined(__x86_64__)
#define STRIP_SIGNATURE(address) (address)
#define RA_WORDS(row) (-1)
#define RA_OUTSIDE(row, cfa, low) false

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
#define RA_WORDS(row) csink_row_ra_words(row)
/* Also where it is kept in its register, which only the innermost frame may do: no address is so far below. */
#define RA_OUTSIDE(row, cfa, low)                                                                                      \
	((cfa) + (uintptr_t)RA_WORDS(row) * 8 - (low) >= (cfa) - (low) || RA_WORDS(row) == CSINK_ROW_KEPT)

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

/* The walker is at `caller` now. False: the walk ended. */
static bool add_frame(struct walker *w, uintptr_t caller)
{
	struct csink_walk *walk = w->walk;

	if (!caller && !w->exact)
		return end_walk(w, CSINK_WALK_COMPLETE);
	if (caller >> ADDRESS_BITS)
		return end_walk(w, CSINK_WALK_BAD_STACK);
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
			  w->sp - CSINK_MIN(w->sp - w->walk->stack->low, (uintptr_t)CSINK_RED_ZONE_BYTES));
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

/* By a row whose CFA is known. The frame pointer is saved at a distance from fp_from, or kept. */
static bool step_saved(struct walker *w, csink_row_t row, uintptr_t cfa, uintptr_t fp_from)
{
	int64_t fp_words = csink_row_fp_words(row), ra_words = RA_WORDS(row);
	uint64_t fp = w->fp, ra = 0;

	if (ra_words == CSINK_ROW_KEPT) {
		if (!w->innermost)
			return end_walk(w, CSINK_WALK_BAD_STACK);
		ra = context_reg(w->context, CSINK_REG_RA);
	} else if (!csink_load_word(&w->load, cfa + (uintptr_t)ra_words * 8, &ra)) {
		return end_walk(w, CSINK_WALK_BAD_STACK);
	}
	if (fp_words != CSINK_ROW_KEPT && !csink_load_word(&w->load, fp_from + (uintptr_t)fp_words * 8, &fp))
		return end_walk(w, CSINK_WALK_BAD_STACK);
	return step_to(w, cfa, fp, ra);
}

/* Code without tables (a just-in-time compiler's, say): its frame pointer, if that looks like one. */
static bool step_fp(struct walker *w)
{
	uint64_t fp, ra;

	count(&counts.fp_steps);
	if (!w->fp) /* the ABI's mark of the outermost frame; in the innermost it may be just a value */
		return end_walk(w, w->innermost ? CSINK_WALK_NO_CFI : CSINK_WALK_COMPLETE);
	if (w->fp % 8 || w->fp < w->sp || (w->fp >= w->load.high && w->fp - w->sp > MAX_FRAME_BYTES) ||
	    !csink_load_word(&w->load, w->fp, &fp) || !csink_load_word(&w->load, w->fp + 8, &ra))
		return end_walk(w, CSINK_WALK_NO_CFI);
	return step_to(w, w->fp + 16, fp, ra);
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
	bool exact = true;

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
	w->fp = regs.known >> CSINK_REG_FP & 1 ? regs.value[CSINK_REG_FP] : 0;
	w->innermost = false;
	w->exact = exact;
	if (w->sp <= last_sp && !exact)
		return end_walk(w, CSINK_WALK_BAD_STACK);
	return add_frame(w, pc);
}

static bool step_reg(struct walker *w, csink_row_t row)
{
	enum csink_row_kind kind = csink_row_kind(row);
	unsigned int reg = csink_row_reg(row);
	uint64_t cfa;

	if (w->innermost)
		cfa = context_reg(w->context, reg);
	else if (reg == CSINK_REG_SP || reg == CSINK_REG_FP)
		cfa = reg == CSINK_REG_SP ? w->sp : w->fp;
	else
		return step_complex(w);
	cfa += (uint64_t)csink_row_cfa_offset(row);
	if (kind == CSINK_ROW_DEREF || kind == CSINK_ROW_DEREF_FPX) {
		if (!csink_load_word(&w->load, cfa, &cfa))
			return end_walk(w, CSINK_WALK_BAD_STACK);
		cfa += (uint64_t)csink_row_ra_words(row) * 8;
	}
	return step_saved(w, row, cfa, kind == CSINK_ROW_REG || kind == CSINK_ROW_DEREF ? cfa : w->fp);
}

static bool step_row(struct walker *w, csink_row_t row)
{
	enum csink_row_kind kind = csink_row_kind(row);
	uintptr_t cfa;

	switch (kind) {
	case CSINK_ROW_REG:
	case CSINK_ROW_DEREF:
	case CSINK_ROW_REG_FPX:
	case CSINK_ROW_DEREF_FPX:
		return step_reg(w, row);
	case CSINK_ROW_SIGNAL:
		return step_signal(w);
	case CSINK_ROW_END:
		return end_walk(w, CSINK_WALK_COMPLETE);
	case CSINK_ROW_NO_CFI:
		return step_fp(w);
	case CSINK_ROW_COMPLEX:
		return step_complex(w);
	default:
		cfa = (kind & CSINK_ROW_BASE_FP ? w->fp : w->sp) + (uintptr_t)csink_row_cfa_offset(row);
		return step_saved(w, row, cfa, cfa);
	}
}

/* ---- the walk -----------------------------------------------------------------------------------------------------
 */

/* All that is left of a frame is a return address: no row, and no way to go on from there. */
static bool address_plausible(uintptr_t pc)
{
	return !((pc - 1) >> ADDRESS_BITS);
}

/*
 * Follow plain rows while they are in the first way of the cache and stay within checked memory. Leaves the walker at
 * the first frame that needs more, with its row if that was found: step_row() judges what it means. In: a return
 * address; sp in [load.low, load.high].
 */
static bool walk_fast(struct walker *w, csink_row_t *found)
{
	uint64_t *frames = w->walk->frames + w->walk->nr_frames, *end = w->walk->frames + w->walk->max_frames;
	uintptr_t pc = w->pc, sp = w->sp, fp = w->fp, low = w->load.low, high = w->load.high;
	struct csink_row_set *sets = csink_row_sets;
	uint64_t generation = w->generation;
	bool hit;

	for (;;) {
		uintptr_t cfa, fp_at, caller;
		csink_row_t row;
		uint64_t saved;

		hit = csink_row_get(&csink_row_set(sets, pc)->way[0], csink_row_key(pc, false, generation), &row);
		*found = row;
		if (CSINK_UNLIKELY(!hit) || CSINK_UNLIKELY(csink_row_kind(row) >= CSINK_ROW_NR_FAST))
			break;
		cfa = (row & CSINK_ROW_BASE_FP ? fp : sp) + (uintptr_t)csink_row_cfa_offset(row);
		fp_at = cfa + (uintptr_t)(row & CSINK_ROW_SAVED ? csink_row_fp_words(row) : RA_WORDS(row)) * 8;
		if (CSINK_UNLIKELY(cfa < sp + 8) || CSINK_UNLIKELY(cfa > high) ||
		    CSINK_UNLIKELY(fp_at - low >= cfa - low) || CSINK_UNLIKELY(RA_OUTSIDE(row, cfa, low)) ||
		    CSINK_UNLIKELY(frames == end))
			break;
		caller = STRIP_SIGNATURE(*(const uint64_t *)(cfa + (uintptr_t)RA_WORDS(row) * 8));
		saved = *(const uint64_t *)fp_at;
		if (CSINK_UNLIKELY(!address_plausible(caller))) /* step_row() will say why */
			break;
		fp = row & CSINK_ROW_SAVED ? saved : fp;
		sp = cfa;
		*frames++ = pc = caller;
	}
	w->pc = pc;
	w->sp = sp;
	w->fp = fp;
	w->walk->nr_frames = (uint32_t)(frames - w->walk->frames);
	return hit;
}

/* The row of where the walker is, after as many plain frames as there are. */
static csink_row_t next_row(struct walker *w)
{
	csink_row_t row;

	if (!w->exact && w->sp >= w->load.low && w->sp <= w->load.high && walk_fast(w, &row))
		return row;
	return csink_row_find(w->pc, w->exact, w->generation);
}

void csink_walk_dwarf(struct csink_walk *walk, const ucontext_t *uc)
{
	struct walker w = {.walk = walk, .generation = csink_modules_generation()};

	walk->nr_frames = 0;
	start_at(&w, &uc->uc_mcontext);
	while (step_row(&w, next_row(&w)))
		;
	if (w.beyond_rows && walk->end != CSINK_WALK_DEPTH && csink_libunwind_ready()) {
		count(&counts.libunwind_walks);
		csink_walk_libunwind(walk, uc);
	}
}

int csink_walk_dwarf_init(void)
{
	return csink_rows_init();
}
