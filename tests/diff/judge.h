/*
 * Of walk_diff.so: the walks of a burst that wait for their verdicts, and what is written down of them. Verdicts come
 * from verdict.h, or in the end from appeal.h.
 */
#ifndef CSINK_TESTS_JUDGE_H
#define CSINK_TESTS_JUDGE_H

#include "preload/agent/unwind/unwind.h"
#include "tests/diff/appeal.h"

/* Differences in a row, and instructions stepped beyond a burst in search of a walk that is agreed on. */
#define MAX_PENDING 4096

static struct walk_diff *diff;
static struct csink_stack_bounds stack;
/* Of this burst: the last walk that is known to be right, and the differences since, that wait for the next one. */
static struct instant agreed;
static struct pending pending[MAX_PENDING];
static uint32_t nr_pending, nr_waiting; /* so many of them are differences */

/* ---- records ----------------------------------------------------------------------------------------------------- */

static void keep_maps(void)
{
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	size_t done = 0;
	ssize_t n;

	while (fd >= 0 && done < sizeof(diff->maps) - 1 &&
	       (n = read(fd, diff->maps + done, sizeof(diff->maps) - 1 - done)) > 0)
		done += (size_t)n;
	diff->maps[done] = 0;
	close(fd);
}

/* Returns the record's number, DIFF_RECORDS if there is no room. */
static uint32_t record(enum walk_diff_class class, uint64_t pc, const struct csink_walk *walks, uint32_t at)
{
	uint32_t from = at > 4 ? at - 4 : 0;
	struct walk_diff_record *r;

	for (uint32_t i = 0; i < diff->nr_records; i++)
		if (diff->records[i].pc == pc && diff->records[i].class == class) {
			diff->records[i].times++;
			return i;
		}
	/* guesses are many; they must not crowd out what matters */
	if (diff->nr_records == DIFF_RECORDS ||
	    ((class == DIFF_UNTABLED || class == DIFF_GUESS) && diff->nr_records > DIFF_RECORDS / 4))
		return DIFF_RECORDS;
	r = &diff->records[diff->nr_records];
	*r = (struct walk_diff_record){.pc = pc, .times = 1, .class = class, .at = at};
	for (int w = 0; w < 2; w++) {
		r->nr[w] = walks[w].nr_frames;
		r->end[w] = walks[w].end;
		for (uint32_t i = from; i < walks[w].nr_frames && i - from < DIFF_FRAMES_KEPT; i++)
			r->frames[w][i - from] = walks[w].frames[i];
	}
	keep_maps();
	return diff->nr_records++;
}

/* ---- verdicts ---------------------------------------------------------------------------------------------------- */

static bool is_complete(const struct csink_walk *walk)
{
	return walk->end == CSINK_WALK_COMPLETE || walk->end == CSINK_WALK_DEPTH;
}

static void note_instant(struct instant *to, uint64_t pc, const struct csink_walk *walk)
{
	to->pc = pc;
	to->nr = walk->nr_frames;
	memcpy(to->frames, walk->frames, walk->nr_frames * sizeof(*walk->frames));
}

static void pass_verdict(enum walk_diff_class class, uint32_t record, enum walk_diff_verdict verdict)
{
	/* what both agree on needs none; refuted, it is worth to be known */
	if (class == DIFF_SAME && verdict < VERDICT_CUT)
		return;
	diff->verdicts[class][verdict]++;
	if (record < DIFF_RECORDS)
		diff->records[record].verdicts[verdict]++;
}

/* What both agree on, and is not true: beside the truth instead of libunwind's. */
static uint32_t record_refuted(const struct pending *p, enum walk_diff_verdict verdict, const struct instant *truth)
{
	struct csink_walk walks[2] = {
		{.frames = (uint64_t *)p->by[0].frames, .nr_frames = p->by[0].nr},
		{.frames = (uint64_t *)truth->frames, .nr_frames = truth->nr},
	};

	return verdict < VERDICT_CUT ? DIFF_RECORDS : record(DIFF_SAME, p->by[0].pc, walks, 0);
}

/*
 * @between  the program is about to leave for another stack, as libgcc does for an exception's handler: what it has at
 * the moment is not known from what comes after. Who meets it there first cannot judge, so that walk does not count.
 */
static void settle(const struct pending *p, enum walk_diff_verdict verdict, const struct instant *truth, bool between)
{
	if (p->is_appeal) {
		verdict = verdict == VERDICT_NONE ? verdict : judge_appeal(truth);
		for (uint32_t i = 0; i < appeal.nr_records; i++)
			pass_verdict(appeal.classes[i], appeal.records[i], verdict);
		appeal.open = false;
		appeal.nr_records = 0;
	} else if (verdict == VERDICT_NONE && p->leads && between) {
		diff->counts[p->class]--;
		diff->nr_ahead++;
	} else if (verdict != VERDICT_NONE || p->class == DIFF_SAME || !lodge_appeal(p)) {
		pass_verdict(p->class, p->class == DIFF_SAME ? record_refuted(p, verdict, truth) : p->record, verdict);
	}
}

/* Right by what was before or by what came after: between stacks, as in longjmp, either may be said. */
static enum walk_diff_verdict either(enum walk_diff_verdict a, enum walk_diff_verdict b)
{
	for (enum walk_diff_verdict v = VERDICT_OURS; v < NR_VERDICTS; v++)
		if (a == v || b == v)
			return v;
	return VERDICT_NONE;
}

/* By what came after. Beyond a switch of stacks that confirms, but does not refute. */
static enum walk_diff_verdict judge_back(const struct pending *p, const struct instant *truth, bool between)
{
	enum walk_diff_verdict verdict = judge(p, truth);

	return between && verdict > VERDICT_LIBUNWIND ? VERDICT_NONE : verdict;
}

/* The burst is over, or both agree again (@after). */
static void judge_all(const struct instant *after)
{
	static struct instant truth;
	static enum walk_diff_verdict verdicts[MAX_PENDING];
	/* rules may already be those of the other stack at the switch itself */
	bool known = agreed.nr > 0, between = after && step_kind(after->pc) == STEP_SWITCH;

	truth = agreed;
	for (uint32_t i = 0; i < nr_pending; i++) {
		known = known && follow(&truth, &pending[i]);
		verdicts[i] = known ? judge(&pending[i], &truth) : VERDICT_NONE;
	}
	known = after != NULL;
	if (known)
		truth = *after;
	for (uint32_t i = nr_pending; i-- > 0;) {
		known = known && trace_back(&truth, &pending[i]);
		between |= step_kind(pending[i].by[0].pc) == STEP_SWITCH;
		if (known)
			verdicts[i] = either(verdicts[i], judge_back(&pending[i], &truth, between));
		settle(&pending[i], verdicts[i], &truth, between);
	}
	nr_pending = nr_waiting = 0;
}

/* What is known is not of the instruction before this one. */
static void lose_track(void)
{
	judge_all(NULL);
	agreed.nr = 0;
}

static void wait_for_verdict(enum walk_diff_class class, uint32_t record, uint64_t pc, const struct csink_walk *ours,
			     const struct csink_walk *other, uint64_t sp)
{
	struct pending *p = &pending[nr_pending];

	if (nr_pending == MAX_PENDING) {
		lose_track();
		p = pending;
	}
	p->record = record;
	p->class = class;
	p->complete = is_complete(ours);
	p->is_appeal = false;
	p->leads = agreed.nr == 0;
	note_instant(&p->by[0], pc, ours);
	note_instant(&p->by[1], pc, other);
	p->slot = class == DIFF_SAME ? 0 : find_slot(p, sp, stack.high);
	nr_pending++;
	nr_waiting += class != DIFF_SAME;
}

/* The appeal's return was reached, and waits for a walk that is agreed on. */
static bool is_heard(void)
{
	for (uint32_t i = 0; i < nr_pending; i++)
		if (pending[i].is_appeal)
			return true;
	return false;
}

/* The program returned to where an appeal waits for it. */
static void hear_appeal(const struct csink_walk *ours, uint64_t pc, bool is_agreed)
{
	struct pending *p;

	wait_for_verdict(DIFF_SAME, DIFF_RECORDS, pc, ours, ours, 0);
	p = &pending[nr_pending - 1];
	p->is_appeal = true;
	nr_waiting++;
	if (is_agreed) {
		settle(p, VERDICT_OURS, &p->by[0], false);
		nr_pending = nr_waiting = 0; /* it was the first of its burst */
	}
}

#endif
