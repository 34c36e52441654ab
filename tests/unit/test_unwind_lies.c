/*
 * Walks over stacks that lie, and up to limits. Each must end with a reason; none may fault.
 */
#include "tests/unit/walk_seen.h"

#include <dlfcn.h>
#include <sys/mman.h>

/* ---- stacks that lie --------------------------------------------------------------------------------------------- */

static void check_context(uint64_t pc, uint64_t sp, uint64_t fp, const char *what)
{
	ucontext_t uc;

	getcontext(&uc);
	set_context(&uc, pc, sp, fp);
	expect(&main_stack, CSINK_MAX_DEPTH);
	take(&uc);
	if (!ok(seen.walk.end == CSINK_WALK_BAD_STACK || seen.walk.end == CSINK_WALK_NO_CFI, "%s ends with a reason",
		what))
		print_walk();
}

static void check_lies(void)
{
	uint64_t *page = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t pc = (uintptr_t)check_context + 20, unmapped = (uintptr_t)page + 4096,
		 made_pc = (uintptr_t)make_code();

	mprotect(page + 512, 4096, PROT_NONE);
	check_context(pc, unmapped, unmapped, "a stack pointer to unmapped memory");
	check_context(pc, unmapped - 8, unmapped - 8, "a stack pointer just before unmapped memory");
	check_context(pc, 16, 16, "a stack pointer near 0");
	check_context(pc, UINT64_MAX - 63, UINT64_MAX - 63, "a stack pointer near the end of memory");
	check_context(pc, 0xffff888000000000, 0xffff888000000000, "a stack pointer in the kernel");
	check_context(0x123456789abcdef0, unmapped, (uintptr_t)page, "a program counter that is no address");
	check_context(made_pc, (uintptr_t)page, unmapped, "code without tables and a bad frame pointer");
	check_context(made_pc, (uintptr_t)page, 3, "an unaligned one");
	page[0] = (uintptr_t)page; /* a frame that is its own caller */
	page[1] = made_pc + 4;
	check_context(made_pc, (uintptr_t)page, (uintptr_t)page, "a chain of frames that comes round");
	for (int i = 0; i < 512; i++)
		page[i] = (uintptr_t)check_context + 20;
	check_context(pc, (uintptr_t)page, (uintptr_t)page, "return addresses all over the stack");
	for (int i = 0; i < 512; i++)
		page[i] = 0xdeadbeef00000000 + (uint64_t)i;
	check_context(pc, (uintptr_t)page, (uintptr_t)page, "garbage all over the stack");
	munmap(page, 3 * 4096);
}

NOINLINE static void overwrite_caller(uint64_t garbage)
{
	volatile uint64_t *slot = (uint64_t *)__builtin_frame_address(0) + 1;
	uint64_t kept = *slot;

	*slot = garbage;
	inner();
	*slot = kept;
}

static void check_overwritten(void)
{
	expect(&main_stack, CSINK_MAX_DEPTH);
	overwrite_caller(0xdeadbeefdeadbeef);
	ok(frame_in(overwrite_caller) == (int)seen.walk.nr_frames - 1,
	   "an overwritten return address ends the walk there");
	is_end(CSINK_WALK_BAD_STACK, "the walk at an overwritten return address ends with a reason");
	expect(&main_stack, CSINK_MAX_DEPTH);
	overwrite_caller((uintptr_t)&main_stack);
	ok(frame_in(overwrite_caller) == (int)seen.walk.nr_frames - 1, "a return address outside code is no caller");
	is_end(CSINK_WALK_BAD_STACK, "the walk at a return address outside code ends with a reason");
}

#if defined(__x86_64__)
/* A handler of exceptions, as compilers put it behind a function's return; what jumps there; an outermost function. */
__asm__(".text\n"
	"handling:\n"
	"	.cfi_startproc\n"
	"	sub $24, %rsp\n"
	"	.cfi_def_cfa_offset 32\n"
	"	call jumping\n"
	"	.cfi_remember_state\n"
	"	add $24, %rsp\n"
	"	.cfi_def_cfa_offset 8\n"
	"	ret\n"
	"	.cfi_restore_state\n"
	"handler:\n"
	"	nop\n"
	"	.cfi_endproc\n"
	"jumping:\n"
	"	.cfi_startproc\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"outermost:\n"
	"	.cfi_startproc\n"
	"	.cfi_undefined rip\n"
	"	call handling\n"
	"outermost_called:\n"
	"	nop\n"
	"	.cfi_endproc\n");
extern char handler[], jumping[], outermost_called[];

static void check_handler(void)
{
	volatile uint64_t words[16] = {(uintptr_t)handler, 1, 2, 3, (uintptr_t)outermost_called};
	ucontext_t uc;

	getcontext(&uc);
	set_context(&uc, (uintptr_t)jumping, (uintptr_t)words, 0);
	expect(&main_stack, CSINK_MAX_DEPTH);
	take(&uc);
	if (!ok(seen.walk.nr_frames == 2 && seen.frames[0] == ((uintptr_t)handler | CSINK_FRAME_EXACT) &&
			seen.frames[1] == (uintptr_t)outermost_called,
		"where a return leads to a handler, the handler's own rules hold"))
		print_walk();
	is_end(CSINK_WALK_COMPLETE, "the walk through a handler is complete");
}
#else
static void check_handler(void)
{
}
#endif

/* Walks over stacks of random words that look like addresses of code and stack. */
static void check_random(void)
{
	uint64_t *page = mmap(NULL, 2 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
		 seed = 88172645463325252;
	Dl_info libc = {0};
	unsigned long ends[CSINK_WALK_NR_ENDS] = {0};

	mprotect(page + 512, 4096, PROT_NONE);
	dladdr((void *)&raise, &libc);
	for (volatile int round = 0; round < 20000; round++) {
		ucontext_t uc;

		for (int i = 0; i < 64; i++) {
			seed ^= seed << 13;
			seed ^= seed >> 7;
			seed ^= seed << 17;
			page[448 + i] = seed & 1   ? (uintptr_t)libc.dli_fbase + seed / 2 % 0x180000
					: seed & 2 ? (uintptr_t)page + seed / 4 % 8192
						   : seed;
		}
		getcontext(&uc);
		set_context(&uc, (uintptr_t)libc.dli_fbase + 0x26000 + seed % 0x150000, (uintptr_t)(page + 448),
			    (uintptr_t)(page + 450 + seed % 60));
		expect(&main_stack, CSINK_MAX_DEPTH);
		take(&uc);
		ends[seen.walk.end]++;
	}
	ok(ends[CSINK_WALK_BAD_STACK] + ends[CSINK_WALK_NO_CFI] > 0, "20,000 walks over random stacks are survived");
	printf("# complete %lu, depth %lu, no tables %lu, bad stack %lu\n", ends[0], ends[1], ends[2], ends[3]);
	munmap(page, 2 * 4096);
}

/* ---- limits ------------------------------------------------------------------------------------------------------ */

NOINLINE static int recurse(int depth)
{
	volatile int kept = depth;

	if (depth)
		return recurse(depth - 1) + kept;
	raise(SIGPROF);
	return kept;
}

static void check_depth(void)
{
	static const uint32_t limits[] = {0, 1, 7, 8, 9, 30, CSINK_MAX_DEPTH};

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(limits); i++) {
		expect(&main_stack, limits[i]);
		seen.frames[limits[i]] = 4711;
		recurse(CSINK_MAX_DEPTH + 10);
		ok(seen.walk.end == CSINK_WALK_DEPTH && seen.walk.nr_frames == limits[i] &&
			   seen.frames[limits[i]] == 4711,
		   "a limit of %u frames is kept", limits[i]);
	}
	expect(&main_stack, CSINK_MAX_DEPTH);
	recurse(0);
	seen.max_frames = seen.walk.nr_frames;
	recurse(0);
	is_end(CSINK_WALK_COMPLETE, "a walk that just fits is complete");
	seen.max_frames--;
	recurse(0);
	is_end(CSINK_WALK_DEPTH, "a walk with one frame more than fits ends at the depth limit");
}

int main(void)
{
	static const void *const functions[] = {inner, overwrite_caller, check_overwritten};

	start_seeing(functions, CSINK_ARRAY_SIZE(functions));
	check_lies();
	check_overwritten();
	check_handler();
	check_random();
	check_depth();
	return done();
}
