/*
 * Merging the Python frames that were read at a sample into its native stack, as the agent does for its own process
 * (preload/agent/interp/interp.c): each group of frames beside the native frame of the evaluator's call that ran it.
 * Context: any.
 */
#ifndef CSINK_MERGE_FRAMES_H
#define CSINK_MERGE_FRAMES_H

#include "launcher/attach/readers.h"

/* A native stack, walked over a copy. */
struct csink_native_stack {
	uint64_t leaf, sp;
	const uint64_t *frames, *cfas; /* as csink_walk_copy() gives them */
	uint32_t nr;
	bool is_whole;
};

/* What a merged stack lacks. */
struct csink_merge_faults {
	bool is_cut;    /* there were more frames than max, or than were read */
	bool is_broken; /* the frames do not fit the native stack: some may stand beside another call than theirs */
};

/** Whether a call of the evaluator is in the stack. */
bool csink_has_evaluator(const struct csink_native_stack *native, const struct csink_python *python);

/**
 * Merge. The records of groups that have none are set.
 * @replaces  Python frames stand in place of the evaluator's native ones; else beside them.
 * @faults    set.
 * Returns how many frames @to has.
 */
uint32_t csink_merge_frames(const struct csink_native_stack *native, const struct csink_python *python,
			    struct csink_attach_read *read, bool replaces, uint64_t *to, uint32_t max,
			    struct csink_merge_faults *faults);

#endif
