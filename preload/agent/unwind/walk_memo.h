/*
 * The last walk of a thread, used for the next one. Only walk_dwarf.c includes this. Context: signal.
 *
 * A frame's caller follows from the frame's registers (address, stack pointer, frame pointer), the row of its address,
 * and the words that the row says to load. So where a walk comes to a frame with the registers that the last walk had
 * in one, and every word that the last walk loaded from there on is still the same, its callers are the same, too. To
 * compare those words is not to look for rows, nor to wait for one frame before the next: they are all known at once.
 * What changed is found from the outermost frame inwards; the walk goes by rows from the innermost one up to there.
 */
#ifndef CSINK_WALK_MEMO_H
#define CSINK_WALK_MEMO_H

#include "preload/agent/unwind/walk_step.h"

/* A trail of frames that are not to be joined: any kind of row that is not plain. */
#define CSINK_TRAIL_NONE CSINK_ROW_COMPLEX

/** Before a walk: compare the last one with the stack, and set w->join and w->join_sp. Returns the number of the first
 * frame of its room that is unchanged, or of the first after all if none is. */
uint32_t csink_walk_memo_compare(struct csink_walker *w);

/** The walk has come to w->join_sp or beyond, to a frame with these registers. True: it goes on as the last one from
 * w->join did. False: not here, and w->join_sp has been moved on. @nr: frames of this walk before that one. */
bool csink_walk_memo_joins(struct csink_walker *w, uint32_t nr, uintptr_t pc, uintptr_t sp, uintptr_t fp);

/**
 * The walk is complete: keep it.
 * @joined    it ends as the last one, from w->join on
 * @fp_until  frames of it before this one need their frame pointers
 */
void csink_walk_memo_keep(struct csink_walker *w, bool joined, uint32_t fp_until);

#endif
