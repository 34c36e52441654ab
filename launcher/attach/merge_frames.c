/* See merge_frames.h. */
#include "launcher/attach/merge_frames.h"

#include "include/internal/base.h"

static bool is_evaluator(const struct csink_python *python, uint64_t pc)
{
	return pc - python->evaluator < python->evaluator_end - python->evaluator;
}

/* A caller's address is the one after its call. */
static bool is_evaluators(const struct csink_python *python, uint64_t frame)
{
	return is_evaluator(python, frame & CSINK_FRAME_EXACT ? frame & ~CSINK_FRAME_EXACT : frame - 1);
}

bool csink_has_evaluator(const struct csink_native_stack *native, const struct csink_python *python)
{
	bool has = is_evaluator(python, native->leaf);

	for (uint32_t i = 0; i < native->nr && !has; i++)
		has = is_evaluators(python, native->frames[i]);
	return has;
}

/*
 * Groups without records: the outermost one was run by the outermost call of the evaluator, and so on inwards. The
 * innermost call may have no group: its frame is not linked yet, or not any more. Where the outer end of the groups or
 * of the native stack is missing, the innermost group was run by the innermost call, and so on outwards. Returns
 * whether there are more groups than C code can have added.
 */
static bool pair_by_count(const struct csink_native_stack *native, const struct csink_python *python,
			  struct csink_attach_read *read)
{
	uint64_t calls[CSINK_MAX_DEPTH + 1]; /* an address in the native frame of each, innermost first */
	bool is_whole = native->is_whole && !read->is_full;
	int32_t nr = 0, call;

	if (is_evaluator(python, native->leaf))
		calls[nr++] = native->sp;
	for (uint32_t i = 0; i < native->nr; i++) {
		if (is_evaluators(python, native->frames[i]))
			calls[nr++] = native->cfas[i];
	}
	for (uint32_t group = 0; group < read->nr_groups; group++) {
		/* More groups than calls: those without one join the innermost call. */
		call = (int32_t)group;
		if (is_whole)
			call = CSINK_MAX(call + nr - (int32_t)read->nr_groups, 0);
		read->groups[group].record = call < nr ? calls[call] : UINT64_MAX;
	}
	/* One more: C code may have linked a frame itself. */
	return is_whole && (int32_t)read->nr_groups > nr + 1;
}

/* A group whose record is not known is that of the evaluator's next call outwards. */
static void find_records(const struct csink_native_stack *native, const struct csink_python *python,
			 struct csink_attach_read *read)
{
	uint64_t last = native->sp; /* the record of the group inwards */

	for (uint32_t group = 0; group < read->nr_groups; last = read->groups[group++].record) {
		uint64_t *record = &read->groups[group].record;

		if (*record == CSINK_PYTHON_UNKNOWN && !group && is_evaluator(python, native->leaf))
			*record = native->sp;
		for (uint32_t i = 0; i < native->nr && *record == CSINK_PYTHON_UNKNOWN; i++) {
			if (native->cfas[i] > last && is_evaluators(python, native->frames[i]))
				*record = native->cfas[i];
		}
	}
}

struct merge {
	const struct csink_attach_read *read;
	uint32_t group; /* the next one to put */
	uint64_t *to;
	uint32_t nr, max;
	bool is_cut;
};

static void put(struct merge *m, uint64_t frame)
{
	if (m->nr < m->max)
		m->to[m->nr++] = frame;
	else
		m->is_cut = true;
}

/* @flag  CSINK_FRAME_EVALUATED if the native frame that was put last is its evaluator's, else 0. */
static void put_group(struct merge *m, uint64_t flag)
{
	const struct csink_python_group *group = &m->read->groups[m->group++];

	for (uint32_t i = 0; i < group->nr; i++, flag = 0)
		put(m, m->read->frames[group->first + i] | flag);
}

uint32_t csink_merge_frames(const struct csink_native_stack *native, const struct csink_python *python,
			    struct csink_attach_read *read, bool replaces, uint64_t *to, uint32_t max,
			    struct csink_merge_faults *faults)
{
	struct merge m = {.read = read, .to = to, .max = max};
	const struct csink_python_group *groups = read->groups;

	*faults = (struct csink_merge_faults){0};
	if (python->layout->chain == CSINK_PYTHON_COUNT)
		faults->is_broken = pair_by_count(native, python, read);
	else
		find_records(native, python, read);
	/* In order of address. Native frame i lies between cfas[i] and cfas[i + 1], the leaf below cfas[0]. */
	for (uint32_t i = 0; i < native->nr; i++) {
		uint64_t flag = replaces ? CSINK_FRAME_EVALUATED : 0;

		for (; m.group < read->nr_groups && groups[m.group].record < native->cfas[i]; flag = 0)
			put_group(&m, groups[m.group].record >= native->sp ? flag : 0);
		put(&m, native->frames[i]);
	}
	/* Groups above the point where the native walk broke off. */
	while (m.group < read->nr_groups)
		put_group(&m, 0);
	faults->is_cut = m.is_cut || read->is_full;
	return m.nr;
}
