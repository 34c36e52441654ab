/*
 * Walks through code without tables: what a just-in-time compiler made, assembly, the ends of objects. Each must end
 * with the truth, or with a reason.
 */
#include "tests/unit/walk_seen.h"

/* ---- code without tables ----------------------------------------------------------------------------------------- */

NOINLINE static void call_made(void (*function)(void (*)(void)))
{
	function(inner);
	spin++;
}

static void check_made_code(void)
{
	unsigned char *made = make_code();
	int at;

	expect(&main_stack, CSINK_MAX_DEPTH);
	call_made((void (*)(void (*)(void)))(void *)made);
	at = frame_in(inner);
	ok(at >= 0 && is_in(seen.frames[at + 1], made), "code made at run time is walked by its frame pointer");
	ok(frame_in(call_made) == at + 2, "callers of generated code are walked by their tables");
	is_end(CSINK_WALK_COMPLETE, "the walk through generated code is complete");
}

#if defined(__x86_64__)
extern char _fini[];

/* Some address that is returned to. */
NOINLINE static uint64_t return_address(void)
{
	return (uintptr_t)__builtin_return_address(0);
}

/* The same, of a call that says what it calls. */
NOINLINE static uint64_t direct_return_address(void)
{
	return return_address();
}

/* A program that was just there, @at bytes in, with these words on its stack: where does it come from? */
static uint64_t caller_there(uintptr_t pc, uint64_t top, uint64_t next, uint64_t fp)
{
	volatile uint64_t words[16] = {top, next};
	ucontext_t uc;

	getcontext(&uc);
	set_context(&uc, pc, (uintptr_t)words, fp);
	expect(&main_stack, CSINK_MAX_DEPTH);
	take(&uc);
	return seen.walk.nr_frames ? seen.frames[0] : 0;
}

/* Code of the C runtime without tables has a word on its stack that it never writes: old addresses lie there. */
static void check_objects_end(void)
{
	uint64_t (*volatile call)(void) = return_address;
	uint64_t old = call(), from = call();
	uintptr_t fini = (uintptr_t)_fini;

	while (memcmp((void *)fini, "\x48\x83\xec\x08", 4)) /* after endbr64, where there is one */
		fini++;
	is_num((long)caller_there(fini, from, old, 0), (long)from,
	       "_fini without unwind rules: the caller, before the first instruction");
	is_num((long)caller_there(fini + 4, old, from, 0), (long)from,
	       "_fini without unwind rules: the caller, after the first instruction");
	is_num((long)caller_there(fini + 8, from, old, 0), (long)from,
	       "_fini without unwind rules: the caller, before the last instruction");
	is_num((long)caller_there(fini + 8, 0x7ffe0010, from, 0x7ffe0010), (long)from,
	       "_fini without unwind rules: the caller, where a frame pointer was just saved");
}

/* Assembly without tables, as compilers' and libraries' own is, far from all else. */
__asm__(".text\n"
	".skip 20000, 0x90\n"
	"bare:\n"
	"	push %rbp\n"
	"	mov %rsp, %rbp\n"
	"bare_framed:\n"
	"	nop\n"
	"	call bare\n"
	"bare_called:\n"
	"	pop %rbp\n"
	"bare_end:\n"
	"	ret\n"
	".skip 20000, 0x90\n");
extern char bare_framed[], bare_called[], bare_end[];

/* Where made code's frame is not there yet, or no more, the frame pointer is its caller's. */
static void check_made_edges(void)
{
	uint64_t (*volatile call)(void) = return_address;
	uint64_t from = call(), callers = direct_return_address();
	volatile uint64_t frame[2] = {0, callers};
	uintptr_t made = (uintptr_t)make_code();

	is_num((long)caller_there(made, from, 0, (uintptr_t)frame), (long)from,
	       "generated code: the caller, at the first instruction");
	is_num((long)caller_there(made + 1, (uintptr_t)frame, from, (uintptr_t)frame), (long)from,
	       "generated code: the caller, after the push of the frame pointer");
	is_num((long)caller_there(made + sizeof(made_code) - 1, from, 0, (uintptr_t)frame), (long)from,
	       "generated code: the caller, at the return instruction");
}

static void check_assembly(void)
{
	uint64_t (*volatile call)(void) = return_address;
	uint64_t from = call(), elsewhere = direct_return_address(), framed = (uintptr_t)bare_framed;
	volatile uint64_t words[16] = {0, from};
	uint64_t frame = (uintptr_t)words;
	ucontext_t uc;

	is_num((long)caller_there(framed, elsewhere, 0, frame), (long)from,
	       "assembly: an old return address on top of the stack does not hide the frame");
	is_num((long)caller_there((uintptr_t)bare_end, elsewhere, 0, frame), (long)elsewhere,
	       "assembly: the return address on top of the stack is used at the return instruction");
	is_num((long)caller_there(framed, (uintptr_t)bare_called, 0, 0), (long)bare_called,
	       "assembly: a return address within the same function is accepted");
	is_end(CSINK_WALK_NO_CFI, "an empty register, of which no frame was made, is no end of the stack");

	getcontext(&uc);
	words[3] = (uintptr_t)bare_called;
	words[8] = 0;
	words[9] = from;
	set_context(&uc, framed, frame, (uintptr_t)&words[8]);
	expect(&main_stack, CSINK_MAX_DEPTH);
	take(&uc);
	if (!ok(seen.walk.nr_frames >= 2 && seen.frames[0] == words[3] && seen.frames[1] == from,
		"registers that were pushed do not hide the caller"))
		print_walk();

	words[0] = (uintptr_t)&words[4];
	words[1] = (uintptr_t)bare_called;
	words[5] = from;
	set_context(&uc, framed, frame, frame);
	expect(&main_stack, CSINK_MAX_DEPTH);
	take(&uc);
	if (!ok(seen.walk.nr_frames >= 2 && seen.frames[0] == words[1] && seen.frames[1] == from,
		"a frame that was just made leads to the caller's"))
		print_walk();
}
#else
static void check_objects_end(void)
{
}

static void check_made_edges(void)
{
}

static void check_assembly(void)
{
}
#endif

int main(void)
{
	static const void *const functions[] = {inner, call_made};

	start_seeing(functions, CSINK_ARRAY_SIZE(functions));
	check_made_code();
	check_objects_end();
	check_made_edges();
	check_assembly();
	return done();
}
