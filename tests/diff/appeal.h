/*
 * The last resort where no walk near is agreed on: let the program return. Where libunwind gives up at a caller and
 * ours goes on beyond it, a breakpoint is put where that caller goes on. Until it is reached, by that very return, the
 * callers beyond it are what they were; and there, a few instructions more bring the program to where both agree.
 */
#ifndef CSINK_TESTS_APPEAL_H
#define CSINK_TESTS_APPEAL_H

#include "tests/diff/verdict.h"

#include <fcntl.h>
#include <unistd.h>

#define MAX_APPELLANTS 4096

static struct {
	bool open, is_set;                            /* one waits; its breakpoint is there */
	uint64_t at, slot;                            /* the breakpoint, and where on the stack its address lies */
	unsigned char instead;                        /* of the code's byte */
	struct instant beyond;                        /* the callers that ours has there */
	uint32_t nr_records, records[MAX_APPELLANTS]; /* of the differences that wait */
	enum walk_diff_class classes[MAX_APPELLANTS];
} appeal;

/* Text cannot be written otherwise. Opened each time: a child of the program's has a memory of its own. */
static bool poke(unsigned char byte)
{
	int fd = open("/proc/self/mem", O_WRONLY | O_CLOEXEC);
	bool done = fd >= 0 && pwrite(fd, &byte, 1, (off_t)appeal.at) == 1;

	if (fd >= 0)
		close(fd);
	return done;
}

static void set_breakpoint(bool set)
{
	appeal.is_set = poke(set ? 0xcc : appeal.instead) && set;
}

/* The one word between two places of the stack that has this value: 0 if there is none, or another. */
static uint64_t only_slot(uint64_t from, uint64_t to, uint64_t value)
{
	uint64_t found = 0;

	for (uint64_t at = from & ~7ULL; at < to; at += 8)
		if (*(const uint64_t *)at == value) {
			if (found)
				return 0;
			found = at;
		}
	return found;
}

/* What ours has of a difference beyond the frames of libunwind's. */
static bool callers_beyond(const struct pending *p, struct instant *beyond)
{
	const struct instant *ours = &p->by[0], *other = &p->by[1];

	if (!other->nr || other->nr >= ours->nr || memcmp(ours->frames, other->frames, other->nr * sizeof(uint64_t)))
		return false;
	beyond->pc = other->frames[other->nr - 1];
	beyond->nr = ours->nr - other->nr;
	memcpy(beyond->frames, ours->frames + other->nr, beyond->nr * sizeof(uint64_t));
	return !(beyond->pc & CSINK_FRAME_EXACT);
}

/* Where on the stack the address lies that an appeal of @p would wait at; 0: it cannot appeal. */
static uint64_t find_slot(const struct pending *p, uint64_t sp, uint64_t high)
{
	static struct instant beyond;

	return sp < high && callers_beyond(p, &beyond) ? only_slot(sp, high, beyond.pc) : 0;
}

/* Returns whether @p now waits. */
static bool lodge_appeal(const struct pending *p)
{
	static struct instant beyond;

	if (!p->slot || !callers_beyond(p, &beyond) || appeal.nr_records == MAX_APPELLANTS ||
	    *(const uint64_t *)p->slot != beyond.pc)
		return false;
	if (appeal.open && (p->slot != appeal.slot || beyond.pc != appeal.at || !same_instant(&beyond, &appeal.beyond)))
		return false;
	if (!appeal.open) {
		appeal.at = beyond.pc;
		appeal.slot = p->slot;
		appeal.instead = *(const unsigned char *)appeal.at;
		appeal.beyond = beyond;
		set_breakpoint(true);
		appeal.open = appeal.is_set;
	}
	if (!appeal.open)
		return false;
	appeal.records[appeal.nr_records] = p->record;
	appeal.classes[appeal.nr_records++] = p->class;
	return true;
}

enum stop { STOP_ELSEWHERE, STOP_OTHER_RETURN, STOP_REACHED };

/* After a trap: is it the breakpoint's? Then the program's instruction is there again, and is to be run. */
static enum stop stopped_at(uint64_t *pc, uint64_t sp)
{
	if (!appeal.is_set || *pc != appeal.at + 1)
		return STOP_ELSEWHERE;
	--*pc;
	set_breakpoint(false);
	return sp == appeal.slot + 8 ? STOP_REACHED : STOP_OTHER_RETURN;
}

/* What the truth at the breakpoint makes of those that waited. */
static enum walk_diff_verdict judge_appeal(const struct instant *truth)
{
	return same_instant(truth, &appeal.beyond) ? VERDICT_OURS : VERDICT_NEITHER;
}

#endif
