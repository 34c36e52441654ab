/*
 * Frames of code without unwind tables in copied stacks: C libraries built without them (musl), programs built with
 * -fno-asynchronous-unwind-tables, assembly. In this order, what is found first:
 *
 * 0. the beginning of a function that has aligned its stack (aligned_code.h);
 * 1. the code's own way to its return says where the return address is (code_paths.h), and a call lies before that;
 * 2. a word of the stack with a call before it, from whose target the code leads here with that very frame;
 * 3. the program's first function, or the ABI's mark of the outermost frame;
 * 4. the frame pointer, and a call before what it leads to;
 * 5. the nearest word with a call before it that may have led here: a guess, and reported as one.
 *
 * Runs in the attach command's one thread.
 */
#include "launcher/attach/walk_copied_impl.h"

#include <stdlib.h>

#include "include/internal/base.h"
#include "launcher/attach/code_bytes.h"
#include "launcher/attach/code_paths.h"
#include "launcher/attach/object_code.h"
#include "preload/core/aligned_code.h"

#if defined(__x86_64__)
#define NR_CACHED 2048
#define NEAR_BYTES 65536  /* a call of what begins so shortly before may have led here */
#define FIRST_FUNCTION 64 /* bytes: the program's first function calls another one within these */
#define MAX_SCANNED 256   /* words of the stack, for frames that the code confirms */
#define MAX_STARTS 32
#define MAX_GUESSED 48         /* for others */
#define MAX_CONFIRMED 16       /* calls that are followed, of a frame */
#define MAX_FRAME (1ULL << 20) /* bytes */
#define R15 15                 /* as DWARF numbers it */

/* ---- rules, once they are found ---- */

static struct returns {
	const struct csink_attach_object *object;
	uint64_t pc;
	bool is_behind_call;
	struct csink_code_rules rules;
} * all_returns; /* NR_CACHED, made for the first one */

static struct frames {
	const struct csink_attach_object *object;
	uint64_t start, pc;
	bool is_behind_call, is_found;
	struct csink_code_rule rule;
} * all_frames; /* as many */

static const struct csink_code_rules *returns_from(const struct csink_attach_object *object, uint64_t pc,
						   bool is_behind_call)
{
	static struct returns alone; /* where there is no memory for more */
	struct returns *at;

	if (!all_returns)
		all_returns = calloc(NR_CACHED, sizeof(*all_returns));
	at = all_returns ? &all_returns[(pc ^ pc >> 11) % NR_CACHED] : &alone;
	if (at->object != object || at->pc != pc || at->is_behind_call != is_behind_call) {
		at->object = object;
		at->pc = pc;
		at->is_behind_call = is_behind_call;
		csink_code_find_returns(object, pc, is_behind_call, &at->rules);
	}
	return &at->rules;
}

static const struct csink_code_rule *frame_of(const struct csink_attach_object *object, uint64_t start, uint64_t pc,
					      bool is_behind_call)
{
	static struct frames alone;
	struct frames *at;

	if (!all_frames)
		all_frames = calloc(NR_CACHED, sizeof(*all_frames));
	at = all_frames ? &all_frames[(pc ^ pc >> 11 ^ start * 31) % NR_CACHED] : &alone;
	if (at->object != object || at->pc != pc || at->start != start || at->is_behind_call != is_behind_call) {
		at->object = object;
		at->pc = pc;
		at->start = start;
		at->is_behind_call = is_behind_call;
		at->is_found = csink_code_find_frame(object, start, pc, is_behind_call, &at->rule);
	}
	return at->is_found ? &at->rule : NULL;
}

/* ---- a frame ---- */

struct frame {
	struct csink_copy_walker *w;
	const struct csink_attach_object *object;
	uint64_t bias, pc; /* pc: the object's own address */
};

static bool evaluate(struct csink_copy_walker *w, const struct csink_code_value *is, uint64_t *value)
{
	if (is->kind == CSINK_CODE_UNKNOWN || !csink_copy_known(w, is->reg))
		return false;
	*value = csink_copy_address(w, w->regs.value[is->reg] + (uint64_t)(int64_t)is->offset);
	if (is->kind == CSINK_CODE_PLAIN)
		return true;
	if (!csink_copy_load(w, *value, value))
		return false;
	*value = csink_copy_address(w, *value + (uint64_t)(int64_t)is->addend);
	return true;
}

/* How likely it is that a call before a return address led to the frame. */
enum likeness { NO_CALL, OF_OTHERS, OF_SOMETHING, OF_THIS };

/* start: set to the function that is called, if it is of the same object; 0 otherwise. */
static enum likeness look_at(const struct frame *f, uint64_t ra, uint64_t *start)
{
	const struct csink_attach_object *object;
	uint64_t bias, target;
	uint32_t unused;

	*start = 0;
	if (ra < 4096 || (ra - 1) >> 48 || !f->w->copy->locate(f->w->copy->arg, ra - 1, &object, &bias) ||
	    object->is_32 != f->w->copy->is_32)
		return NO_CALL;
	switch (csink_code_call_before(object, ra - bias, &target)) {
	case CSINK_CODE_DIRECT:
		*start = object == f->object ? target : 0;
		if (*start && f->pc - target < NEAR_BYTES)
			return OF_THIS;
		return csink_code_is_jump(object, target) ? OF_SOMETHING : OF_OTHERS;
	case CSINK_CODE_CALL:
		return OF_SOMETHING;
	case CSINK_CODE_NO_CALL:
		break;
	}
	/* Handlers of signals return to where nothing called them. */
	return csink_code_returns_from_signal(object, ra - bias, false, &unused) ? OF_SOMETHING : NO_CALL;
}

static void note(const struct frame *f, bool is_guess)
{
	struct csink_walk_trust *trust = f->w->copy->trust;

	if (!trust)
		return;
	trust->by_code |= !is_guess;
	trust->by_guess |= is_guess;
}

static enum csink_copy_step go_to(struct frame *f, uint64_t ra_at, uint64_t ra, const struct csink_cfi_regs *caller)
{
	struct csink_copy_walker *w = f->w;

	w->regs = *caller;
	csink_cfi_set(&w->regs, CSINK_REG_SP, ra_at + w->word);
	w->pc = ra;
	w->exact = false;
	return CSINK_COPY_CALLER;
}

static enum csink_copy_step go_by_rule(struct frame *f, const struct csink_code_rule *rule, uint64_t ra_at, uint64_t ra)
{
	struct csink_cfi_regs caller = {.known = 0};
	uint64_t value;

	for (int slot = 0; slot < CSINK_NR_SLOTS; slot++) {
		int reg = csink_cfi_slot_reg(slot);

		if (reg != CSINK_REG_SP && reg != CSINK_REG_RA && evaluate(f->w, &rule->slots[slot], &value))
			csink_cfi_set(&caller, (uint64_t)reg, value);
	}
	note(f, false);
	return go_to(f, ra_at, ra, &caller);
}

/* The registers that the caller has are not known any more, but for the frame pointer, which may be its own. */
static enum csink_copy_step go_by_guess(struct frame *f, uint64_t ra_at, uint64_t ra, bool is_guess)
{
	struct csink_cfi_regs caller = f->w->regs;

	caller.known &= 1ULL << CSINK_REG_FP;
	note(f, is_guess);
	return go_to(f, ra_at, ra, &caller);
}

/* ---- by the code ---- */

/* By the return, or jump, with the likeliest call, if that is at least so likely. */
static bool by_returns(struct frame *f, const struct csink_code_rules *rules, bool jumps, enum likeness least,
		       enum csink_copy_step *step)
{
	enum likeness best = NO_CALL, is;
	uint64_t sp = f->w->regs.value[CSINK_REG_SP], best_at = 0, best_ra = 0, at, ra, unused;
	uint32_t best_rule = 0;

	for (uint32_t i = 0; i < rules->nr; i++) {
		if (rules->at[i].is_jump != jumps || !evaluate(f->w, &rules->at[i].ra_at, &at) || at < sp ||
		    at % f->w->word || !csink_copy_load(f->w, at, &ra))
			continue;
		is = look_at(f, ra, &unused);
		if (is <= best)
			continue;
		best = is;
		best_at = at;
		best_ra = ra;
		best_rule = i;
	}
	if (best < least)
		return false;
	*step = go_by_rule(f, &rules->at[best_rule], best_at, best_ra);
	return true;
}

/* By the call of the function itself, where the code from its start on has a frame of that very size. */
static bool by_start(struct frame *f, enum csink_copy_step *step)
{
	uint64_t at = f->w->regs.value[CSINK_REG_SP], ra, start, expected;
	uint32_t nr_followed = 0;
	const struct csink_code_rule *rule;
	bool is_cut = false;

	for (uint32_t i = 0; i < MAX_SCANNED && nr_followed < MAX_CONFIRMED; i++, at += f->w->word) {
		if (!csink_walk_copy_load(f->w->copy, at, &ra, &is_cut))
			return false;
		look_at(f, ra, &start);
		if (!start)
			continue;
		nr_followed++; /* parts of functions that seldom run lie elsewhere: any function may lead here */
		rule = frame_of(f->object, start, f->pc, !f->w->exact);
		if (!rule || !evaluate(f->w, &rule->ra_at, &expected) || expected != at)
			continue;
		*step = go_by_rule(f, rule, at, ra);
		return true;
	}
	return false;
}

/*
 * By the addresses before this one where the function may begin, for functions that do not return and are called
 * through a register or by another object: the code from there on has to lead here, with a frame that lies below a
 * return address.
 */
static bool by_likely_start(struct frame *f, enum csink_copy_step *step)
{
	uint64_t starts[MAX_STARTS], at, ra, unused;
	uint32_t nr = csink_code_find_starts(f->object, f->pc, starts, MAX_STARTS);

	for (uint32_t i = 0; i < nr; i++) {
		const struct csink_code_rule *rule = frame_of(f->object, starts[i], f->pc, !f->w->exact);

		if (!rule || !evaluate(f->w, &rule->ra_at, &at) || at < f->w->regs.value[CSINK_REG_SP] ||
		    at % f->w->word || !csink_copy_load(f->w, at, &ra) || look_at(f, ra, &unused) < OF_SOMETHING)
			continue;
		*step = go_by_rule(f, rule, at, ra);
		return true;
	}
	return false;
}

/* ---- by the beginning of a function that has aligned its stack ---- */

/* Zeroes where the object has no code. */
static bool read_code(const void *object, uint64_t at, void *to, size_t bytes)
{
	enum { PIECE = 64 };
	size_t nr = 0;

	memset(to, 0, bytes);
	for (size_t i = 0; i < bytes; i += PIECE)
		nr += csink_object_code_read(object, at + i, (uint8_t *)to + i, CSINK_MIN(bytes - i, (size_t)PIECE));
	return nr;
}

/* The nearest such beginning before an address, with what comes before it, in the object's code. NULL: there is none.
 */
static const uint8_t *find_alignment(const struct csink_attach_object *object, uint64_t pc)
{
	/* What was found last, NULL: nothing, for addresses from this one to that one. */
	static const struct csink_attach_object *last_object;
	static const uint8_t *last;
	static uint64_t from, to;
	static uint8_t room[CSINK_ALIGNED_ROOM];

	if (object == last_object && pc >= from && pc <= to)
		return last;
	last_object = object;
	from = pc > 4095 ? pc - 4095 : 0;
	to = pc;
	last = csink_aligned_find(read_code, object, pc, room, &from);
	return last;
}

static bool by_alignment(struct frame *f, enum csink_copy_step *step)
{
	struct csink_cfi_regs caller = {.known = 0};
	uint64_t sp = f->w->regs.value[CSINK_REG_SP], at, ra, saved_fp, fp = f->w->regs.value[CSINK_REG_FP], unused;
	const uint8_t *code;
	bool is_cut = false;
	uint64_t reg;

	if (!f->w->exact || f->w->word != 8 || sp % CSINK_ALIGNED_SP || !(code = find_alignment(f->object, f->pc)))
		return false;
	reg = csink_aligned_keeps_r15(code) ? R15 : CSINK_REG_BX;
	at = csink_copy_known(f->w, reg) ? csink_aligned_return(code, sp, f->w->regs.value[reg], &saved_fp) : 0;
	if (!at)
		return false;
	if (!csink_walk_copy_load(f->w->copy, at, &ra, &is_cut)) {
		f->w->is_cut |= is_cut;
		*step = CSINK_COPY_BAD;
		return is_cut;
	}
	if (look_at(f, ra, &unused) == NO_CALL)
		return false;
	if (saved_fp ? csink_walk_copy_load(f->w->copy, saved_fp, &fp, &is_cut) : csink_copy_known(f->w, CSINK_REG_FP))
		csink_cfi_set(&caller, CSINK_REG_FP, fp);
	note(f, false);
	*step = go_to(f, at, ra, &caller);
	return true;
}

/* ---- by what lies on the stack ---- */

static bool is_first_function(const struct frame *f, uint64_t pc)
{
	const struct csink_attach_object *object;
	uint64_t bias;

	return f->w->copy->locate(f->w->copy->arg, pc, &object, &bias) && object->entry &&
	       pc - bias - object->entry < FIRST_FUNCTION && csink_code_is_first(object, object->entry);
}

/*
 * Where in the next words a return address into the program's first function lies: functions between that one and the
 * program's own never return, and have no way to a return that could be followed. 0: nowhere.
 */
static uint64_t find_first_function(const struct frame *f)
{
	uint64_t at = f->w->regs.value[CSINK_REG_SP], ra, unused;
	bool is_cut = false;

	for (uint32_t i = 0; i < MAX_GUESSED; i++, at += f->w->word) {
		if (!csink_walk_copy_load(f->w->copy, at, &ra, &is_cut))
			return 0;
		if (is_first_function(f, ra - 1) && look_at(f, ra, &unused) != NO_CALL)
			return at;
	}
	return 0;
}

/* The first word up to @last with a call before it that is at least so likely. */
static bool by_words(struct frame *f, uint64_t last, enum likeness least, enum csink_copy_step *step)
{
	uint64_t ra, unused;
	bool is_cut = false;

	for (uint64_t at = f->w->regs.value[CSINK_REG_SP]; at <= last; at += f->w->word) {
		if (!csink_walk_copy_load(f->w->copy, at, &ra, &is_cut))
			return false;
		if (look_at(f, ra, &unused) < least)
			continue;
		*step = go_by_guess(f, at, ra, !is_first_function(f, ra - 1));
		return true;
	}
	return false;
}

static bool by_frame_pointer(struct frame *f, enum csink_copy_step *step)
{
	uint64_t fp = f->w->regs.value[CSINK_REG_FP], ra, unused;
	bool is_cut = false;

	if (!csink_copy_known(f->w, CSINK_REG_FP) || fp % f->w->word || fp < f->w->regs.value[CSINK_REG_SP] ||
	    fp - f->w->regs.value[CSINK_REG_SP] > MAX_FRAME ||
	    !csink_walk_copy_load(f->w->copy, fp + f->w->word, &ra, &is_cut) || look_at(f, ra, &unused) == NO_CALL)
		return false;
	*step = csink_copy_step_fp(f->w);
	return *step == CSINK_COPY_CALLER;
}

/* ---- signals ---- */

enum csink_copy_step csink_copy_step_signal(struct csink_copy_walker *w, uint32_t context)
{
	/* Where struct sigcontext has them, in words, by DWARF's number as walks have it; 0xff: not looked at. */
	static const uint8_t of_64[CSINK_NR_REGS] = {13, 12, 14, 11, 9, 8, 10, 15, 0, 1, 2, 3, 4, 5, 6, 7, 16};
	static const uint8_t of_32[CSINK_NR_REGS] = {11,   9,    10,   8, 0xff, 0xff, 6,    7, 0xff,
						     0xff, 0xff, 0xff, 5, 4,    0xff, 0xff, 14};
	const uint8_t *words = w->word == 4 ? of_32 : of_64;
	uint64_t from = w->regs.value[CSINK_REG_SP] + context;
	struct csink_cfi_regs caller = {.known = 0};

	for (uint32_t reg = 0; reg < CSINK_NR_REGS; reg++) {
		if (words[reg] == 0xff)
			continue;
		if (!csink_copy_load(w, from + words[reg] * (uint64_t)w->word, &caller.value[reg]))
			return CSINK_COPY_BAD;
		caller.known |= 1ULL << reg;
	}
	w->regs = caller;
	w->pc = caller.value[CSINK_REG_RA];
	w->exact = true;
	return CSINK_COPY_CALLER;
}

/* ---- */

/* Sets *f; false: the code cannot be read. */
static bool begin(struct frame *f, struct csink_copy_walker *w, const struct csink_attach_object *object, uint64_t bias)
{
	uint8_t byte;

	*f = (struct frame){w, object, bias, w->pc - bias};
	return csink_object_code_read(object, f->pc, &byte, 1) == 1;
}

bool csink_copy_step_by_code(struct csink_copy_walker *w, const struct csink_attach_object *object, uint64_t bias)
{
	enum csink_copy_step step;
	struct frame f;

	return begin(&f, w, object, bias) &&
	       by_returns(&f, returns_from(object, f.pc, !w->exact), false, OF_OTHERS, &step);
}

static enum csink_copy_step step_by_anything(struct frame *f)
{
	struct csink_copy_walker *w = f->w;
	const struct csink_code_rules *rules = returns_from(f->object, f->pc, !w->exact);
	bool is_outermost = csink_copy_known(w, CSINK_REG_FP) && !w->regs.value[CSINK_REG_FP] && !w->innermost;
	uint64_t sp = w->regs.value[CSINK_REG_SP], first;
	enum csink_copy_step step;

	if (by_alignment(f, &step) || by_returns(f, rules, false, OF_THIS, &step) || by_start(f, &step) ||
	    by_returns(f, rules, false, OF_OTHERS, &step))
		return step;
	if (w->is_cut)
		return CSINK_COPY_BAD;
	if (rules->halts && !w->innermost)
		return CSINK_COPY_END;
	if (by_returns(f, rules, true, OF_OTHERS, &step) || by_likely_start(f, &step))
		return step;
	if (by_frame_pointer(f, &step))
		return step;
	first = find_first_function(f);
	if (first && by_words(f, first, OF_OTHERS, &step))
		return step;
	if (is_outermost)
		return CSINK_COPY_END;
	if (by_words(f, sp + (uint64_t)MAX_GUESSED * w->word, OF_THIS, &step) ||
	    by_words(f, sp + (uint64_t)MAX_GUESSED * w->word, OF_SOMETHING, &step))
		return step;
	return CSINK_COPY_NO_TABLE;
}

enum csink_copy_step csink_copy_step_untabled(struct csink_copy_walker *w, const struct csink_attach_object *object,
					      uint64_t bias)
{
	struct frame f;
	uint32_t context;
	bool is_readable = begin(&f, w, object, bias);

	if (is_first_function(&f, w->rules_pc))
		return CSINK_COPY_END;
	if (!is_readable)
		return csink_copy_step_fp(w);
	if (csink_code_returns_from_signal(object, f.pc, w->exact, &context))
		return csink_copy_step_signal(w, context);
	return step_by_anything(&f);
}
#else
enum csink_copy_step csink_copy_step_untabled(struct csink_copy_walker *w, const struct csink_attach_object *object,
					      uint64_t bias)
{
	(void)object, (void)bias;
	return csink_copy_step_fp(w);
}

bool csink_copy_step_by_code(struct csink_copy_walker *w, const struct csink_attach_object *object, uint64_t bias)
{
	(void)w, (void)object, (void)bias;
	return false;
}

enum csink_copy_step csink_copy_step_signal(struct csink_copy_walker *w, uint32_t context)
{
	(void)w, (void)context;
	return CSINK_COPY_OTHER_STACK;
}
#endif
