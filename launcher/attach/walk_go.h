/*
 * Stacks of Go beyond what was copied of them. Goroutines' stacks are deep, and the runtime goes to other stacks, of
 * which nothing is copied. The kernel's own walk goes on there: Go's functions have frame pointers, all but the
 * innermost ones. Both are joined where a return address lies at the same place in both.
 */
#ifndef CSINK_WALK_GO_H
#define CSINK_WALK_GO_H

#include "launcher/attach/walk_copied.h"

/**
 * Append the kernel's callers to a walk that ended before the stack did.
 * @cfas     of the frames, as csink_walk_copy has them.
 * @nr       frames that there are; max_frames: room for them.
 * @end      why the walk ended; changed where more was found.
 * Returns how many frames there are now. Context: thread; one thread only.
 */
uint32_t csink_walk_go_join(const struct csink_walk_copy *copy, uint64_t *frames, uint64_t *cfas, uint32_t nr,
			    uint32_t max_frames, enum csink_walk_copy_end *end);

#endif
