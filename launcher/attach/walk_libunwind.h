/*
 * Walking a copied stack by libunwind, and the choice between it and our own rules (walk_copied.h). Runs in the attach
 * command's one thread.
 */
#ifndef CSINK_WALK_LIBUNWIND_H
#define CSINK_WALK_LIBUNWIND_H

#include "launcher/attach/walk_copied.h"

enum csink_walk_by {
	CSINK_WALK_BY_EITHER, /* ours; libunwind where ours cannot follow a table's rules */
	CSINK_WALK_BY_OURS,
	CSINK_WALK_BY_LIBUNWIND,
};

/**
 * As csink_walk_copy, by libunwind's remote unwinding. It sees the copied stack, the sampled registers and, of the
 * objects' tables, the instructions of one checked entry at a time; code without tables ends the stack. A stack takes a
 * bounded number of reads. Context: thread; one thread only.
 */
uint32_t csink_walk_libunwind(const struct csink_walk_copy *copy, uint64_t *frames, uint32_t max_frames,
			      enum csink_walk_copy_end *end);

/**
 * As csink_walk_copy, by the way chosen. Where libunwind takes over from our rules, its stack must begin with ours.
 * @helped  set to whether it took over. Context: thread; one thread only.
 */
uint32_t csink_walk_chosen(enum csink_walk_by by, const struct csink_walk_copy *copy, uint64_t *frames,
			   uint32_t max_frames, enum csink_walk_copy_end *end, bool *helped);

#endif
