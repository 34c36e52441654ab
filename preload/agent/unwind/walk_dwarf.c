/*
 * Our own walker: rows from .eh_frame, cached by address (cfi_row.h), a few instructions a frame.
 *
 * walk_plain() is the hot path: it follows rows whose CFA is sp or fp plus an offset as long as they lie within memory
 * known to be the stack, and keeps three registers. Whatever else comes (a signal frame; code without tables; an
 * innermost frame whose CFA is in another register; memory to be checked first) is done by csink_walker_step(), one
 * frame at a time, and then the hot path goes on. What rows cannot say needs registers that were not kept: those frames
 * walk again from the innermost one by all rules.
 */
#include "preload/agent/unwind/code.h"
#include "preload/agent/unwind/modules.h"
#include "preload/agent/unwind/walk_memo.h"
#include "preload/agent/unwind/walk_step.h"

/* How many frames ahead rows are fetched; the last so many of the buffer are left to csink_walker_step(). */
enum { AHEAD = 8 };

static inline void prefetch_row(const char *callers, uint64_t frame, uintptr_t mask)
{
	__builtin_prefetch(callers + csink_row_slot(frame, CSINK_ROW_CALLER_SHIFT, mask));
}

/* What the hot path has between its calls, besides the walker. */
struct plain {
	/* Frames of the last walk, which most likely were about the same: their rows are fetched ahead of their use,
	 * since each row must be there before the next frame's address is known. */
	const uint64_t *ahead, *ahead_end;
	struct csink_walk_trail *trail; /* of the walk's first frame; NULL: it is not kept */
	uint32_t fp_until;              /* frames before this one need the frame pointers that they found */
	bool joined;                    /* the rest is as in the last walk */
	csink_row_t row;                /* of the frame that it came to */
};

/*
 * The hot path: follow plain rows while the cache has them and they stay within checked memory. Leaves the walker at
 * the first frame that needs more. True: p->row is its row.
 */
static inline __attribute__((always_inline)) bool walk_plain(struct csink_walker *w, struct plain *p, bool keep)
{
	uint64_t *first = w->walk->frames + w->walk->nr_frames, *frames = first;
	uint64_t *end = w->walk->frames + CSINK_MAX(w->walk->max_frames, (uint32_t)AHEAD) - AHEAD;
	const uint64_t *ahead = p->ahead, *ahead_end = p->ahead_end, *fp_until = NULL;
	uintptr_t pc = w->pc, sp = w->sp, fp = w->fp, low = w->load.low, high = w->load.high, join_sp = w->join_sp;
	const char *callers = csink_rows.callers;
	uintptr_t mask = csink_row_mask();
	const char *slot = w->exact ? csink_rows.leaves + csink_row_slot(pc, CSINK_ROW_LEAF_SHIFT, mask)
				    : callers + csink_row_slot(pc, CSINK_ROW_CALLER_SHIFT, mask);
	struct csink_walk_trail *trail = keep ? p->trail + w->walk->nr_frames : NULL;
	uint64_t mix = w->mix;
	csink_row_t row;
	bool hit, joined = false;

	for (;;) {
		uintptr_t cfa, fp_at;
		uint64_t saved;

		hit = csink_row_get(slot, pc, mix, &row);
		if (CSINK_UNLIKELY(!hit)) {
			hit = csink_row_get((const char *)((uintptr_t)slot ^ CSINK_ROW_NEIGHBOUR), pc, mix, &row);
			if (!hit)
				break;
		}
		if (CSINK_UNLIKELY(csink_row_kind(row) >= CSINK_ROW_NR_PLAIN))
			break;
		cfa = (row & CSINK_ROW_BASE_FP ? fp : sp) + (uintptr_t)csink_row_cfa_offset(row);
		fp_at = cfa + (uintptr_t)FP_BYTES(row);
		if (CSINK_UNLIKELY(cfa < sp + 8) || CSINK_UNLIKELY(cfa > high) || CSINK_UNLIKELY(fp_at < low) ||
		    CSINK_UNLIKELY(cfa + (uintptr_t)RA_BYTES(row) < low) || CSINK_UNLIKELY(frames >= end))
			break;
		if (ahead < ahead_end)
			prefetch_row(callers, *ahead++, mask);
		pc = STRIP_SIGNATURE(csink_load_known(cfa + (uintptr_t)RA_BYTES(row)));
		saved = csink_load_known(fp_at);
		fp = row & CSINK_ROW_SAVED ? saved : fp;
		sp = cfa;
		/* Before this frame is put where one of the last walk may be. */
		if (keep && CSINK_UNLIKELY(cfa >= join_sp)) {
			joined = csink_walk_memo_joins(w, (uint32_t)(frames - w->walk->frames), pc, sp, fp);
			join_sp = w->join_sp;
		}
		if (keep) {
			fp_until = row & CSINK_ROW_BASE_FP ? frames : fp_until;
			*trail++ = (struct csink_walk_trail){fp, (uint32_t)row, (uint32_t)(high - cfa)};
		}
		*frames++ = pc;
		slot = callers + csink_row_slot(pc, CSINK_ROW_CALLER_SHIFT, mask);
		if (keep && CSINK_UNLIKELY(joined))
			break;
	}
	p->row = row;
	p->ahead = ahead;
	p->joined = joined;
	if (fp_until)
		p->fp_until = (uint32_t)(fp_until - w->walk->frames);
	w->pc = pc;
	w->sp = sp;
	w->fp = fp;
	if (frames != first)
		w->exact = w->innermost = false;
	w->walk->nr_frames = (uint32_t)(frames - w->walk->frames);
	return hit;
}

static __attribute__((noinline)) bool walk_plain_kept(struct csink_walker *w, struct plain *p)
{
	return walk_plain(w, p, true);
}

static __attribute__((noinline)) bool walk_plain_alone(struct csink_walker *w, struct plain *p)
{
	return walk_plain(w, p, false);
}

static bool is_on_stack(const struct csink_walker *w)
{
	return w->sp >= w->load.low && w->sp <= w->load.high;
}

/* Before the walk: what of the last one helps. */
static void reuse_last_walk(struct csink_walker *w, struct plain *p)
{
	const struct csink_walk *walk = w->walk;
	uint32_t changed = walk->max_frames;

	*p = (struct plain){.ahead = walk->frames};
	if (walk->memo && walk->memo->rest && !walk->keep_cfas) {
		walk->memo->rest--;
	} else if (walk->memo && is_on_stack(w) && w->load.high - w->load.low <= UINT32_MAX) {
		changed = csink_walk_memo_compare(w);
		p->ahead += walk->memo->first;
		p->trail = walk->memo->trail;
	}
	p->ahead_end = walk->frames + changed;
	for (int i = 0; i < AHEAD && p->ahead < p->ahead_end; i++)
		prefetch_row(csink_rows.callers, *p->ahead++, csink_row_mask());
}

/* The hot path took a return address that is none (an empty entry of the cache fits address 0): take it back. */
static bool pc_is_bad(struct csink_walker *w)
{
	struct csink_walk *walk = w->walk;

	if (w->exact || csink_address_plausible(w->pc))
		return false;
	walk->nr_frames--;
	walk->end = w->pc ? CSINK_WALK_BAD_STACK : CSINK_WALK_COMPLETE;
	return true;
}

/* Inlined in each of its two callers: a call would cost the hot one some ns. */
static inline __attribute__((always_inline)) void walk_all(struct csink_walker *w, struct plain *p)
{
	const mcontext_t *context = w->context;
	uintptr_t high = w->load.high;
	struct csink_walk *walk = w->walk;
	bool more = true;

	while (more) {
		csink_row_t row;
		bool found = is_on_stack(w) && (p->trail ? walk_plain_kept(w, p) : walk_plain_alone(w, p));

		if (p->joined || (found && p->row == CSINK_ROW_END)) {
			walk->end = CSINK_WALK_COMPLETE;
			return;
		}
		if (pc_is_bad(w))
			break;
		row = found && csink_row_holds(p->row) ? p->row : csink_row_find(w->pc, w->exact, w->mix);
		more = csink_walker_step(w, row);
		if (!p->trail)
			continue;
		/* Over a signal's frame, or to another stack. */
		if (w->context != context || w->load.high != high)
			p->trail = NULL;
		else if (walk->nr_frames)
			p->trail[walk->nr_frames - 1] = (struct csink_walk_trail){
				.fp = w->fp, .row = CSINK_TRAIL_NONE, .cfa_down = (uint32_t)(w->load.high - w->sp)};
	}
	p->trail = NULL;
}

/* ---- walks that fail --------------------------------------------------------------------------------------------- */

static bool has_failed(const struct csink_walk *walk)
{
	return walk->end == CSINK_WALK_NO_CFI || walk->end == CSINK_WALK_BAD_STACK;
}

/* No call is before it, so nothing returns there. */
static bool is_no_caller(uint64_t frame)
{
	return !(frame & CSINK_FRAME_EXACT) && csink_code_call(frame, 0) == CSINK_NO_CALL;
}

/*
 * libgcc goes into an exception's handler by a return, or a jump: that caller is none, and what holds there are the
 * rules of the handler's first instruction, not of the one before it.
 */
static void walk_from_handler(struct csink_walker *w, struct plain *p, const ucontext_t *uc)
{
	struct csink_walk *walk = w->walk;

	if (!walk->nr_frames || !is_no_caller(walk->frames[0]) ||
	    csink_row_kind(csink_row_find(walk->frames[0], true, w->mix)) == CSINK_ROW_NO_CFI)
		return;
	walk->nr_frames = 0;
	csink_walker_start(w, &uc->uc_mcontext);
	if (!csink_walker_step(w, csink_row_find(w->pc, true, w->mix)) || walk->nr_frames != 1)
		return;
	w->exact = true;
	walk->frames[0] |= CSINK_FRAME_EXACT;
	walk_all(w, p);
}

/* Rules were followed where they did not hold (libgcc overwrites what those of its own frames refer to, on its way into
 * a handler), or the stack is damaged. */
static void drop_bad_stack(struct csink_walk *walk)
{
	for (; walk->nr_frames && is_no_caller(walk->frames[walk->nr_frames - 1]); walk->end = CSINK_WALK_BAD_STACK)
		walk->nr_frames--;
}

static __attribute__((noinline, cold)) void walk_again(struct csink_walker *w, struct plain *p, const ucontext_t *uc)
{
	walk_from_handler(w, p, uc);
	if (has_failed(w->walk))
		drop_bad_stack(w->walk);
}

/* The room has been written over, from the other end. */
static void reset_memo(struct csink_walk *walk)
{
	if (walk->memo)
		walk->memo->first = walk->memo->nr = 0;
	walk->same = 0;
}

void csink_walk_dwarf(struct csink_walk *walk, const ucontext_t *uc)
{
	struct csink_walker w;
	struct plain p;

	walk->nr_frames = 0;
	w.walk = walk;
	w.mix = csink_row_mix(csink_modules_unloads());
	csink_walker_start(&w, &uc->uc_mcontext);
	reuse_last_walk(&w, &p);
	walk_all(&w, &p);
	if (CSINK_UNLIKELY(has_failed(walk)))
		walk_again(&w, &p, uc);
	if (p.trail)
		csink_walk_memo_keep(&w, p.joined, p.fp_until);
	else
		reset_memo(walk);
}

/* Without a trail (over signal frames, on other stacks): walk once more, step by step. */
static void walk_for_cfas(const struct csink_walk *walk, const ucontext_t *uc, uintptr_t *cfas, uintptr_t *fps,
			  uint64_t *scratch)
{
	struct csink_walk again = {.stack = walk->stack, .frames = scratch, .max_frames = walk->max_frames};
	struct csink_walker w = {.walk = &again, .mix = csink_row_mix(csink_modules_unloads())};
	uint32_t i;

	csink_walker_start(&w, &uc->uc_mcontext);
	for (i = 0;
	     i < walk->nr_frames && csink_walker_step(&w, csink_row_find(w.pc, w.exact, w.mix)) &&
	     again.nr_frames == i + 1 && (scratch[i] | CSINK_FRAME_EXACT) == (walk->frames[i] | CSINK_FRAME_EXACT);
	     i++) {
		cfas[i] = w.sp;
		fps[i] = w.fp;
	}
	for (; i < walk->nr_frames; i++)
		cfas[i] = UINTPTR_MAX;
}

void csink_walk_cfas(const struct csink_walk *walk, const ucontext_t *uc, uintptr_t *cfas, uintptr_t *fps,
		     uint64_t *scratch)
{
	const struct csink_walk_memo *memo = walk->memo;

	if (!memo || memo->nr != walk->nr_frames) {
		walk_for_cfas(walk, uc, cfas, fps, scratch);
		return;
	}
	for (uint32_t i = 0; i < walk->nr_frames; i++) {
		cfas[i] = memo->high - memo->trail[memo->first + i].cfa_down;
		fps[i] = memo->trail[memo->first + i].fp;
	}
}

int csink_walk_dwarf_init(void)
{
	return csink_rows_init();
}
