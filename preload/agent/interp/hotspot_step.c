/*
 * Steps over frames of HotSpot's code: see hotspot.h. Compiled code has frames of a fixed size, and no frame pointer;
 * the interpreter and most stubs have frame pointers.
 *
 * Of the innermost frame the code itself shows how much is there: it is being made, or has been removed. What is
 * guessed is tested: a return address has a call before it, or is where the interpreter continues. Where no guess
 * holds, the thread's record of its last Java frame helps, if it has one; else the stack is cut.
 *
 * Sources: src/hotspot/cpu/x86 of JDK 11 to 25: frame_x86.inline.hpp, templateInterpreterGenerator_x86.cpp
 * (generate_fixed_frame), interp_masm_x86.cpp (remove_activation), x86_64.ad, c1_MacroAssembler_x86.cpp,
 * sharedRuntime_x86_64.cpp.
 *
 * In handlers of all threads; async-signal-safe.
 */
#include <pthread.h>
#include <string.h>

#include "include/internal/base.h"
#include "preload/agent/interp/hotspot.h"
#include "preload/agent/unwind/code.h"
#include "preload/agent/unwind/modules.h"

#if defined(__x86_64__)

enum {
	PUSH_RBP = 0x55,
	POP = 0x58, /* of %rax; the others follow */
	POP_RBP = 0x5d,
	LEAVE = 0xc9,
	RET = 0xc3,
	MAX_FRAME = 1 << 20, /* bytes that a frame pointer is believed to lead up */
	MAX_PROLOGUE = 96,
	MAX_SEARCH = 16,         /* words of arguments */
	MAX_ARGUMENTS = 4,       /* words that C1's code pushes around a call */
	MAX_PUSHED = 64,         /* words that stubs push */
	FIRST_WITH_VIRTUAL = 19, /* version that has virtual threads */
	MAX_ENTRY = 64,          /* words of the frame that runs a virtual thread */
	MAX_ADAPTER = 1 << 14,   /* bytes; those for 255 arguments are a third of it */
};

/* push %rbp; mov %rsp, %rbp, in both encodings */
static bool is_enter(const uint8_t *code)
{
	return !memcmp(code, "\x55\x48\x8b\xec", 4) || !memcmp(code, "\x55\x48\x89\xe5", 4);
}

/* Is this the code at an address? At most eight bytes. */
static bool is_code(const struct csink_hotspot_blob *blob, uintptr_t at, const char *bytes, uint32_t nr)
{
	uint8_t code[8];

	/* Most differ in the first byte. */
	if (at < blob->at || at + nr > blob->end || *(const volatile uint8_t *)at != (uint8_t)bytes[0])
		return false;
	csink_hotspot_code(blob, at, code, nr);
	return !memcmp(code, bytes, nr);
}

/* A word of the stack. Not inline: it is asked for in many places. */
static __attribute__((noinline)) bool load(const struct csink_made_frame *frame, uintptr_t at, uint64_t *value)
{
	return csink_load_word(frame->load, at, value);
}

static uintptr_t reg(const struct csink_made_frame *frame, int index)
{
	return (uintptr_t)frame->context->gregs[index];
}

/* The register that the last three bits of an instruction's byte name. */
static uintptr_t numbered_reg(const struct csink_made_frame *frame, uint8_t byte)
{
	static const uint8_t registers[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI};

	return reg(frame, registers[byte & 7]);
}

/* ---- return addresses -------------------------------------------------------------------------------------------- */

enum call { NO_CALL, CALL, CALL_OF_BLOB }; /* in the order of how sure a return address is */

/* What the code before a return address calls: the blob @of, or something. */
static enum call call_before(const struct csink_hotspot_blob *in, uintptr_t ra, const struct csink_hotspot *vm,
			     uintptr_t of)
{
	uint8_t code[16], *end = code + 13;
	struct csink_hotspot_blob called;
	uintptr_t target = 0;
	int32_t distance;

	if (ra - in->code < 13 || ra - 13 < in->at)
		return NO_CALL;
	csink_hotspot_code(in, ra - 13, code, 13);
	memcpy(&distance, end - 4, sizeof(distance));
	if (end[-5] == 0xe8)
		target = ra + (uintptr_t)(intptr_t)distance;
	else if (!memcmp(end - 3, "\x41\xff\xd2", 3) &&
		 !memcmp(code, "\x49\xba", 2)) /* mov $target, %r10; call *%r10 */
		memcpy(&target, code + 2, sizeof(target));
	if (target)
		return of && csink_hotspot_blob(vm, target, &called) && called.at == of ? CALL_OF_BLOB : CALL;
	for (int bytes = 2; bytes <= 7; bytes++)
		if (bytes != 5 && end[-bytes] == 0xff && (end[1 - bytes] & 0x38) == 0x10)
			return CALL;
	return NO_CALL;
}

bool csink_hotspot_is_called(const struct csink_hotspot_blob *blob, uintptr_t ra)
{
	return call_before(blob, ra, NULL, 0) != NO_CALL;
}

/* Where the last frame of a virtual thread returns to while its callers are in the heap: mov entry(%r15), %rsp. */
static bool is_barrier(const struct csink_hotspot_blob *blob, uintptr_t ra)
{
	uint8_t code[3];

	csink_hotspot_code(blob, ra, code, sizeof(code));
	return !memcmp(code, "\x49\x8b\xa7", sizeof(code));
}

/* What a word would be as a return address of code in the blob @of. The interpreter jumps, with such an address pushed.
 */
static enum call return_to(const struct csink_hotspot *vm, uintptr_t ra, uintptr_t of)
{
	struct csink_hotspot_blob blob;
	struct csink_module module;
	enum call call;

	if (!csink_hotspot_blob(vm, ra, &blob))
		return ra >> 47 || !csink_modules_find(ra, &module) || csink_code_call(ra, 0) == CSINK_NO_CALL ? NO_CALL
													       : CALL;
	if (blob.kind == HOTSPOT_CODE_OF_INTERPRETER)
		return CALL;
	call = call_before(&blob, ra, vm, of);
	if (!call && blob.kind == HOTSPOT_STUBS && is_barrier(&blob, ra))
		return CALL;
	return !call && blob.kind == HOTSPOT_COMPILED && csink_hotspot_is_deopt(vm, &blob, ra) ? CALL : call;
}

/* ---- the innermost frame ----------------------------------------------------------------------------------------- */

/* Fill in the caller by a way, from the frame's registers. False: it cannot be read, or is none. */
static bool follow(const struct csink_hotspot_blob *blob, const struct csink_made_frame *frame,
		   enum csink_hotspot_way way, struct csink_hotspot_leaf *leaf)
{
	uintptr_t cfa = way == HOTSPOT_NONE     ? frame->sp + 8
			: way == HOTSPOT_PUSHED ? frame->sp + 16
			: way == HOTSPOT_BY_FP  ? frame->fp + 16
						: frame->sp + blob->frame_bytes;
	uint64_t fp = frame->fp, ra;

	if (way == HOTSPOT_BY_FP && (frame->fp % 8 || frame->fp < frame->sp || frame->fp - frame->sp > MAX_FRAME))
		return false;
	if ((way == HOTSPOT_WHOLE || way == HOTSPOT_UNSAVED) && !blob->frame_bytes)
		return false;
	if (way != HOTSPOT_NONE && way != HOTSPOT_UNSAVED && !load(frame, cfa - 16, &fp))
		return false;
	if (!load(frame, cfa - 8, &ra))
		return false;
	*leaf = (struct csink_hotspot_leaf){.way = way, .cfa = cfa, .fp = fp, .ra = ra};
	return true;
}

static void go_to_caller(struct csink_made_frame *frame, const struct csink_hotspot_leaf *of)
{
	frame->sp = of->cfa;
	frame->fp = of->fp;
	frame->pc = of->ra;
}

/* follow(), if the return address that it finds is as sure as @least. */
static bool try(const struct csink_hotspot *vm, const struct csink_hotspot_blob *blob,
		const struct csink_made_frame *frame, enum csink_hotspot_way way, enum call least,
		struct csink_hotspot_leaf *leaf)
{
	return follow(blob, frame, way, leaf) && return_to(vm, leaf->ra, blob->at) >= least;
}

/* A stub has pushed what it likes: the first word that is behind a call of its blob. */
static bool search(const struct csink_hotspot *vm, const struct csink_hotspot_blob *blob,
		   const struct csink_made_frame *frame, struct csink_hotspot_leaf *leaf)
{
	uint64_t ra;

	for (uintptr_t at = frame->sp; at < frame->sp + 8 * MAX_PUSHED; at += 8) {
		if (!load(frame, at, &ra))
			return false;
		/* Code elsewhere is read by system calls, and does not call a blob directly. */
		if (ra - vm->low >= vm->high - vm->low || return_to(vm, ra, blob->at) != CALL_OF_BLOB)
			continue;
		*leaf = (struct csink_hotspot_leaf){.way = HOTSPOT_POPPED, .cfa = at + 8, .fp = frame->fp, .ra = ra};
		return true;
	}
	return false;
}

/* What the stack pointer of a compiled frame is off by, in words: its code pushes arguments of some stubs. */
static bool is_pushed(const struct csink_hotspot *vm, const struct csink_hotspot_blob *blob,
		      const struct csink_made_frame *frame, uintptr_t sp, uint32_t nr)
{
	uint64_t ra;

	return load(frame, sp + blob->frame_bytes + 8 * nr - 8, &ra) && return_to(vm, ra, blob->at) != NO_CALL;
}

/* Where C1's code goes on behind a call for which it has pushed arguments, it pops them: the caller's frame begins
 * behind them. */
static void skip_arguments(const struct csink_hotspot *vm, const struct csink_made_frame *frame,
			   struct csink_hotspot_leaf *leaf)
{
	struct csink_hotspot_blob caller;
	uint8_t code[2 * MAX_ARGUMENTS];
	uint32_t nr = 0;

	if (!csink_hotspot_blob(vm, leaf->ra, &caller) || caller.kind != HOTSPOT_COMPILED || !caller.frame_bytes)
		return;
	csink_hotspot_code(&caller, leaf->ra, code, sizeof(code));
	for (size_t i = 0; i < sizeof(code) && nr < MAX_ARGUMENTS; i++, nr++) {
		i += code[i] == 0x41; /* %r8 to %r15 */
		if (i == sizeof(code) || (code[i] & 0xf8) != POP)
			break;
	}
	/* Some of them it keeps for another call. */
	for (; nr > 0 && nr <= MAX_ARGUMENTS; nr++)
		if (is_pushed(vm, &caller, frame, leaf->cfa, nr)) {
			leaf->cfa += 8 * nr;
			return;
		}
}

/* In a prologue: sub $size, %rsp, behind push %rbp (and mov %rsp, %rbp) or before mov %rbp to its place. */
static enum csink_hotspot_way way_in_prologue(const struct csink_hotspot_blob *blob, uintptr_t pc)
{
	uint8_t code[MAX_PROLOGUE + 8];
	uint32_t nr = (uint32_t)CSINK_MIN(blob->complete - blob->code, (uintptr_t)MAX_PROLOGUE), at = nr;
	uintptr_t start = blob->complete - nr;

	csink_hotspot_code(blob, start, code, nr + 8);
	while (at-- > 0) {
		bool is_short = !memcmp(code + at, "\x48\x83\xec", 3), is_long = !memcmp(code + at, "\x48\x81\xec", 3);
		/* Bytes of push %rbp, and mov, right before it. */
		uint32_t pushing = at > 3 && is_enter(code + at - 4) ? 4 : at > 0 && code[at - 1] == PUSH_RBP,
			 bytes = 0;

		if (is_enter(code + at) && blob->kind == HOTSPOT_OTHER) /* of a stub, which then saves registers */
			return pc <= start + at ? HOTSPOT_NONE : pc == start + at + 1 ? HOTSPOT_PUSHED : HOTSPOT_BY_FP;
		if (!is_short && !is_long)
			continue;
		memcpy(&bytes, code + at + 3, is_short ? 1 : 4);
		if (bytes + 16 != blob->frame_bytes && bytes + 8 != blob->frame_bytes)
			continue;
		if (pc > start + at)
			return pushing || pc > start + at + (is_short ? 4 : 7) ? HOTSPOT_WHOLE : HOTSPOT_UNSAVED;
		return pushing && pc > start + at - pushing ? HOTSPOT_PUSHED : HOTSPOT_NONE;
	}
	/* A frame of two words. */
	for (at = nr; at-- > 0;)
		if (code[at] == PUSH_RBP && blob->frame_bytes == 16)
			return pc > start + at ? HOTSPOT_WHOLE : HOTSPOT_NONE;
	return HOTSPOT_NONE;
}

/* Is this behind the removal of a frame? To the return there is a test whether to stop for the collector. */
static bool is_at_return(const uint8_t *code)
{
	static const struct {
		uint8_t bytes[7], masks[7], then;
	} tests[] = {
		{{0x49, 0x3b, 0xa7}, {0xff, 0xff, 0xff}, 0}, /* cmp poll(%r15), %rsp */
		{{0x0f, 0x87}, {0xff, 0xff}, 6},             /* ja; ret */
		{{0x4d, 0x8b, 0x97}, {0xff, 0xff, 0xff}, 0}, /* mov page(%r15), %r10 */
		{{0x41, 0x85, 0x02}, {0xff, 0xff, 0xff}, 3}, /* test %eax, (%r10); ret */
		{{0x85, 0x05}, {0xff, 0xff}, 6},             /* test %eax, page(%rip); ret */
	};

	if (code[0] == RET || code[0] == 0xc2)
		return true;
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(tests); i++) {
		bool is_same = true;

		for (size_t k = 0; k < sizeof(tests[i].bytes); k++)
			is_same = is_same && (code[k] & tests[i].masks[k]) == tests[i].bytes[k];
		if (is_same && (!tests[i].then || code[tests[i].then] == RET))
			return true;
	}
	return false;
}

/* Code that replaces an interpreted frame in the middle of a loop has an entry of its own: mov %eax, -distance(%rsp),
 * which tests whether the stack has room; push %rbp; sub $size, %rsp. */
static enum csink_hotspot_way way_at_entry(const struct csink_hotspot_blob *blob, uintptr_t pc)
{
	if (is_code(blob, pc, "\x89\x84\x24", 3) && is_code(blob, pc + 6, "\xff", 1))
		return HOTSPOT_NONE;
	if (is_code(blob, pc, "\x55\x48\x83\xec", 4) || is_code(blob, pc, "\x55\x48\x81\xec", 4))
		return HOTSPOT_NONE;
	if (is_code(blob, pc - 1, "\x55\x48\x83\xec", 4) || is_code(blob, pc - 1, "\x55\x48\x81\xec", 4))
		return HOTSPOT_PUSHED;
	return HOTSPOT_WHOLE;
}

/* Compiled code pushes arguments, or pops them. */
static bool leaf_of_pushed(const struct csink_hotspot *vm, const struct csink_hotspot_blob *blob,
			   const struct csink_made_frame *frame, struct csink_hotspot_leaf *leaf)
{
	struct csink_made_frame at = *frame;

	for (uint32_t nr = 0; blob->kind == HOTSPOT_COMPILED && nr < MAX_ARGUMENTS; nr++) {
		at.sp += 8;
		if (try(vm, blob, &at, HOTSPOT_WHOLE, CALL, leaf))
			return true;
	}
	return false;
}

/* Code with frames of a fixed size. */
static bool leaf_of_fixed(const struct csink_hotspot *vm, const struct csink_hotspot_blob *blob,
			  const struct csink_made_frame *frame, struct csink_hotspot_leaf *leaf)
{
	static const uint8_t others[] = {HOTSPOT_WHOLE, HOTSPOT_NONE, HOTSPOT_PUSHED, HOTSPOT_BY_FP};
	enum csink_hotspot_way way = HOTSPOT_WHOLE;
	uint8_t code[16];

	csink_hotspot_code(blob, frame->pc, code, sizeof(code));
	if (frame->pc < blob->complete || !blob->frame_bytes)
		way = blob->frame_bytes && blob->complete ? way_in_prologue(blob, frame->pc) : HOTSPOT_NONE;
	else if (is_at_return(code))
		way = HOTSPOT_NONE;
	else if (code[0] == POP_RBP)
		way = HOTSPOT_PUSHED;
	else if (blob->kind == HOTSPOT_COMPILED)
		way = way_at_entry(blob, frame->pc);
	if (try(vm, blob, frame, way, CALL, leaf))
		return true;
	for (size_t i = 0; i < sizeof(others); i++)
		if (try(vm, blob, frame, (enum csink_hotspot_way)others[i], CALL, leaf))
			return true;
	return leaf_of_pushed(vm, blob, frame, leaf) || search(vm, blob, frame, leaf);
}

/* Stubs: those that compiled code calls, mostly. */
static bool leaf_of_stubs(const struct csink_hotspot *vm, const struct csink_hotspot_blob *blob,
			  const struct csink_made_frame *frame, struct csink_hotspot_leaf *leaf)
{
	static const uint8_t ways[] = {HOTSPOT_NONE, HOTSPOT_PUSHED, HOTSPOT_BY_FP};
	uint8_t code[16], before[1];
	enum csink_hotspot_way way = HOTSPOT_LOST;

	csink_hotspot_code(blob, frame->pc, code, sizeof(code));
	csink_hotspot_code(blob, frame->pc - 1, before, sizeof(before));
	if (is_enter(code) || code[0] == RET)
		way = HOTSPOT_NONE;
	else if (csink_hotspot_is_thaw(blob))
		return try(vm, blob, frame, HOTSPOT_BY_FP, CALL, leaf);
	else if (before[0] == PUSH_RBP && (!memcmp(code, "\x48\x8b\xec", 3) || !memcmp(code, "\x48\x89\xe5", 3)))
		way = HOTSPOT_PUSHED;
	else if (code[0] == LEAVE)
		way = HOTSPOT_BY_FP;
	if (way != HOTSPOT_LOST && try(vm, blob, frame, way, CALL, leaf))
		return true;
	for (size_t i = 0; i < sizeof(ways); i++)
		if (try(vm, blob, frame, (enum csink_hotspot_way)ways[i], CALL_OF_BLOB, leaf))
			return true;
	return try(vm, blob, frame, HOTSPOT_NONE, CALL, leaf) || search(vm, blob, frame, leaf) ||
	       try(vm, blob, frame, HOTSPOT_BY_FP, CALL, leaf);
}

/* The caller's stack pointer, before arguments were moved: in a register while a frame is made. */
static uintptr_t sender_sp(const struct csink_made_frame *frame, uintptr_t otherwise)
{
	uintptr_t sp = reg(frame, REG_R13);

	return sp >= otherwise && sp - otherwise < MAX_FRAME && sp % 8 == 0 ? sp : otherwise;
}

/* No frame is made, or none yet: the return address is on top of the stack, or in %rax for some instructions. */
static bool leaf_of_bare(const struct csink_hotspot *vm, const struct csink_hotspot_blob *blob,
			 const struct csink_made_frame *frame, struct csink_hotspot_leaf *leaf)
{
	bool has_sender = blob->kind == HOTSPOT_CODE_OF_INTERPRETER || blob->kind == HOTSPOT_ADAPTER;

	if (try(vm, blob, frame, HOTSPOT_NONE, CALL, leaf)) {
		leaf->cfa = has_sender ? sender_sp(frame, leaf->cfa) : leaf->cfa;
		return true;
	}
	if (return_to(vm, reg(frame, REG_RAX), blob->at) == NO_CALL)
		return try(vm, blob, frame, HOTSPOT_PUSHED, CALL, leaf) || search(vm, blob, frame, leaf);
	leaf->way = HOTSPOT_POPPED;
	leaf->ra = reg(frame, REG_RAX);
	leaf->fp = frame->fp;
	leaf->cfa = has_sender ? sender_sp(frame, frame->sp) : frame->sp;
	return true;
}

/*
 * Adapters: first the code by which the interpreter enters compiled code, which ends with jmp *%r11; the caller's stack
 * pointer is in %r13. Then the code by which compiled code enters the interpreter. It makes room for the arguments,
 * above which the return address is moved; only from then on %r13 has the caller's stack pointer. Before that it may
 * call the virtual machine, to have the caller call the compiled method from now on.
 */
enum adapter {
	ADAPTER_TOP,       /* the return address is on top of the stack */
	ADAPTER_RAX,       /* it is in %rax, and %r13 is not set yet */
	ADAPTER_MOVED,     /* it is on top, with the arguments behind it; %r13 is set */
	ADAPTER_MOVED_RAX, /* it is in %rax, and %r13 is set */
	ADAPTER_CALLS,     /* it is where %r13 points: the virtual machine is being called */
};

/* From the instruction on that sets %r13: where the return address is at `pc`. */
static enum adapter adapter_moves(const struct csink_hotspot_blob *blob, uintptr_t at, uintptr_t pc)
{
	bool in_rax = true;

	if (is_code(blob, at, "\x4c\x8d\x6c\x24\x08", 5)) { /* lea 8(%rsp), %r13; pop %rax */
		in_rax = pc > at + 5;
		at += 6;
	} else { /* pop %rax; mov %rsp, %r13 */
		if (pc == at + 1)
			return ADAPTER_RAX;
		at += 4;
	}
	if (is_code(blob, at, "\x48\x83\xec", 3)) /* sub $size, %rsp */
		at += 4;
	else if (is_code(blob, at, "\x48\x81\xec", 3))
		at += 7;
	at += is_code(blob, at, "\x50", 1) ? 1 : 4; /* push %rax; or mov %rax, (%rsp) */
	return in_rax && pc < at ? ADAPTER_MOVED_RAX : ADAPTER_MOVED;
}

static enum adapter adapter_state(const struct csink_hotspot_blob *blob, uintptr_t pc)
{
	enum adapter state = ADAPTER_MOVED;

	for (uintptr_t at = blob->code; at < pc && at - blob->code < MAX_ADAPTER; at++) {
		if (is_code(blob, at, "\x41\xff\xe3", 3) || is_code(blob, at, "\x49\x8b\xe5", 3)) {
			/* jmp *%r11; mov %r13, %rsp */
			state = at + 3 <= pc ? ADAPTER_TOP : state;
		} else if (is_code(blob, at, "\x4c\x8b\xec\x48\x8b\x04\x24", 7)) {
			/* mov %rsp, %r13; mov (%rsp), %rax */
			state = at + 3 <= pc ? ADAPTER_CALLS : state;
		} else if (state != ADAPTER_MOVED && (is_code(blob, at, "\x4c\x8d\x6c\x24\x08\x58", 6) ||
						      is_code(blob, at, "\x58\x4c\x8b\xec", 4))) {
			return at + (is_code(blob, at, "\x58", 1) ? 1 : 5) <= pc ? adapter_moves(blob, at, pc)
										 : ADAPTER_TOP;
		}
	}
	return state;
}

static bool leaf_of_adapter(const struct csink_hotspot *vm, const struct csink_hotspot_blob *blob,
			    const struct csink_made_frame *frame, struct csink_hotspot_leaf *leaf)
{
	enum adapter state = adapter_state(blob, frame->pc);
	uintptr_t sender = reg(frame, REG_R13);
	uint64_t ra = reg(frame, REG_RAX);

	switch (state) {
	case ADAPTER_TOP:
		return try(vm, blob, frame, HOTSPOT_NONE, CALL, leaf);
	case ADAPTER_RAX:
		sender = frame->sp;
		break;
	case ADAPTER_MOVED:
		/* Before the return address is pushed, what is there by chance may look like one. */
		if (is_code(blob, frame->pc, "\x50", 1) || is_code(blob, frame->pc, "\x48\x83\xe4", 3))
			break;
		return leaf_of_bare(vm, blob, frame, leaf);
	case ADAPTER_MOVED_RAX:
		break;
	case ADAPTER_CALLS:
		if (!load(frame, sender, &ra))
			return false;
		sender += 8;
		break;
	}
	if (return_to(vm, ra, blob->at) == NO_CALL || sender % 8 || sender < frame->sp ||
	    sender - frame->sp > MAX_FRAME)
		return leaf_of_bare(vm, blob, frame, leaf);
	*leaf = (struct csink_hotspot_leaf){.way = HOTSPOT_POPPED, .cfa = sender, .fp = frame->fp, .ra = ra};
	return true;
}

/* An interpreted frame that is there, or was just made: then what it has may be in registers still. */
static bool leaf_of_interpreted(const struct csink_hotspot *vm, const struct csink_hotspot_blob *blob,
				const struct csink_made_frame *frame, struct csink_hotspot_leaf *leaf)
{
	uint64_t sender;

	if (!try(vm, blob, frame, HOTSPOT_BY_FP, CALL, leaf))
		return false;
	leaf->way = HOTSPOT_INTERPRETED;
	if (frame->sp <= frame->fp + (uintptr_t)HOTSPOT_SENDER_SP &&
	    load(frame, frame->fp + (uintptr_t)HOTSPOT_SENDER_SP, &sender))
		leaf->cfa = sender;
	else
		leaf->cfa = sender_sp(frame, leaf->cfa);
	return leaf->cfa > frame->fp && leaf->cfa - frame->fp < MAX_FRAME;
}

/* leave; pop REGISTER; mov %rbx, %rsp; jmp *REGISTER: the end of an interpreted frame, up to the pop. */
static bool leaf_at_end(const struct csink_hotspot *vm, const struct csink_hotspot_blob *blob,
			const struct csink_made_frame *frame, struct csink_hotspot_leaf *leaf)
{
	static const uint8_t places[] = {1, 2, 5}; /* distances from leave */
	uint8_t code[16];

	for (size_t i = 0; i < sizeof(places); i++) {
		csink_hotspot_code(blob, frame->pc - places[i], code, sizeof(code));
		if (code[0] != LEAVE || (code[1] & 0xf8) != 0x58 ||
		    (memcmp(code + 2, "\x48\x8b\xe3", 3) != 0 && memcmp(code + 2, "\x48\x89\xdc", 3) != 0))
			continue;
		leaf->method = 0;
		if (places[i] == 1) {
			if (!try(vm, blob, frame, HOTSPOT_NONE, CALL, leaf))
				return false;
		} else {
			leaf->ra = numbered_reg(frame, code[1]);
			leaf->fp = frame->fp;
		}
		leaf->way = HOTSPOT_POPPED;
		leaf->cfa = CSINK_MAX(reg(frame, REG_RBX), frame->sp);
		return return_to(vm, leaf->ra, blob->at) != NO_CALL && leaf->cfa - frame->sp < MAX_FRAME;
	}
	return false;
}

/* Where the interpreter's code makes the frame of a method that it is about to run: before this instruction, none is
 * there. 0: the address is in no such code. */
static uintptr_t frame_is_made_at(const struct csink_hotspot *vm, const struct csink_hotspot_blob *blob, uintptr_t pc)
{
	enum { MAX_CODE = 1024 };
	uint32_t nr = vm->nr_entries;
	uint8_t code[4];

	for (uint32_t i = 0; i < nr; i++) {
		uintptr_t end = vm->entries[i + 1];

		if (pc - vm->entries[i] >= end - vm->entries[i])
			continue;
		for (uintptr_t at = vm->entries[i]; at < end && at - vm->entries[i] < MAX_CODE; at++) {
			csink_hotspot_code(blob, at, code, sizeof(code));
			if (is_enter(code))
				return at;
		}
		return UINTPTR_MAX; /* it never makes one */
	}
	return 0;
}

static bool leaf_of_interpreter(const struct csink_hotspot *vm, const struct csink_hotspot_blob *blob,
				const struct csink_made_frame *frame, struct csink_hotspot_leaf *leaf)
{
	uintptr_t made_at = frame_is_made_at(vm, blob, frame->pc);

	if (made_at) {
		leaf->method = reg(frame, REG_RBX);
		if (frame->pc <= made_at)
			return leaf_of_bare(vm, blob, frame, leaf);
		if (frame->pc == made_at + 1)
			return try(vm, blob, frame, HOTSPOT_PUSHED, CALL, leaf);
		/* From here on the frame has it, once it is stored. */
		if (frame->sp <= frame->fp + (uintptr_t)HOTSPOT_METHOD)
			leaf->method = 0;
	}
	return leaf_at_end(vm, blob, frame, leaf) || leaf_of_interpreted(vm, blob, frame, leaf);
}

/*
 * Stubs that handle an exception leave by a jump to the handler, which is in the caller. C2's has the address that the
 * exception came from in %rdx: pushed by the first instruction, and popped some instructions before the jump, while the
 * handler is in %rax, then in %r8. C1's has the handler where the return address was: leave; pop %rcx; jmp *%rcx.
 */
static bool leaf_at_jump(const struct csink_hotspot *vm, const struct csink_hotspot_blob *blob,
			 const struct csink_made_frame *frame, struct csink_hotspot_leaf *leaf)
{
	enum { MAX_BEHIND = 64 }; /* bytes from the pop to the jump */
	bool is_pushed = is_code(blob, blob->code, "\x52", 1), is_popped = is_pushed && frame->pc == blob->code;
	struct csink_hotspot_blob to;
	uintptr_t target = 0;
	uint8_t code[4];

	csink_hotspot_code(blob, frame->pc, code, sizeof(code));
	*leaf = (struct csink_hotspot_leaf){
		.way = HOTSPOT_POPPED, .cfa = frame->sp, .fp = frame->fp, .ra = reg(frame, REG_RDX)};
	if (code[0] == 0xff && (code[1] & 0xf8) == 0xe0) { /* jmp *%rax and others */
		is_popped = true;
		target = numbered_reg(frame, code[1]);
	} else if (!memcmp(code, "\xc9\x59\xff\xe1", 4)) {
		return follow(blob, frame, HOTSPOT_BY_FP, leaf) && csink_hotspot_blob(vm, leaf->ra, &to) &&
		       to.kind == HOTSPOT_COMPILED;
	}
	for (uintptr_t at = frame->pc; is_pushed && !is_popped && at > blob->code && frame->pc - at < MAX_BEHIND;
	     at--) {
		is_popped = is_code(blob, at, "\x5a\x4c\x8b\xc0", 4) ||
			    is_code(blob, at, "\x5a\x49\x89\xc0", 4); /* pop %rdx; mov %rax, %r8 */
		if (is_popped && at == frame->pc)
			return try(vm, blob, frame, HOTSPOT_NONE, CALL, leaf);
		target = reg(frame, at + 1 == frame->pc ? REG_RAX : REG_R8);
	}
	if (!is_popped)
		return false;
	if (return_to(vm, leaf->ra, 0) != NO_CALL)
		return true;
	leaf->ra = target;
	return csink_hotspot_blob(vm, target, &to) && to.kind == HOTSPOT_COMPILED;
}

/* Code without a frame of its own that the virtual machine calls: the first return address. It may use the frame
 * pointer for something else, and has pushed the caller's first. */
static bool leaf_of_native(const struct csink_hotspot *vm, const struct csink_hotspot_blob *blob,
			   const struct csink_made_frame *frame, struct csink_hotspot_leaf *leaf)
{
	uint64_t ra, fp;

	if (blob->frame_bytes)
		return false;
	for (uintptr_t at = frame->sp; at < frame->sp + 8 * MAX_SEARCH; at += 8) {
		if (!load(frame, at, &ra))
			return false;
		if (ra - vm->low < vm->high - vm->low || return_to(vm, ra, 0) == NO_CALL)
			continue;
		if (!load(frame, at - 8, &fp) || fp <= at || fp - at > MAX_FRAME)
			fp = frame->fp;
		*leaf = (struct csink_hotspot_leaf){.way = HOTSPOT_POPPED, .cfa = at + 8, .fp = fp, .ra = ra};
		return true;
	}
	return false;
}

/* By the record of the thread's last Java frame, which is there while the thread runs other code. Stubs run with the
 * thread in %r15. */
static bool leaf_by_anchor(const struct csink_hotspot *vm, const struct csink_made_frame *frame,
			   struct csink_hotspot_leaf *leaf)
{
	uintptr_t thread = reg(frame, REG_R15), anchor = thread + vm->at[HOTSPOT_THREAD_ANCHOR];
	uint64_t os, self, sp, pc, fp;

	if (thread % 8 || !load(frame, thread + vm->at[HOTSPOT_THREAD_OS], &os) ||
	    !load(frame, os + vm->at[HOTSPOT_OS_PTHREAD], &self) || self != (uint64_t)(uintptr_t)pthread_self() ||
	    !load(frame, anchor + vm->at[HOTSPOT_ANCHOR_SP], &sp) ||
	    !load(frame, anchor + vm->at[HOTSPOT_ANCHOR_PC], &pc) ||
	    !load(frame, anchor + vm->at[HOTSPOT_ANCHOR_FP], &fp))
		return false;
	if (sp <= frame->sp || (!pc && !load(frame, sp - 8, &pc)))
		return false;
	*leaf = (struct csink_hotspot_leaf){.way = HOTSPOT_POPPED, .cfa = sp, .fp = fp, .ra = pc};
	return return_to(vm, pc, 0) != NO_CALL;
}

/*
 * The callers were moved to the heap with a virtual thread, and come back one by one: where the last of the frames that
 * are here returns to brings the next one. Behind them on the stack, perhaps behind arguments, is the frame that runs
 * the virtual thread. JDK 21 does not export what code that is of: its return address is the first word that is one.
 */
static bool step_over_barrier(const struct csink_hotspot *vm, struct csink_made_frame *frame)
{
	uintptr_t pc = vm->bytes[HOTSPOT_RETURN_PC] ? csink_load_known(vm->at[HOTSPOT_RETURN_PC]) : 0;
	struct csink_hotspot_blob blob;
	bool is_known = pc && csink_hotspot_blob(vm, pc, &blob) && blob.frame_bytes;
	uint32_t nr = is_known ? MAX_SEARCH : MAX_SEARCH + MAX_ENTRY;

	for (uintptr_t sp = frame->sp; sp <= frame->sp + 8UL * nr; sp += 8) {
		struct csink_made_frame at = {.sp = sp, .load = frame->load};
		struct csink_hotspot_leaf leaf;

		/* Java runs it. */
		if (!follow(is_known ? &blob : NULL, &at, is_known ? HOTSPOT_WHOLE : HOTSPOT_PUSHED, &leaf) ||
		    leaf.ra - vm->low >= vm->high - vm->low || return_to(vm, leaf.ra, 0) == NO_CALL)
			continue;
		go_to_caller(frame, &leaf);
		return true;
	}
	return false;
}

/* The native method that suspends a virtual thread has left its stack for the frame that runs it. */
static bool leaf_of_suspending(const struct csink_hotspot *vm, const struct csink_hotspot_blob *blob,
			       const struct csink_made_frame *frame, struct csink_hotspot_leaf *leaf)
{
	struct csink_made_frame at = *frame;

	if (vm->version < FIRST_WITH_VIRTUAL || blob->kind != HOTSPOT_WRAPPER || frame->fp >= frame->sp ||
	    !step_over_barrier(vm, &at))
		return false;
	*leaf = (struct csink_hotspot_leaf){.way = HOTSPOT_POPPED, .cfa = at.sp, .fp = at.fp, .ra = at.pc};
	return true;
}

bool csink_hotspot_leaf(const struct csink_hotspot *vm, const struct csink_hotspot_blob *blob,
			const struct csink_made_frame *frame, struct csink_hotspot_leaf *leaf)
{
	bool is_found;

	*leaf = (struct csink_hotspot_leaf){.way = HOTSPOT_LOST};
	switch (blob->kind) {
	case HOTSPOT_CODE_OF_INTERPRETER:
		is_found = leaf_of_interpreter(vm, blob, frame, leaf);
		break;
	case HOTSPOT_STUBS:
		is_found = leaf_of_stubs(vm, blob, frame, leaf);
		break;
	case HOTSPOT_ADAPTER:
		is_found = leaf_of_adapter(vm, blob, frame, leaf);
		break;
	case HOTSPOT_BARE:
		is_found = leaf_of_bare(vm, blob, frame, leaf);
		break;
	default:
		is_found = (blob->kind == HOTSPOT_OTHER && leaf_at_jump(vm, blob, frame, leaf)) ||
			   (blob->frame_bytes ? leaf_of_fixed(vm, blob, frame, leaf)
					      : leaf_of_bare(vm, blob, frame, leaf));
	}
	if (!is_found)
		is_found = blob->kind == HOTSPOT_OTHER && leaf_of_native(vm, blob, frame, leaf);
	if (!is_found)
		return leaf_by_anchor(vm, frame, leaf) || leaf_of_suspending(vm, blob, frame, leaf);
	if (blob->kind == HOTSPOT_OTHER)
		skip_arguments(vm, frame, leaf);
	return true;
}

/* ---- frames that called ------------------------------------------------------------------------------------------ */

static bool step_interpreted(struct csink_made_frame *frame)
{
	uint64_t sender, fp, ra;

	if (frame->fp % 8 || frame->fp < frame->sp || frame->fp - frame->sp > MAX_FRAME ||
	    !load(frame, frame->fp, &fp) || !load(frame, frame->fp + 8, &ra) ||
	    !load(frame, frame->fp + (uintptr_t)HOTSPOT_SENDER_SP, &sender) || sender <= frame->fp ||
	    sender - frame->fp > MAX_FRAME)
		return false;
	frame->sp = sender;
	frame->fp = fp;
	frame->pc = ra;
	return true;
}

/* Where Java returns to native code, which has called a stub by its address. */
static bool is_call_stub(const struct csink_hotspot *vm, uintptr_t pc)
{
	return vm->bytes[HOTSPOT_CALL_RETURN] && csink_load_known(vm->at[HOTSPOT_CALL_RETURN]) == pc;
}

/* The adapter has all registers on the stack while it calls, above room for those of floating point. */
static bool step_adapter(const struct csink_hotspot_blob *blob, struct csink_made_frame *frame)
{
	enum { MAX_CODE = 64, SLOT = 16 };
	uint32_t bytes = 0;
	uint64_t at, ra;

	for (uintptr_t code = frame->pc; code > blob->code && frame->pc - code < MAX_CODE && !bytes; code--)
		if (is_code(blob, code, "\x48\x81\xec", 3))
			csink_hotspot_code(blob, code + 3, (uint8_t *)&bytes, sizeof(bytes));
	if (!bytes || !load(frame, frame->sp + bytes + SLOT, &at) || at % 8 || at < frame->sp ||
	    at - frame->sp > MAX_FRAME || !load(frame, at, &ra))
		return false;
	frame->sp = at + 8;
	frame->pc = ra;
	return true;
}

/* Stubs of a fixed frame, or of none. Some align the stack before they call. */
static bool step_stub(const struct csink_hotspot *vm, const struct csink_hotspot_blob *blob,
		      struct csink_made_frame *frame)
{
	enum csink_hotspot_way way = blob->frame_bytes ? HOTSPOT_WHOLE : HOTSPOT_NONE;
	struct csink_made_frame at = {.pc = frame->pc, .sp = frame->sp, .fp = frame->fp, .load = frame->load};
	struct csink_hotspot_leaf leaf;

	for (int i = 0; i < 2; i++, at.sp += 8)
		if (try(vm, blob, &at, way, CALL, &leaf)) {
			go_to_caller(frame, &leaf);
			return true;
		}
	return false;
}

static bool step_caller(const struct csink_hotspot *vm, const struct csink_hotspot_blob *blob,
			struct csink_made_frame *frame)
{
	enum csink_hotspot_way way = blob->frame_bytes ? HOTSPOT_WHOLE : HOTSPOT_BY_FP;
	struct csink_hotspot_leaf leaf;

	if (blob->kind == HOTSPOT_CODE_OF_INTERPRETER)
		return step_interpreted(frame);
	if (blob->kind == HOTSPOT_ADAPTER && step_adapter(blob, frame))
		return true;
	if (blob->kind == HOTSPOT_OTHER && step_stub(vm, blob, frame))
		return true;
	if (blob->kind == HOTSPOT_STUBS) {
		way = HOTSPOT_BY_FP;
		if (!csink_hotspot_is_called(blob, frame->pc))
			return (vm->bytes[HOTSPOT_RETURN_PC] || is_barrier(blob, frame->pc)) &&
			       step_over_barrier(vm, frame);
		if (csink_hotspot_is_thaw(blob)) {
			if (!try(vm, blob, frame, HOTSPOT_BY_FP, CALL, &leaf))
				return false;
			go_to_caller(frame, &leaf);
			return true;
		}
	}
	if (!follow(blob, frame, way, &leaf) && (way != HOTSPOT_BY_FP || !search(vm, blob, frame, &leaf)))
		return false;
	/* Stubs that push all registers keep the caller's frame pointer. */
	if (blob->kind == HOTSPOT_STUBS && !is_call_stub(vm, frame->pc) &&
	    return_to(vm, leaf.ra, blob->at) != CALL_OF_BLOB)
		search(vm, blob, frame, &leaf);
	go_to_caller(frame, &leaf);
	return true;
}

enum csink_made_step csink_hotspot_step(struct csink_made_frame *frame)
{
	const struct csink_hotspot *vm = csink_hotspot_get();
	struct csink_hotspot_blob blob;
	struct csink_hotspot_leaf leaf;

	if (!vm || !csink_hotspot_blob(vm, frame->pc, &blob))
		return CSINK_MADE_NOT;
	if (!frame->context)
		return step_caller(vm, &blob, frame) ? CSINK_MADE_CALLER : CSINK_MADE_CUT;
	if (!csink_hotspot_leaf(vm, &blob, frame, &leaf))
		return CSINK_MADE_CUT;
	go_to_caller(frame, &leaf);
	return CSINK_MADE_CALLER;
}

#else

bool csink_hotspot_is_called(const struct csink_hotspot_blob *blob, uintptr_t ra)
{
	(void)blob;
	(void)ra;
	return false;
}

enum csink_made_step csink_hotspot_step(struct csink_made_frame *frame)
{
	(void)frame;
	return CSINK_MADE_NOT;
}

bool csink_hotspot_leaf(const struct csink_hotspot *vm, const struct csink_hotspot_blob *blob,
			const struct csink_made_frame *frame, struct csink_hotspot_leaf *leaf)
{
	(void)vm;
	(void)blob;
	(void)frame;
	(void)leaf;
	return false;
}

#endif
