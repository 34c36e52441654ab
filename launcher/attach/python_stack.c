/* See python_stack.h. The agent's own way through the same records: preload/agent/interp/python.c. */
#include "launcher/attach/python_stack.h"

#include <errno.h>

static bool load(struct csink_python_stack *stack, uint64_t at, uint64_t *value)
{
	return csink_remote_load(stack->remote, at, value);
}

/* The same for one of the words that say where the thread is. */
static bool load_newest(struct csink_python_stack *stack, uint64_t at, uint64_t *value)
{
	if (!load(stack, at, value))
		return false;
	if (stack->nr_newest < CSINK_PYTHON_NEWEST)
		stack->newest[stack->nr_newest++] = (struct csink_python_word){at, *value};
	return true;
}

static bool put_frame(struct csink_python_stack *stack, uint64_t frame)
{
	const struct csink_python_layout *layout = stack->object->layout;
	uint64_t code, position, at = frame + layout->position;

	if (stack->nr_frames == CSINK_MAX_DEPTH) {
		stack->is_full = true;
		return true;
	}
	if (!load(stack, frame + layout->code, &code))
		return false;
	code = csink_python_untag(code);
	if (stack->nr_frames ? !load(stack, at, &position) : !load_newest(stack, at, &position))
		return false;
	stack->codes[stack->nr_frames] = code;
	stack->positions[stack->nr_frames++] = csink_python_position(layout, code, position);
	return true;
}

/* End a group: the frames that were put since the last one ended. */
static void put_group(struct csink_python_stack *stack, uint64_t record)
{
	const struct csink_python_group *last = stack->nr_groups ? &stack->groups[stack->nr_groups - 1] : NULL;
	uint32_t first = last ? last->first + last->nr : 0;

	if (stack->nr_frames > first)
		stack->groups[stack->nr_groups++] =
			(struct csink_python_group){record, first, stack->nr_frames - first};
}

/* ---- groups of several frames: from 3.11 ---- */

/* *last: the entry of a group, or the shim behind it; *outer: the newest frame of the next group outwards. */
static bool find_end(struct csink_python_stack *stack, uint64_t frame, uint64_t *last, uint64_t *outer)
{
	const struct csink_python_layout *layout = stack->object->layout;
	uint64_t previous, owner;

	for (uint32_t nr = 0; frame && nr < CSINK_PYTHON_MAX_CHAIN; nr++, frame = previous) {
		uint64_t at = frame + layout->owner;

		if (!load(stack, frame + layout->previous, &previous) || !load(stack, at & ~7ULL, &owner))
			return false;
		owner = owner >> at % 8 * 8 & 0xff;
		if (owner > CSINK_PYTHON_OWNER_MAX)
			return false;
		*last = frame;
		*outer = previous;
		if (csink_python_is_last(layout, owner))
			return true;
	}
	*outer = CSINK_PYTHON_UNKNOWN; /* it has more frames than a stack has room for */
	return frame != 0;
}

static bool put_frames(struct csink_python_stack *stack, uint64_t frame, uint64_t last, uint64_t record)
{
	const struct csink_python_layout *layout = stack->object->layout;
	bool has_last = layout->chain == CSINK_PYTHON_ENTRY;

	for (bool more = true; more && (has_last || frame != last);) {
		more = frame != last && !stack->is_full;
		if (!put_frame(stack, frame) || !load(stack, frame + layout->previous, &frame))
			return false;
	}
	put_group(stack, record);
	return true;
}

/* The state has a CFrame of its own, the root of the list, which belongs to no call of the evaluator. */
static bool is_root(uint64_t cframe, uint64_t state)
{
	return cframe - state < CSINK_PYTHON_STATE_BYTES;
}

static bool load_cframe(struct csink_python_stack *stack, uint64_t cframe, uint64_t *frame, uint64_t *previous)
{
	const struct csink_python_layout *layout = stack->object->layout;

	/* It lies on the thread's stack. */
	return (stack->nr_newest == 1 ? load_newest(stack, cframe + layout->cframe_frame, frame)
				      : load(stack, cframe + layout->cframe_frame, frame)) &&
	       load(stack, cframe + layout->cframe_previous, previous);
}

/*
 * 3.11 and 3.12 link a CFrame before they store its frame in it: that frame is valid if the one beyond its group's end
 * is the one in the next CFrame outwards.
 */
static bool leads_on(struct csink_python_stack *stack, uint64_t state, uint64_t previous, uint64_t outer)
{
	uint64_t frame, above;

	return outer == CSINK_PYTHON_UNKNOWN || is_root(previous, state) ||
	       (load_cframe(stack, previous, &frame, &above) && frame == outer);
}

static bool walk_entries(struct csink_python_stack *stack, uint64_t state)
{
	uint64_t cframe, previous, frame, last, outer;
	bool is_newest = true;

	if (!load_newest(stack, state + stack->object->layout->newest, &cframe))
		return false;
	for (; !is_root(cframe, state) && !stack->is_full; cframe = previous, is_newest = false) {
		if (!load_cframe(stack, cframe, &frame, &previous) ||
		    (previous <= cframe && !is_root(previous, state)) || !find_end(stack, frame, &last, &outer) ||
		    (is_newest && !leads_on(stack, state, previous, outer)) || !put_frames(stack, frame, last, cframe))
			return false;
	}
	return true;
}

static bool walk_shims(struct csink_python_stack *stack, uint64_t state)
{
	uint64_t frame, cframe, previous, last, outer;

	if (!load_newest(stack, state + stack->object->layout->newest, &frame))
		return false;
	if (stack->object->layout->minor == 12) {
		cframe = frame;
		if (is_root(cframe, state))
			return true;
		/* The shim is a local variable of the same call as the CFrame. */
		if (!load_cframe(stack, cframe, &frame, &previous) ||
		    (previous <= cframe && !is_root(previous, state)) || !find_end(stack, frame, &last, &outer) ||
		    last - cframe + CSINK_PYTHON_NEAR >= 2 * CSINK_PYTHON_NEAR ||
		    !leads_on(stack, state, previous, outer))
			return false;
	}
	for (uint32_t nr = 0; frame && frame != CSINK_PYTHON_UNKNOWN && !stack->is_full; frame = outer) {
		if (nr++ == CSINK_PYTHON_MAX_CHAIN || !find_end(stack, frame, &last, &outer) ||
		    !put_frames(stack, frame, last, outer == CSINK_PYTHON_UNKNOWN ? outer : last))
			return false;
	}
	stack->is_full |= frame != 0;
	return true;
}

/* ---- one frame each: to 3.10 ---- */

static uint32_t count_links(struct csink_python_stack *stack, uint64_t from, uint16_t link, uint64_t state)
{
	uint32_t nr = 0;

	while (from && !is_root(from, state) && nr < CSINK_PYTHON_MAX_CHAIN && load(stack, from + link, &from))
		nr++;
	return nr;
}

/* 3.10: CFrames and frames are two lists of equal length, except while the newest CFrame's frame is not linked. */
static bool walk_cframes(struct csink_python_stack *stack, uint64_t state)
{
	const struct csink_python_layout *layout = stack->object->layout;
	uint32_t nr_frames, nr_cframes;
	uint64_t frame, cframe;

	if (!load_newest(stack, state + CSINK_PYTHON_STATE_FRAME, &frame) ||
	    !load_newest(stack, state + layout->newest, &cframe))
		return false;
	nr_cframes = count_links(stack, cframe, layout->cframe_previous, state);
	nr_frames = count_links(stack, frame, layout->previous, state);
	for (; nr_cframes > nr_frames; nr_cframes--) {
		if (!load(stack, cframe + layout->cframe_previous, &cframe))
			return false;
	}
	for (; frame && !stack->is_full; nr_frames--) {
		if (!put_frame(stack, frame))
			return false;
		put_group(stack, nr_frames > nr_cframes ? 0 : cframe);
		if (nr_frames == nr_cframes && nr_cframes) {
			nr_cframes--;
			if (!load(stack, cframe + layout->cframe_previous, &cframe))
				return false;
		}
		if (!load(stack, frame + layout->previous, &frame))
			return false;
	}
	return true;
}

static bool walk_frames(struct csink_python_stack *stack, uint64_t state)
{
	uint64_t frame;

	if (!load_newest(stack, state + CSINK_PYTHON_STATE_FRAME, &frame))
		return false;
	while (frame && !stack->is_full) {
		if (!put_frame(stack, frame) || !load(stack, frame + stack->object->layout->previous, &frame))
			return false;
		put_group(stack, 0);
	}
	return true;
}

int csink_python_walk(struct csink_python_stack *stack, const struct csink_python *object, struct csink_remote *remote,
		      uint64_t state)
{
	static bool (*const walks[])(struct csink_python_stack *, uint64_t) = {
		[CSINK_PYTHON_COUNT] = walk_frames,
		[CSINK_PYTHON_CFRAME] = walk_cframes,
		[CSINK_PYTHON_ENTRY] = walk_entries,
		[CSINK_PYTHON_SHIM] = walk_shims,
	};

	stack->object = object;
	stack->remote = remote;
	stack->nr_frames = stack->nr_groups = stack->nr_newest = 0;
	stack->is_full = false;
	return walks[object->layout->chain](stack, state) ? 0 : -EAGAIN;
}
