/*
 * Walks that a test takes from inside its signal handlers, and the questions that it asks of them; shared by the tests
 * of walks that are not plain.
 */
#ifndef CSINK_TESTS_WALK_SEEN_H
#define CSINK_TESTS_WALK_SEEN_H

#include "include/internal/base.h"
#include "tests/unit/tap.h"
#include "tests/unit/walk_setup.h"

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#define NOINLINE __attribute__((noinline, noclone, noipa))

__attribute__((unused)) static const struct csink_stack_bounds unknown_stack;
static struct csink_stack_bounds main_stack;

static struct {
	void (*walker)(struct csink_walk *walk, const ucontext_t *uc);
	const struct csink_stack_bounds *stack;
	uint32_t max_frames;
	struct csink_walk walk;
	uint64_t frames[CSINK_MAX_DEPTH + 1];
	uint64_t pc;
} seen;

static void take(const ucontext_t *uc)
{
	seen.walk = (struct csink_walk){.stack = seen.stack, .frames = seen.frames, .max_frames = seen.max_frames};
	seen.pc = csink_context_pc(uc);
	(seen.walker ? seen.walker : csink_walk_dwarf)(&seen.walk, uc);
}

static void on_sample(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)info;
	take(context);
}

static void expect(const struct csink_stack_bounds *stack, uint32_t max_frames)
{
	memset(&seen, 0, sizeof(seen));
	seen.stack = stack;
	seen.max_frames = max_frames;
}

static void handle(int sig, void (*handler)(int, siginfo_t *, void *), int flags)
{
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags};

	sigfillset(&action.sa_mask);
	sigdelset(&action.sa_mask, SIGPROF);
	sigdelset(&action.sa_mask, SIGSEGV);
	sigaction(sig, &action, NULL);
}

/* What frame_in() may be asked for, to distinguish them; set by main. */
static const void *known[16];
static int nr_known;

/* The known function that begins last before an address is the one that holds it, or something behind it does. */
static int is_in(uint64_t address, const void *function)
{
	uint64_t plain = address & ~CSINK_FRAME_EXACT, start = (uintptr_t)function;

	for (int i = 0; i < nr_known; i++)
		if ((uintptr_t)known[i] <= plain && (uintptr_t)known[i] > start)
			return 0;
	return plain >= start && plain - start < 1000;
}

/* The index of the first frame in a function, or -1. */
__attribute__((unused)) static int frame_in(const void *function)
{
	for (uint32_t i = 0; i < seen.walk.nr_frames; i++)
		if (is_in(seen.frames[i] & CSINK_FRAME_EXACT ? seen.frames[i] : seen.frames[i] - 1, function))
			return (int)i;
	return -1;
}

static void print_walk(void)
{
	printf("#   pc %#lx, end %d, %u checks of frames\n", (long)seen.pc, seen.walk.end, seen.walk.nr_frames);
	for (uint32_t i = 0; i < seen.walk.nr_frames; i++)
		printf("#   %s %#lx\n", seen.frames[i] & CSINK_FRAME_EXACT ? "exact" : "     ",
		       (long)(seen.frames[i] & ~CSINK_FRAME_EXACT));
}

__attribute__((unused)) static void is_end(enum csink_walk_end end, const char *what)
{
	if (!ok(seen.walk.end == end, "%s", what))
		print_walk();
}

static volatile int spin;

__attribute__((unused)) NOINLINE static void inner(void)
{
	raise(SIGPROF);
	spin++;
}

__attribute__((unused)) static void set_context(ucontext_t *uc, uint64_t pc, uint64_t sp, uint64_t fp)
{
#if defined(__x86_64__)
	uc->uc_mcontext.gregs[REG_RIP] = (greg_t)pc;
	uc->uc_mcontext.gregs[REG_RSP] = (greg_t)sp;
	uc->uc_mcontext.gregs[REG_RBP] = (greg_t)fp;
#elif defined(__aarch64__)
	uc->uc_mcontext.pc = pc;
	uc->uc_mcontext.sp = sp;
	uc->uc_mcontext.regs[29] = fp;
#endif
}

/* What a just-in-time compiler might make: a function that calls its argument. */
#if defined(__x86_64__)
/* push %rbp; mov %rsp, %rbp; call *%rdi; pop %rbp; ret */
static const unsigned char made_code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
#elif defined(__aarch64__)
/* stp x29, x30, [sp, -16]!; mov x29, sp; blr x0; ldp x29, x30, [sp], 16; ret */
static const unsigned char made_code[] = {0xfd, 0x7b, 0xbf, 0xa9, 0xfd, 0x03, 0x00, 0x91, 0x00, 0x00,
					  0x3f, 0xd6, 0xfd, 0x7b, 0xc1, 0xa8, 0xc0, 0x03, 0x5f, 0xd6};
#endif

__attribute__((unused)) static unsigned char *make_code(void)
{
	unsigned char *made = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memcpy(made, made_code, sizeof(made_code));
	__builtin___clear_cache((char *)made, (char *)made + sizeof(made_code));
	return made;
}

/* The snapshot, the walker, the handler; what frame_in() may be asked for. */
static void start_seeing(const void *const *functions, int nr)
{
	is_num(setup_modules(), 0, "a module snapshot is there");
	is_num(csink_walk_dwarf_init(), 0, "the walker is ready");
	main_stack = setup_stack();
	memcpy(known, functions, (size_t)nr * sizeof(*functions));
	nr_known = nr;
	handle(SIGPROF, on_sample, 0);
}

#endif
