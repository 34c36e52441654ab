#include "preload/sample/walk_memo.h"

static inline bool is_plain(const struct csink_walk_trail *trail)
{
	return csink_row_kind(trail->row) < CSINK_ROW_NR_PLAIN;
}

static inline uintptr_t cfa_of(const struct csink_walk_memo *memo, uint32_t i)
{
	return memo->high - memo->trail[i].cfa_down;
}

/* The return address that led to a frame of the last walk lies where it did, in memory that is still in use. */
static inline bool same_caller(const struct csink_walker *w, const struct csink_walk_memo *memo, uint32_t i)
{
	const struct csink_walk_trail *trail = &memo->trail[i];
	uintptr_t at = memo->high - trail->cfa_down + (uintptr_t)RA_BYTES(trail->row);

	return is_plain(trail) && at >= w->load.low && STRIP_SIGNATURE(csink_load_known(at)) == w->walk->frames[i];
}

/* And its frame pointer, if it was saved there. */
static inline bool same_fp(const struct csink_walker *w, const struct csink_walk_memo *memo, uint32_t i)
{
	const struct csink_walk_trail *trail = &memo->trail[i];
	uintptr_t at = cfa_of(memo, i) + (uintptr_t)FP_BYTES(trail->row);

	return !(trail->row & CSINK_ROW_SAVED) || (at >= w->load.low && csink_load_known(at) == trail->fp);
}

static void set_join(struct csink_walker *w, uint32_t i)
{
	w->join = i;
	w->join_sp = i < CSINK_MAX_DEPTH ? cfa_of(w->walk->memo, i) : UINTPTR_MAX;
}

uint32_t csink_walk_memo_compare(struct csink_walker *w)
{
	const struct csink_walk_memo *memo = w->walk->memo;
	uint32_t i = CSINK_MAX_DEPTH, first = CSINK_MAX_DEPTH - memo->nr;

	if (memo->mix == w->mix && memo->high == w->load.high) {
		while (i > CSINK_MAX(first, memo->fp_until) && same_caller(w, memo, i - 1))
			i--;
		while (i > first && i <= memo->fp_until && same_caller(w, memo, i - 1) && same_fp(w, memo, i - 1))
			i--;
	}
	/* Nothing was loaded from the frame before these to find them, so it will do if its registers are the same. */
	set_join(w, i > first && i < CSINK_MAX_DEPTH && is_plain(&memo->trail[i - 1]) ? i - 1 : i);
	return i;
}

bool csink_walk_memo_joins(struct csink_walker *w, uint32_t nr, uintptr_t pc, uintptr_t sp, uintptr_t fp)
{
	const struct csink_walk *walk = w->walk;
	const struct csink_walk_memo *memo = walk->memo;
	uint32_t i = w->join;

	/* This walk's frames are put into the same room, from the other end. */
	if (nr > i || nr + (CSINK_MAX_DEPTH - 1 - i) > walk->max_frames) {
		set_join(w, CSINK_MAX_DEPTH);
		return false;
	}
	while (i < CSINK_MAX_DEPTH && cfa_of(memo, i) < sp)
		i++;
	set_join(w, i);
	if (i == CSINK_MAX_DEPTH || w->join_sp != sp)
		return false;
	if (walk->frames[i] == pc && (i >= memo->fp_until || memo->trail[i].fp == fp))
		return true;
	set_join(w, i + 1);
	return false;
}

/* This walk's frames, put where they go, change nothing. */
static bool is_same(const struct csink_walk *walk, uint32_t to)
{
	if (CSINK_MAX_DEPTH - to != walk->memo->nr)
		return false;
	for (uint32_t i = 0; i < walk->nr_frames; i++)
		if (walk->frames[i] != walk->frames[to + i])
			return false;
	return true;
}

void csink_walk_memo_keep(struct csink_walker *w, bool joined, uint32_t fp_until)
{
	struct csink_walk *walk = w->walk;
	struct csink_walk_memo *memo = walk->memo;
	uint32_t nr = walk->nr_frames, end = joined ? w->join + 1 : CSINK_MAX_DEPTH, to = end - nr;

	if (!joined || !is_same(walk, to))
		memo->nr_kept++;
	for (uint32_t i = nr; i-- > 0 && to;) {
		walk->frames[to + i] = walk->frames[i];
		memo->trail[to + i] = memo->trail[i];
	}
	if (!joined || memo->fp_until < end)
		memo->fp_until = fp_until ? to + fp_until : 0;
	memo->mix = w->mix;
	memo->high = w->load.high;
	memo->nr = walk->nr_frames = CSINK_MAX_DEPTH - to;
	walk->frames += to;
	walk->same = memo->nr_kept;
}
