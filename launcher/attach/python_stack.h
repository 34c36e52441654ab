/*
 * The Python frames of a thread of another process, listed by the interpreter's own records. The thread must not run
 * meanwhile. Then only what lies between two of its own stores can be unfinished: a stack with such a record is refused
 * as a whole. Nothing of the process's memory is trusted: each walk is bounded. Any thread; a struct belongs to one.
 */
#ifndef CSINK_PYTHON_STACK_H
#define CSINK_PYTHON_STACK_H

#include "include/internal/recording_format.h"
#include "launcher/attach/python_states.h"
#include "launcher/attach/remote.h"

enum { CSINK_PYTHON_NEWEST = 4 };
#define CSINK_PYTHON_UNKNOWN UINT64_MAX

/* Frames that one call of the evaluator runs. */
struct csink_python_group {
	/* An address in that call's native frame; before 3.10: 0; CSINK_PYTHON_UNKNOWN: the group is too long. */
	uint64_t record;
	uint32_t first, nr;
};

struct csink_python_stack {
	const struct csink_python *object;
	struct csink_remote *remote;
	uint32_t nr_frames, nr_groups;
	bool is_full; /* there are more frames */
	/* Innermost first. */
	uint64_t codes[CSINK_MAX_DEPTH]; /* addresses of code objects, not looked at yet */
	uint32_t positions[CSINK_MAX_DEPTH];
	struct csink_python_group groups[CSINK_MAX_DEPTH];
	/* Words that change as soon as the thread calls, returns or goes on to another instruction. */
	struct csink_python_word {
		uint64_t at, value;
	} newest[CSINK_PYTHON_NEWEST];
	uint32_t nr_newest;
};

/**
 * List the frames of a thread by its state.
 * @remote  a view of the process, begun.
 * Returns 0 (there may be none), or -EAGAIN: a record is unfinished, or is none.
 */
int csink_python_walk(struct csink_python_stack *stack, const struct csink_python *object, struct csink_remote *remote,
		      uint64_t state);

#endif
