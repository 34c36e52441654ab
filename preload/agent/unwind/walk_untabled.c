/*
 * Frames of code without unwind tables: assembly, or code of a just-in-time compiler. They are guessed from the bytes
 * of the code (code.h) and the frame pointer. In handlers of all threads; async-signal-safe.
 */
#include "preload/agent/unwind/code.h"
#include "preload/agent/unwind/code_copies.h"
#include "preload/agent/unwind/jit_objects.h"
#include "preload/agent/unwind/made_code.h"
#include "preload/agent/unwind/modules.h"
#include "preload/agent/unwind/walk_step.h"

enum csink_made_step csink_made_step(struct csink_made_frame *frame)
{
	/* Partner: csink_made_set_stepper(). What the function reads is complete. */
	csink_made_stepper step = __atomic_load_n(&csink_made_current, __ATOMIC_ACQUIRE);

	return CSINK_LIKELY(!step) ? CSINK_MADE_NOT : step(frame);
}

/* On a stack of unknown bounds a frame that only its frame pointer describes is not believed to be larger than this. */
#define MAX_FRAME_BYTES (1UL << 20)

/* No more than what a program starts with is beyond this frame. */
static bool is_at_stack_end(const struct csink_walker *w)
{
	return w->sp <= w->load.high && w->load.high - w->sp < 64;
}

/*
 * The frame pointer is zero: the ABI's mark of the outermost frame; or what some assembly, which makes no frames, has
 * in that register; or this is no frame. Of an object, what is outermost lies at the stack's end, or is not called (as
 * Go has it); what is made at run time is called.
 */
static bool end_at_zero(struct csink_walker *w, bool in_object)
{
	bool called = !w->exact && csink_code_call(w->pc, 0) != CSINK_NO_CALL;

	if (w->innermost || (in_object && called && !is_at_stack_end(w)))
		return csink_walker_end(w, CSINK_WALK_NO_CFI);
	return csink_walker_end(w, in_object || called || w->exact ? CSINK_WALK_COMPLETE : CSINK_WALK_BAD_STACK);
}

/* By the frame pointer, if that looks like one. */
static bool step_fp(struct csink_walker *w, bool in_object)
{
	uint64_t fp, ra;

	if (!w->fp)
		return end_at_zero(w, in_object);
	if (w->fp % 8 || w->fp < w->sp || (w->fp >= w->load.high && w->fp - w->sp > MAX_FRAME_BYTES) ||
	    !csink_walker_load(w, w->fp, &fp) || !csink_walker_load(w, w->fp + 8, &ra))
		return csink_walker_end(w, CSINK_WALK_NO_CFI);
	return csink_walker_step_to(w, w->fp + 16, fp, ra);
}

/* The word at an address, taken for a return address. */
static enum csink_code_call call_at(struct csink_walker *w, uintptr_t at, uint64_t *ra)
{
	if (!csink_walker_load(w, at, ra) || !csink_address_plausible(*ra))
		return CSINK_NO_CALL;
	return csink_code_call(*ra, w->pc);
}

#if defined(__x86_64__)
/* A frame pointer that was saved below `at` and still leads to a return address; the register itself failing that. */
static uint64_t find_fp(struct csink_walker *w, uintptr_t at)
{
	uint64_t fp = w->fp, ra;

	for (uintptr_t next = w->sp; next <= at; next += 8) {
		if (fp % 8 == 0 && fp > at && fp - at < MAX_FRAME_BYTES && call_at(w, fp + 8, &ra) != CSINK_NO_CALL)
			return fp;
		if (next == at || !csink_walker_load(w, next, &fp))
			break;
	}
	return w->fp;
}

/* Registers were pushed: the next return address with a call of this code before it, if a few words were. Whether a
 * word may be one is looked up first: reading code takes a system call. */
static bool find_pushed(struct csink_walker *w, uintptr_t *at, uint64_t *ra)
{
	enum { AT_MOST = 12 };
	struct csink_module module;

	for (*at = w->sp + 16; *at <= w->sp + 8 * AT_MOST && csink_walker_load(w, *at, ra); *at += 8)
		if (csink_modules_find(*ra, &module) && csink_code_call(*ra, w->pc) == CSINK_CALL_NEARBY)
			return true;
	return false;
}

/* The frame pointer points to one that was saved, and next to that lies a return address with such a call before it. */
static bool is_fp_frame(struct csink_walker *w, enum csink_code_call call, uint64_t *fp, uint64_t *ra)
{
	return w->fp % 8 == 0 && w->fp >= w->sp && csink_walker_load(w, w->fp, fp) && call_at(w, w->fp + 8, ra) == call;
}

/* Does the code show that the frame is not complete? The function was just called, is about to return, or has pushed
 * the caller's frame pointer and not yet set its own. */
static bool is_frame_half_made(struct csink_walker *w, const struct csink_code_near *near, bool in_object,
			       uintptr_t *cfa, uint64_t *fp, uint64_t *ra)
{
	uint64_t top;

	*fp = w->fp;
	*cfa = w->sp + 8;
	if (csink_code_is_edge(near, w->pc) && call_at(w, w->sp, ra) != CSINK_NO_CALL)
		return true;
	/* Elsewhere in a compiler's code such words on top of the stack may be left of a former call, where it takes
	 * room and does not fill it yet. */
	*cfa = w->sp + 16;
	if (!csink_walker_load(w, w->sp, &top) ||
	    (w->fp != w->sp && (w->fp != top || (!in_object && !csink_code_has_pushed(near, w->pc)))))
		return false;
	*fp = top;
	return call_at(w, w->sp + 8, ra) != CSINK_NO_CALL;
}

/*
 * A function of V8 that has no frame yet has called the builtin that makes it, which has none either. This frame is the
 * builtin's, in a copy of V8's code, and the word on top of the stack leads into the function; or it is the function's,
 * and that word is its own return address. Before the builtin returns, %r12 is in the frame that it made.
 */
static bool has_called_first(struct csink_walker *w, csink_row_t row, uint64_t *ra)
{
	uintptr_t sp = (uintptr_t)w->context->gregs[REG_RSP];
	uint64_t r12 = (uint64_t)w->context->gregs[REG_R12], words[4];

	if (csink_row_near(row) || (w->innermost ? !csink_code_copies_have(w->pc) : w->sp != sp + 8))
		return false;
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(words); i++)
		if (!csink_walker_load(w, sp + 8 * i, &words[i]))
			return false;
	*ra = words[!w->innermost];
	return words[2] != r12 && words[3] != r12 && csink_code_called_first(words[0], r12) &&
	       csink_code_call(words[1], 0) != CSINK_NO_CALL;
}
/* The function has aligned its stack, and keeps in a register where that was. */
static bool find_kept(struct csink_walker *w, uintptr_t *at, uint64_t *fp, uint64_t *ra)
{
	uintptr_t saved_fp;

	*at = csink_code_aligned(w->pc, w->context, &saved_fp);
	*fp = w->fp;
	return *at && call_at(w, *at, ra) != CSINK_NO_CALL && (!saved_fp || csink_walker_load(w, saved_fp, fp));
}
#endif

/*
 * The innermost function is some assembly. Most such code has no frame, or one word of it (as _init has), or a plain
 * one with a frame pointer: where a return address lies with a call of this very code before it, that is the frame.
 * Failing that, any call before the word on top of the stack that may have led here (by way of a stub), or before the
 * one next to the frame pointer's. A call of other code is believed last: on top of the stack an old one may lie, where
 * code (a just-in-time compiler's) takes room and does not fill it yet.
 */
static bool step_frameless(struct csink_walker *w)
{
	uint64_t ra, fp;

#if defined(__x86_64__)
	enum csink_code_call top;
	uintptr_t at;

	if (find_kept(w, &at, &fp, &ra))
		return csink_walker_step_to(w, at + 8, fp, ra);
	top = call_at(w, w->sp, &ra);
	if (top == CSINK_CALL_NEARBY)
		return csink_walker_step_to(w, w->sp + 8, w->fp, ra);
	if (call_at(w, w->sp + 8, &ra) == CSINK_CALL_NEARBY)
		return csink_walker_step_to(w, w->sp + 16, w->fp, ra);
	if (is_fp_frame(w, CSINK_CALL_NEARBY, &fp, &ra))
		return csink_walker_step_to(w, w->fp + 16, fp, ra);
	if (top != CSINK_CALL && find_pushed(w, &at, &ra))
		return csink_walker_step_to(w, at + 8, find_fp(w, at), ra);
	if (top != CSINK_CALL && is_fp_frame(w, CSINK_CALL, &fp, &ra))
		return csink_walker_step_to(w, w->fp + 16, fp, ra);
	if (top != CSINK_NO_CALL && csink_walker_load(w, w->sp, &ra))
		return csink_walker_step_to(w, w->sp + 8, w->fp, ra);
#elif defined(__aarch64__)
	if (w->fp % 8 == 0 && w->fp >= w->sp && csink_walker_load(w, w->fp, &fp) &&
	    call_at(w, w->fp + 8, &ra) == CSINK_CALL_NEARBY)
		return csink_walker_step_to(w, w->fp + 16, fp, ra);
	ra = STRIP_SIGNATURE(context_reg(w->context, CSINK_REG_RA));
	if (csink_address_plausible(ra) && csink_code_call(ra, w->pc) != CSINK_NO_CALL)
		return csink_walker_step_to(w, w->sp, w->fp, ra);
#endif
	return step_fp(w, true);
}

/* Nothing of the caller's was touched, but for what its call and a stub's push put on the stack. */
static bool step_bare_call(struct csink_walker *w, uintptr_t pushed)
{
#if defined(__x86_64__)
	uint64_t ra;

	if (!csink_walker_load(w, w->sp + pushed, &ra))
		return csink_walker_end(w, CSINK_WALK_BAD_STACK);
	return csink_walker_step_to(w, w->sp + pushed + 8, w->fp, ra);
#elif defined(__aarch64__)
	return csink_walker_step_to(w, w->sp + pushed, w->fp, context_reg(w->context, CSINK_REG_RA));
#endif
}

/* Somewhere in an object, but not where its code is: nothing returns there. */
static bool is_data(const struct csink_walker *w)
{
	struct csink_module module;

	return !w->innermost && !w->exact && !csink_modules_find(w->pc, &module) &&
	       csink_code_call(w->pc, 0) == CSINK_NO_CALL;
}

static bool step_guessed(struct csink_walker *w, csink_row_t row)
{
	struct csink_code_near near;
	int pushed = -1;
#if defined(__x86_64__)
	uint64_t ra, fp;
	uintptr_t cfa;
#endif

	if (w->innermost) {
		csink_code_read_near(w->pc, &near);
		pushed = csink_code_pushed(&near, w->pc);
	}
	if (csink_row_near(row) && is_data(w))
		return csink_walker_end(w, CSINK_WALK_BAD_STACK);
	if (!csink_row_near(row))
		csink_jit_meet();
	if (pushed >= 0)
		return step_bare_call(w, (uintptr_t)pushed);
#if defined(__x86_64__)
	if (w->innermost && is_frame_half_made(w, &near, csink_row_near(row), &cfa, &fp, &ra))
		return csink_walker_step_to(w, cfa, fp, ra);
	/* A word is there which is never written: what lies in it may be an old address. Some objects call from there.
	 */
	if (csink_row_reg(row) && call_at(w, w->sp + 8, &ra) != CSINK_NO_CALL)
		return csink_walker_step_to(w, w->sp + 16, w->fp, ra);
	if (has_called_first(w, row, &ra))
		return csink_walker_step_to(w, w->sp + 8, w->fp, ra);
#endif
	return w->innermost && csink_row_near(row) ? step_frameless(w) : step_fp(w, csink_row_near(row));
}

/* Code that is in no object: guessed only if no runtime describes it. */
static enum csink_made_step step_made(struct csink_walker *w, bool *more)
{
	struct csink_made_frame frame = {w->pc, w->sp, w->fp, w->innermost ? w->context : NULL, &w->load};
	enum csink_made_step step = csink_made_step(&frame);

	if (step == CSINK_MADE_CALLER)
		*more = csink_walker_step_to(w, frame.sp, frame.fp, frame.pc);
	else if (step == CSINK_MADE_CUT)
		*more = csink_walker_end(w, CSINK_WALK_NO_CFI);
	return step;
}

bool csink_walker_step_untabled(struct csink_walker *w, csink_row_t row)
{
	bool more = false;

	if (!csink_row_near(row) && step_made(w, &more) != CSINK_MADE_NOT)
		return more;
	return step_guessed(w, row);
}
