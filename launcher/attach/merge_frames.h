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

/** Whether a call of the evaluator is in the stack. */
bool csink_has_evaluator(const struct csink_native_stack *native, const struct csink_python *python);

/**
 * Merge. The records of groups that have none are set.
 * @replaces  Python frames stand in place of the evaluator's native ones; else beside them.
 * @is_cut    set if there were more than max.
 * Returns how many frames @to has.
 */
uint32_t csink_merge_frames(const struct csink_native_stack *native, const struct csink_python *python,
			    struct csink_attach_read *read, bool replaces, uint64_t *to, uint32_t max, bool *is_cut);

#endif
