/* Rows of Go's functions, and steps over those that go from stack to stack: see go_frames.h. In handlers of all
 * threads; async-signal-safe, but for what is called init. */
#include "preload/agent/unwind/go_frames.h"

#include <string.h>

#include "preload/agent/unwind/walk_step.h"

/* What is done where a frame is not plain. */
enum csink_go_way {
	GO_INTERRUPTED, /* plain, but what called is an interrupted instruction */
	GO_BY_FP,       /* the frame pointer leads to the other stack */
	GO_BY_CALLER,   /* there is no frame: the caller's, whose frame pointer is kept, is searched for the call */
	GO_BY_CALL,     /* the same, for a function that is called before its caller has a frame */
	GO_BY_DEPTH,    /* the runtime has written down how deep the goroutine's stack was */
};

/* ---- rows -------------------------------------------------------------------------------------------------------- */

#if defined(__x86_64__)
/* A function keeps its caller's frame pointer below the return address, if it has a frame. */
static csink_row_t plain(int32_t offset)
{
	return csink_row_make(offset >= 8 ? CSINK_ROW_SAVED : 0, 0, 0, offset >= 8 ? -16 : -8, (int64_t)offset + 8);
}

static csink_row_t switching(const struct csink_go_rule *rule)
{
	enum csink_go_way way = GO_BY_CALLER;

	if (rule->role & CSINK_GO_CALLS_C)
		way = GO_BY_DEPTH;
	else if (rule->role & CSINK_GO_GROWS)
		way = GO_BY_CALL;
	else if (rule->offset >= 8)
		way = GO_BY_FP;
	return csink_row_make(CSINK_ROW_GO, way, 0, 0, (int64_t)rule->offset + 8);
}
#elif defined(__aarch64__)
/* A function keeps its return address at its stack pointer and the caller's frame pointer below it, if it has a frame.
 */
static csink_row_t plain(int32_t offset)
{
	if (!offset)
		return csink_row_make(CSINK_ROW_LEAF, CSINK_REG_SP, 0, 0, 0);
	if (-(int64_t)offset < INT16_MIN)
		return csink_row_untabled(0, true);
	return csink_row_make(CSINK_ROW_SAVED, 0, -1, -(int64_t)offset, offset);
}

/* By frame pointer, as other code without tables. */
static csink_row_t switching(const struct csink_go_rule *rule)
{
	(void)rule;
	return csink_row_untabled(0, true);
}
#endif

bool csink_go_row(uintptr_t pc, bool exact, csink_row_t *row)
{
	struct csink_module module;
	struct csink_go_table table;
	struct csink_go_rule rule;

	if (!csink_modules_find(exact ? pc : pc - 1, &module) || !csink_go_module_open(&module, &table))
		return false;
	/* No call is before a function's first instruction: the way back from a signal may be there. */
	if (!exact && csink_go_rule_at(&table, pc, &rule) && rule.start == pc)
		return false;
	if (!csink_go_rule_at(&table, exact ? pc : pc - 1, &rule))
		return false;
	if (rule.role & CSINK_GO_OUTERMOST && !(rule.role & CSINK_GO_HANDLES))
		*row = csink_row_make(CSINK_ROW_END, 0, 0, 0, 0);
	else if (rule.role & CSINK_GO_RETURNS)
		*row = CSINK_ROW_SIGNAL;
	else if (rule.role & CSINK_GO_SWITCHES)
		*row = switching(&rule);
	else if (rule.role & CSINK_GO_INTERRUPTS)
		*row = csink_row_make(CSINK_ROW_GO, GO_INTERRUPTED, 0, 0, (int64_t)rule.offset + 8);
	else
		*row = plain(rule.offset);
	return true;
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

#if defined(__x86_64__)
/* The caller that a step has found. */
struct caller {
	uint64_t pc, sp, fp;
	bool exact;
};

/* How far what is searched for may be, and how far from its beginning a function may be that is called by name. */
enum { MAX_FRAME_WORDS = 8192, MAX_NEARBY = 1024 };

/* A direct call of the function that pc is in is before the address, in the object's own code. */
static bool is_call_to(const struct csink_module *module, uint64_t ra, uint64_t pc)
{
	int32_t distance;

	if (ra < module->start + 5 || ra >= module->end || *(const uint8_t *)(ra - 5) != 0xe8)
		return false;
	memcpy(&distance, (const void *)(ra - 4), sizeof(distance));
	return pc - (ra + (uint64_t)(int64_t)distance) + MAX_NEARBY < 2UL * MAX_NEARBY;
}

static bool by_offset(struct csink_walker *w, csink_row_t row, struct caller *caller)
{
	uint64_t slot = w->sp + (uint64_t)csink_row_cfa_offset(row) - 8;

	*caller = (struct caller){.sp = slot + 8, .fp = w->fp};
	if (!csink_walker_load(w, slot, &caller->pc))
		return false;
	if (csink_row_cfa_offset(row) >= 16)
		csink_walker_load(w, slot - 8, &caller->fp);
	return true;
}

static bool by_fp(struct csink_walker *w, struct caller *caller)
{
	*caller = (struct caller){.sp = w->fp + 16};
	return w->fp % 8 == 0 && csink_walker_load(w, w->fp, &caller->fp) &&
	       csink_walker_load(w, w->fp + 8, &caller->pc);
}

/* Bytes of code, and behind them a number of one byte, or of four; where the next instruction is. 0: they are others.
 */
static uint32_t code_is(const uint8_t *code, const char *bytes, uint32_t nr, uint32_t nr_number, int32_t *number)
{
	if (memcmp(code, bytes, nr) != 0)
		return 0;
	*number = (code[nr] ^ 0x80) - 0x80; /* signed */
	if (nr_number == 4)
		memcpy(number, code + nr, sizeof(*number));
	return nr + nr_number;
}

/* The code's way to the thread-local variable that has the goroutine: its offset; where the next instruction is. */
static uint32_t take_offset(struct csink_walker *w, const uint8_t *code, int64_t *offset)
{
	int32_t number = 0;
	uint64_t word;
	uint32_t at;

	if ((at = code_is(code, "\x64\x48\x8b\x04\x25", 5, 4, &number))) { /* mov %fs:N, %rax */
		*offset = number;
		return at;
	}
	if ((at = code_is(code, "\x48\xc7\xc1", 3, 4, &number))) { /* mov $N, %rcx */
		*offset = number;
	} else if ((at = code_is(code, "\x48\x8b\x0d", 3, 4, &number))) { /* mov N(%rip), %rcx */
		if (!csink_walker_load(w, (uintptr_t)code + at + (uintptr_t)(intptr_t)number, &word))
			return 0;
		*offset = (int64_t)word;
	}
	return at && !memcmp(code + at, "\x64\x48\x8b\x01", 4) ? at + 4 : 0; /* mov %fs:(%rcx), %rax */
}

/*
 * Where the runtime has saved the registers of the goroutine that this thread runs: its stack pointer, then its program
 * counter. A goroutine's stack may be moved while the thread is on its own one; frame pointers then lead to where it
 * was, and what is saved to where it is. The way there differs between versions of Go. It is in the code that goes back
 * from the thread's stack: the goroutine that the thread is on, the thread's record, the goroutine that the record is
 * of, and its stack pointer. @code: readable for CODE_BYTES.
 */
enum { CODE_BYTES = 64, MAX_BETWEEN = 16 };

static bool find_saved(struct csink_walker *w, const uint8_t *code, uint64_t *saved)
{
	int32_t thread, running, stack_pointer = 0;
	int64_t offset = 0;
	uint32_t at, next;
	uint64_t self;

	if (!(at = take_offset(w, code, &offset)) ||
	    !(next = code_is(code + at, "\x48\x8b\x58", 3, 1, &thread))) /* mov N(%rax), %rbx */
		return false;
	at += next;
	if (!(next = code_is(code + at, "\x48\x8b\x83", 3, 4, &running)) && /* mov N(%rbx), %rax */
	    !(next = code_is(code + at, "\x48\x8b\x43", 3, 1, &running)))
		return false;
	at += next;
	for (uint32_t end = at + MAX_BETWEEN; at < end && !stack_pointer; at++)
		code_is(code + at, "\x48\x8b\x60", 3, 1, &stack_pointer); /* mov N(%rax), %rsp */
	if (!stack_pointer)
		return false;
	__asm__("mov %%fs:0, %0" : "=r"(self));
	if (!csink_walker_load(w, self + (uint64_t)offset, saved) ||
	    !csink_walker_load(w, *saved + (uint64_t)(int64_t)thread, saved) ||
	    !csink_walker_load(w, *saved + (uint64_t)(int64_t)running, saved))
		return false;
	*saved += (uint64_t)(int64_t)stack_pointer;
	return true;
}

/* The frame pointer in a function that has saved its caller's, given where the function's part of the stack begins. */
static uint64_t fp_of(const struct csink_walker *w, uint64_t pc, uint64_t sp, uint64_t otherwise)
{
	csink_row_t row = csink_row_find(pc, false, w->mix);

	return csink_row_kind(row) == CSINK_ROW_SAVED ? sp + (uint64_t)csink_row_cfa_offset(row) - 16 : otherwise;
}

/* The function goes back by what was saved when it was called. */
static bool by_saved(struct csink_walker *w, csink_row_t row, const struct csink_module *module, struct caller *caller)
{
	uint64_t slot;

	if (w->pc < module->start || w->pc + CODE_BYTES > module->end ||
	    !find_saved(w, (const uint8_t *)w->pc, &slot) || !csink_walker_load(w, slot, &slot))
		return false;
	slot += (uint64_t)csink_row_cfa_offset(row) - 8;
	*caller = (struct caller){.sp = slot + 8};
	if (!csink_walker_load(w, slot, &caller->pc) || !is_call_to(module, caller->pc, w->pc))
		return false;
	caller->fp = fp_of(w, caller->pc, caller->sp, w->fp);
	return true;
}

/* The function has saved the registers of its caller, which has no frame yet. A function that goes back is before it.
 */
static bool by_saved_caller(struct csink_walker *w, const struct csink_module *module, struct caller *caller)
{
	enum { MAX_BEFORE = 512 };
	uint64_t saved, ra;

	for (uint64_t at = w->pc; w->pc - at < MAX_BEFORE && at >= module->start + 2; at--) {
		const uint8_t *code = (const uint8_t *)at;

		if (code[-2] != 0xff || code[-1] != 0xd7 || at + CODE_BYTES > module->end ||
		    !find_saved(w, code, &saved))
			continue;
		*caller = (struct caller){.fp = w->fp};
		if (saved < 4096) /* the thread runs none any more: that is the end */
			return true;
		if (!csink_walker_load(w, saved, &caller->sp) || !csink_walker_load(w, saved + 8, &caller->pc) ||
		    !is_call_to(module, caller->pc, w->pc) || !csink_walker_load(w, caller->sp, &ra))
			return false;
		caller->fp = fp_of(w, ra, caller->sp + 8, w->fp);
		return true;
	}
	return false;
}

/* The caller's frame ends with the frame pointer that it saved, and begins above the return address: by Go's table, it
 * is so large. */
static bool is_frame_of(const struct csink_walker *w, uint64_t ra, uint64_t sp)
{
	csink_row_t row = csink_row_find(ra, false, w->mix);

	return csink_row_kind(row) == CSINK_ROW_SAVED && sp + (uint64_t)csink_row_cfa_offset(row) == w->fp + 16;
}

/* @below: what called has no frame yet, only the return address of its own. */
static bool by_search(struct csink_walker *w, const struct csink_module *module, bool below, struct caller *caller)
{
	uint64_t last = 0, called, ra;

	if (w->fp % 8)
		return false;
	for (uint64_t at = w->fp - 8; w->fp - at <= 8 * MAX_FRAME_WORDS; at -= 8) {
		if (!csink_walker_load(w, at, &called))
			return false;
		ra = below ? last : called;
		last = called;
		if (is_call_to(module, called, w->pc) && ra > module->start && ra < module->end &&
		    is_frame_of(w, ra, at + (below ? 16 : 8))) {
			*caller = (struct caller){.pc = called, .sp = at + 8, .fp = w->fp};
			return true;
		}
	}
	return false;
}

/*
 * Before it calls C, the runtime writes the goroutine and the depth of its stack to the thread's stack; on a stack of
 * the thread already, none and the stack pointer. Go before 1.21 does so above five words.
 */
static bool by_depth(struct csink_walker *w, const struct csink_module *module, struct caller *caller)
{
	for (int i = 0; i < 2; i++) {
		uint64_t at = w->sp + (i ? 40 : 0), depth, goroutine, low, high;

		if (!csink_walker_load(w, at, &depth) || !csink_walker_load(w, at + 8, &goroutine))
			continue;
		*caller = (struct caller){.sp = depth + 8, .fp = w->fp};
		if (goroutine) {
			if (goroutine % 8 || !csink_walker_load(w, goroutine, &low) ||
			    !csink_walker_load(w, goroutine + 8, &high) || depth > high - low)
				continue;
			caller->sp = high - depth + 8;
		}
		if (csink_walker_load(w, caller->sp - 8, &caller->pc) && is_call_to(module, caller->pc, w->pc))
			return true;
	}
	return false;
}

/* The thread has left the goroutine for others: its stack is not what it was. */
static bool has_left(const struct csink_walker *w, const struct csink_module *module)
{
	struct csink_go_table table;
	struct csink_go_rule rule;
	bool left = false;

	if (csink_go_module_open(module, &table))
		for (uint32_t i = 0; i < w->walk->nr_frames && !left; i++)
			left = csink_go_rule_at(&table, (w->walk->frames[i] & ~CSINK_FRAME_EXACT) - 1, &rule) &&
			       rule.role & CSINK_GO_SCHEDULES;
	return left;
}

static bool find_caller(struct csink_walker *w, csink_row_t row, const struct csink_module *module,
			struct caller *caller)
{
	/* A function that is interrupted itself may be before it goes to the other stack, or be back. */
	if (w->exact && by_offset(w, row, caller) && is_call_to(module, caller->pc, w->pc))
		return true;
	switch ((enum csink_go_way)csink_row_reg(row)) {
	case GO_INTERRUPTED:
		if (!by_offset(w, row, caller))
			return false;
		caller->exact = true;
		return true;
	case GO_BY_DEPTH:
		return by_depth(w, module, caller) ||
		       (by_offset(w, row, caller) && is_call_to(module, caller->pc, w->pc)); /* not there yet */
	case GO_BY_CALL:
		return by_saved_caller(w, module, caller) || by_search(w, module, true, caller);
	case GO_BY_CALLER:
		return by_saved(w, row, module, caller) || by_search(w, module, false, caller) || by_fp(w, caller);
	default:
		return by_saved(w, row, module, caller) || by_fp(w, caller);
	}
}

bool csink_walker_step_go(struct csink_walker *w, csink_row_t row)
{
	struct csink_module module;
	struct caller caller;

	if (!csink_modules_find(w->exact ? w->pc : w->pc - 1, &module))
		return csink_walker_end(w, CSINK_WALK_NO_CFI);
	if (csink_row_reg(row) == GO_BY_CALL && has_left(w, &module))
		return csink_walker_end(w, CSINK_WALK_COMPLETE);
	if (!find_caller(w, row, &module, &caller))
		return csink_walker_end(w, CSINK_WALK_NO_CFI);
	return csink_walker_step_across(w, caller.sp, caller.fp, caller.pc, caller.exact);
}
#else
bool csink_walker_step_go(struct csink_walker *w, csink_row_t row)
{
	(void)row;
	return csink_walker_end(w, CSINK_WALK_NO_CFI);
}
#endif
