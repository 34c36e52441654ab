/*
 * Our own walker: rows from .eh_frame, cached by address (cfi_row.h), a few instructions a frame.
 *
 * walk_plain() is the hot path: it follows rows whose CFA is sp or fp plus an offset as long as they lie within memory
 * known to be the stack, and keeps three registers. Whatever else comes (a signal frame; code without tables; an
 * innermost frame whose CFA is in another register; memory to be checked first) is done by csink_walker_step(), one
 * frame at a time, and then the hot path goes on. What rows cannot say needs registers that were not kept: those frames
 * walk again from the innermost one by all rules.
 */
#include "preload/sample/modules.h"
#include "preload/sample/walk_step.h"

/* How many frames ahead rows are fetched; the last so many of the buffer are left to csink_walker_step(). */
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
static bool walk_plain(struct csink_walker *w, csink_row_t *found)
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
static bool pc_is_bad(struct csink_walker *w)
{
	struct csink_walk *walk = w->walk;

	if (w->exact || csink_address_plausible(w->pc))
		return false;
	walk->nr_frames--;
	walk->end = w->pc ? CSINK_WALK_BAD_STACK : CSINK_WALK_COMPLETE;
	return true;
}

void csink_walk_dwarf(struct csink_walk *walk, const ucontext_t *uc)
{
	struct csink_walker w;
	csink_row_t row = 0;

	walk->nr_frames = 0;
	w.walk = walk;
	w.mix = csink_row_mix(csink_modules_unloads());
	w.beyond_rows = false;
	csink_walker_start(&w, &uc->uc_mcontext);
	do {
		bool found = w.sp >= w.load.low && w.sp <= w.load.high && walk_plain(&w, &row);

		if (found && row == CSINK_ROW_END) {
			walk->end = CSINK_WALK_COMPLETE;
			return;
		}
		if (pc_is_bad(&w))
			return;
		if (!found || !csink_row_holds(row))
			row = csink_row_find(w.pc, w.exact, w.mix);
	} while (csink_walker_step(&w, row));
	if (w.beyond_rows)
		csink_walker_give_up(&w, uc);
}

int csink_walk_dwarf_init(void)
{
	return csink_rows_init();
}
