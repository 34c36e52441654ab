/*
 * Who is right, where two walkers differ: decided by the program's own instructions. Between one and the next, callers
 * change in a few ways only: a call adds one, a return takes away the one that it goes to, all others leave them as
 * they are. So from a walk that both agree on follows what the walks at the instructions before and after it must be,
 * whatever the walkers find there.
 */
#ifndef CSINK_TESTS_VERDICT_H
#define CSINK_TESTS_VERDICT_H

#include "include/internal/recording_format.h"
#include "tests/diff/walk_diff.h"

#include <stdbool.h>
#include <string.h>

/* What a walk says of one instant: where the program was, and its callers. */
struct instant {
	uint64_t pc;
	uint32_t nr;
	uint64_t frames[CSINK_MAX_DEPTH];
};

/* What waits for its verdict: a difference; or a walk that both agree on, but for want of tables had to guess. */
struct pending {
	uint32_t record, class;
	bool complete;        /* as ours says */
	bool is_appeal;       /* where the breakpoint of appeal.h was */
	bool leads;           /* nothing before it in its burst was agreed on */
	uint64_t slot;        /* of appeal.h */
	struct instant by[2]; /* ours, libunwind's */
};

enum step_kind { STEP_PLAIN, STEP_CALL, STEP_RETURN, STEP_JUMP, STEP_SWITCH };

/* By its opcode, after prefixes. */
static enum step_kind step_kind(uint64_t pc)
{
	const unsigned char *code = (const unsigned char *)pc;
	unsigned int rex = 0, reg, rm;

	for (; (*code >= 0x40 && *code <= 0x4f) || *code == 0xf2 || *code == 0xf3 || *code == 0x3e || *code == 0x66;
	     code++)
		rex = *code >= 0x40 && *code <= 0x4f ? *code : 0;
	reg = (code[1] >> 3 & 7) | (rex & 4) << 1;
	rm = (code[1] & 7) | (rex & 1) << 3;
	switch (*code) {
	case 0xe8:
		return STEP_CALL;
	case 0xc2:
	case 0xc3:
		return STEP_RETURN;
	case 0xff:
		return (reg & 7) == 2 ? STEP_CALL : (reg & 7) == 4 ? STEP_JUMP : STEP_PLAIN;
	case 0x89: /* to the stack pointer, but from the frame pointer: another stack, as longjmp and exceptions have it
		    */
		return code[1] >= 0xc0 && rm == 4 && reg != 5 ? STEP_SWITCH : STEP_PLAIN;
	case 0x8b:
		return reg == 4 && !(code[1] >= 0xc0 && rm == 5) ? STEP_SWITCH : STEP_PLAIN;
	default:
		return STEP_PLAIN;
	}
}

static bool same_instant(const struct instant *a, const struct instant *b)
{
	return a->nr == b->nr && !memcmp(a->frames, b->frames, a->nr * sizeof(*a->frames));
}

static void push(struct instant *at, uint64_t caller)
{
	if (at->nr == CSINK_MAX_DEPTH)
		at->nr--;
	memmove(at->frames + 1, at->frames, at->nr++ * sizeof(*at->frames));
	at->frames[0] = caller;
}

static void pop(struct instant *at)
{
	if (!at->nr)
		return;
	memmove(at->frames, at->frames + 1, --at->nr * sizeof(*at->frames));
}

/* What is true of the instant that has *p, where the one before has *truth. False: it cannot be known. */
static bool follow(struct instant *truth, const struct pending *p)
{
	uint64_t from = truth->pc, to = p->by[0].pc, ra = p->by[0].nr ? p->by[0].frames[0] : 0;
	bool returned = truth->nr && truth->frames[0] == to;

	truth->pc = to;
	switch (step_kind(from)) {
	case STEP_CALL:
		push(truth, ra);
		return ra - from - 2 < 14; /* no call is shorter, none longer */
	case STEP_RETURN:
		pop(truth);
		return returned;
	case STEP_JUMP: /* a tail call, or what longjmp and coroutines return by */
		if (returned)
			pop(truth);
		return true;
	case STEP_SWITCH:
		return false;
	case STEP_PLAIN:
		break;
	}
	return true;
}

/* The same, backwards: *truth is of the instant after. */
static bool trace_back(struct instant *truth, const struct pending *p)
{
	uint64_t to = truth->pc;
	uint64_t caller = p->by[0].nr ? p->by[0].frames[0] : 0;
	bool returns =
		(caller & ~CSINK_FRAME_EXACT) == to; /* exact: the handler of an exception, which no frame called */

	truth->pc = p->by[0].pc;
	switch (step_kind(truth->pc)) {
	case STEP_CALL:
		if (!truth->nr)
			return false;
		pop(truth);
		return true;
	case STEP_RETURN:
		push(truth, returns ? caller : to);
		return true;
	case STEP_JUMP:
		if (returns)
			push(truth, caller);
		return true;
	case STEP_SWITCH: /* what is on the way to another stack may say so */
	case STEP_PLAIN:
		break;
	}
	return true;
}

/* All frames of one, in their order, among those of the other. */
static bool is_part_of(const struct instant *part, const struct instant *all)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < all->nr && found < part->nr; i++)
		found += part->frames[found] == all->frames[i];
	return found == part->nr;
}

static enum walk_diff_verdict judge(const struct pending *p, const struct instant *truth)
{
	if (same_instant(&p->by[0], truth))
		return VERDICT_OURS;
	if (same_instant(&p->by[1], truth))
		return VERDICT_LIBUNWIND;
	return !p->complete && is_part_of(&p->by[0], truth) ? VERDICT_CUT : VERDICT_NEITHER;
}

#endif
