/* Reuse of a thread's last walk: see walk_memo.h. Runs in the handler of that thread. */
#include "preload/agent/unwind/walk_memo.h"

/* Of ten walks without much in common, two are kept, to see whether that has changed. */
enum { NR_RESTS = 8 };

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

static inline uint32_t end_of(const struct csink_walk_memo *memo)
{
	return memo->first + memo->nr;
}

static void set_join(struct csink_walker *w, uint32_t i)
{
	w->join = i;
	w->join_sp = i < end_of(w->walk->memo) ? cfa_of(w->walk->memo, i) : UINTPTR_MAX;
}

uint32_t csink_walk_memo_compare(struct csink_walker *w)
{
	struct csink_walk_memo *memo = w->walk->memo;
	uint32_t first = memo->first, i = end_of(memo);

	memo->crowded = false;
	if (memo->mix == w->mix && memo->high == w->load.high) {
		while (i > CSINK_MAX(first, memo->fp_until) && same_caller(w, memo, i - 1))
			i--;
		while (i > first && i <= memo->fp_until && same_caller(w, memo, i - 1) && same_fp(w, memo, i - 1))
			i--;
	}
	/* Nothing was loaded from the frame before these to find them, so it will do if its registers are the same. */
	set_join(w, i > first && i < end_of(memo) && is_plain(&memo->trail[i - 1]) ? i - 1 : i);
	return i;
}

bool csink_walk_memo_joins(struct csink_walker *w, uint32_t nr, uintptr_t pc, uintptr_t sp, uintptr_t fp)
{
	const struct csink_walk *walk = w->walk;
	struct csink_walk_memo *memo = walk->memo;
	uint32_t i = w->join, end = end_of(memo);

	while (i < end && cfa_of(memo, i) < sp)
		i++;
	set_join(w, i);
	if (i == end || w->join_sp != sp)
		return false;
	if (nr > i || nr + end - i > walk->max_frames) { /* this walk's frames have been put where those were */
		memo->crowded = true;
		set_join(w, end);
		return false;
	}
	if (walk->frames[i] == pc && (i >= memo->fp_until || memo->trail[i].fp == fp))
		return true;
	set_join(w, i + 1);
	return false;
}

/* Frames and trail from one place of their room to another. */
static void move(struct csink_walk *walk, uint32_t from, uint32_t to, uint32_t nr)
{
	struct csink_walk_trail *trail = walk->memo->trail;

	for (uint32_t i = nr; i-- > 0 && to > from;) {
		walk->frames[to + i] = walk->frames[from + i];
		trail[to + i] = trail[from + i];
	}
	for (uint32_t i = 0; i < nr && to < from; i++) {
		walk->frames[to + i] = walk->frames[from + i];
		trail[to + i] = trail[from + i];
	}
}

static void keep_joined(struct csink_walk *walk, uint32_t join, uint32_t fp_until)
{
	struct csink_walk_memo *memo = walk->memo;
	uint32_t nr = walk->nr_frames, tail = join + 1, nr_tail = end_of(memo) - tail, by = tail - nr;
	bool tail_needs_fp = memo->fp_until >= tail;

	if (nr <= nr_tail || !by) {
		move(walk, 0, by, nr);
		memo->first = by;
		fp_until = fp_until ? fp_until + by : 0;
	} else {
		move(walk, tail, nr, nr_tail);
		memo->first = 0;
		memo->fp_until -= tail_needs_fp ? by : 0;
	}
	if (!tail_needs_fp)
		memo->fp_until = fp_until;
	memo->nr = nr + nr_tail;
}

static void keep_alone(struct csink_walk *walk, uint32_t fp_until)
{
	struct csink_walk_memo *memo = walk->memo;

	memo->nr = walk->nr_frames;
	memo->first = memo->crowded ? CSINK_MAX_DEPTH - memo->nr : 0;
	memo->fp_until = fp_until ? memo->first + fp_until : 0;
	move(walk, 0, memo->first, memo->nr);
}

void csink_walk_memo_keep(struct csink_walker *w, bool joined, uint32_t fp_until)
{
	struct csink_walk *walk = w->walk;
	struct csink_walk_memo *memo = walk->memo;
	bool had = memo->nr > 0;
	uint32_t nr = walk->nr_frames;

	/* One frame, and the same place: that it was joined at. Several frames are compared when they are stored. */
	if (!joined || walk->nr_frames != 1 || w->join != memo->first)
		memo->nr_kept++;
	if (joined)
		keep_joined(walk, w->join, fp_until);
	else
		keep_alone(walk, fp_until);
	memo->mix = w->mix;
	memo->high = w->load.high;
	/* What is rarely of use is not worth keeping: it takes an eighth of a walk's time. */
	if (had && nr > memo->nr - memo->nr / 4)
		memo->rest = NR_RESTS;
	walk->nr_frames = memo->nr;
	walk->frames += memo->first;
	walk->same = memo->nr_kept;
}
