/*
 * Walks that are not plain: through signal frames, from other stacks, through code without tables, over stacks that
 * lie. Each must end with the truth, or with a reason; none may fault.
 */
#include "preload/sample/cfi_row.h"
#include "tests/unit/tap.h"
#include "tests/unit/walk_setup.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#define NOINLINE __attribute__((noinline, noclone, noipa))

static const struct csink_stack_bounds unknown_stack;
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

/* What frame_in() may be asked for, for telling them apart; set by main. */
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
static int frame_in(const void *function)
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

static void is_end(enum csink_walk_end end, const char *what)
{
	if (!ok(seen.walk.end == end, "%s", what))
		print_walk();
}

/* ---- signal frames ----------------------------------------------------------------------------------------------- */

static volatile int spin;

NOINLINE static void inner(void)
{
	raise(SIGPROF);
	spin++;
}

static void on_outer(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)info;
	(void)context;
	inner();
	spin++;
}

NOINLINE static void interrupted(void)
{
	raise(SIGUSR1);
	spin++;
}

static void check_signal_frames(void (*walker)(struct csink_walk *walk, const ucontext_t *uc), const char *where)
{
	int handler, exact = 0;

	expect(&main_stack, CSINK_MAX_DEPTH);
	seen.walker = walker;
	interrupted();
	handler = frame_in(on_outer);
	for (uint32_t i = 0; i < seen.walk.nr_frames; i++)
		exact += !!(seen.frames[i] & CSINK_FRAME_EXACT);
	ok(frame_in(inner) >= 0 && handler > frame_in(inner), "a walk inside a handler %s meets the handler", where);
	if (!ok(exact == 2 && seen.frames[handler + 1] & CSINK_FRAME_EXACT &&
			seen.frames[handler + 2] & CSINK_FRAME_EXACT,
		"then the trampoline and what was interrupted, both exact"))
		print_walk();
	ok(frame_in(interrupted) > handler && frame_in(check_signal_frames) > frame_in(interrupted),
	   "then the interrupted function and its caller");
	is_end(CSINK_WALK_COMPLETE, "up to the outermost frame");
}

static void check_signals(void)
{
	static char room[65536];
	stack_t stack = {.ss_sp = room, .ss_size = sizeof(room)};

	char reason[160];
	int err = csink_libunwind_init(reason);

	handle(SIGUSR1, on_outer, 0);
	check_signal_frames(csink_walk_dwarf, "on the same stack");
	sigaltstack(&stack, NULL);
	handle(SIGUSR1, on_outer, SA_ONSTACK);
	check_signal_frames(csink_walk_dwarf, "on its own stack");
	if (err)
		skip("libunwind's walk inside a handler on its own stack", reason);
	else
		check_signal_frames(csink_walk_libunwind, "on its own stack, by libunwind");
	stack.ss_flags = SS_DISABLE;
	sigaltstack(&stack, NULL);
}

static sigjmp_buf back;

static void on_fault(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)info;
	take(context);
	siglongjmp(back, 1);
}

NOINLINE static void call_nothing(void (*nothing)(void))
{
	nothing();
	spin++;
}

static void check_call_of_nothing(void)
{
	void *unmapped = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	handle(SIGSEGV, on_fault, 0);
	expect(&main_stack, CSINK_MAX_DEPTH);
	if (!sigsetjmp(back, 1))
		call_nothing(NULL);
	if (!ok(seen.pc == 0 && frame_in(call_nothing) == 0, "a call of address 0: its caller is found"))
		print_walk();
	is_end(CSINK_WALK_COMPLETE, "and all of its callers");
	expect(&main_stack, CSINK_MAX_DEPTH);
	if (!sigsetjmp(back, 1))
		call_nothing((void (*)(void))unmapped);
	ok(frame_in(call_nothing) == 0, "likewise of memory that is not there");
	munmap(unmapped, 4096);
	signal(SIGSEGV, SIG_DFL);
}

/* ---- other stacks ------------------------------------------------------------------------------------------------ */

static void *thread_start(void *unused)
{
	inner();
	return unused;
}

static void check_thread(void)
{
	pthread_attr_t attr;
	pthread_t thread;

	expect(&unknown_stack, CSINK_MAX_DEPTH);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 32768);
	pthread_create(&thread, &attr, thread_start, NULL);
	pthread_join(thread, NULL);
	ok(frame_in(inner) >= 0 && frame_in(thread_start) > frame_in(inner),
	   "a thread on a small stack of unknown bounds");
	is_end(CSINK_WALK_COMPLETE, "is walked to its start");
}

static ucontext_t from_coroutine, coroutine;

static void coroutine_start(void)
{
	inner();
	spin++;
}

static void check_coroutine(void)
{
	static char room[16384];

	expect(&main_stack, CSINK_MAX_DEPTH);
	getcontext(&coroutine);
	coroutine.uc_stack.ss_sp = room;
	coroutine.uc_stack.ss_size = sizeof(room);
	coroutine.uc_link = &from_coroutine;
	makecontext(&coroutine, coroutine_start, 0);
	swapcontext(&from_coroutine, &coroutine);
	ok(frame_in(coroutine_start) > frame_in(inner), "a coroutine's stack, which is not the thread's");
	is_end(CSINK_WALK_COMPLETE, "is walked to its start");
}

/* ---- code without tables ----------------------------------------------------------------------------------------- */

#if defined(__x86_64__)
/* push %rbp; mov %rsp, %rbp; call *%rdi; pop %rbp; ret */
static const unsigned char made_code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
#elif defined(__aarch64__)
/* stp x29, x30, [sp, -16]!; mov x29, sp; blr x0; ldp x29, x30, [sp], 16; ret */
static const unsigned char made_code[] = {0xfd, 0x7b, 0xbf, 0xa9, 0xfd, 0x03, 0x00, 0x91, 0x00, 0x00,
					  0x3f, 0xd6, 0xfd, 0x7b, 0xc1, 0xa8, 0xc0, 0x03, 0x5f, 0xd6};
#endif

static unsigned char *made;

NOINLINE static void call_made(void (*function)(void (*)(void)))
{
	function(inner);
	spin++;
}

static void check_made_code(void)
{
	int at;

	made = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(made, made_code, sizeof(made_code));
	__builtin___clear_cache((char *)made, (char *)made + sizeof(made_code));
	expect(&main_stack, CSINK_MAX_DEPTH);
	call_made((void (*)(void (*)(void)))(void *)made);
	at = frame_in(inner);
	ok(at >= 0 && is_in(seen.frames[at + 1], made), "code made at run time is walked by its frame pointer");
	ok(frame_in(call_made) == at + 2, "and its callers by their tables again");
	is_end(CSINK_WALK_COMPLETE, "to the end");
}

static void set_context(ucontext_t *uc, uint64_t pc, uint64_t sp, uint64_t fp)
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

#if defined(__x86_64__)
extern char _fini[];

/* Some address that is returned to. */
NOINLINE static uint64_t return_address(void)
{
	return (uintptr_t)__builtin_return_address(0);
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
	       "an object's end: its caller, before its first instruction");
	is_num((long)caller_there(fini + 4, old, from, 0), (long)from, "after it");
	is_num((long)caller_there(fini + 8, from, old, 0), (long)from, "and before its last one");
	is_num((long)caller_there(fini + 8, 0x7ffe0010, from, 0x7ffe0010), (long)from,
	       "beside a frame pointer just saved");
}
#else
static void check_objects_end(void)
{
}
#endif

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
	uint64_t pc = (uintptr_t)check_thread + 20, unmapped = (uintptr_t)page + 4096, made_pc = (uintptr_t)made;

	mprotect(page + 512, 4096, PROT_NONE);
	check_context(pc, unmapped, unmapped, "a stack pointer to unmapped memory");
	check_context(pc, unmapped - 8, unmapped - 8, "one just before it");
	check_context(pc, 16, 16, "one near 0");
	check_context(pc, UINT64_MAX - 63, UINT64_MAX - 63, "one near the end of memory");
	check_context(pc, 0xffff888000000000, 0xffff888000000000, "one in the kernel");
	check_context(0x123456789abcdef0, unmapped, (uintptr_t)page, "a program counter that is no address");
	check_context(made_pc, (uintptr_t)page, unmapped, "code without tables and a bad frame pointer");
	check_context(made_pc, (uintptr_t)page, 3, "an unaligned one");
	page[0] = (uintptr_t)page; /* a frame that is its own caller */
	page[1] = made_pc + 4;
	check_context(made_pc, (uintptr_t)page, (uintptr_t)page, "a chain of frames that comes round");
	for (int i = 0; i < 512; i++)
		page[i] = (uintptr_t)check_thread + 20;
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
	is_end(CSINK_WALK_BAD_STACK, "with a reason");
}

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
	is_end(CSINK_WALK_DEPTH, "one that does not is not");
}

/* ---- the row cache ----------------------------------------------------------------------------------------------- */

struct text {
	uintptr_t start, end;
};

struct wanted {
	const char *name; /* or NULL: ... */
	uintptr_t bias;   /* ... the one with this bias */
	struct text text;
};

static int find_text(struct dl_phdr_info *info, size_t size, void *data)
{
	struct wanted *wanted = data;

	(void)size;
	if (wanted->name ? !strstr(info->dlpi_name, wanted->name) : info->dlpi_addr != wanted->bias)
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *phdr = &info->dlpi_phdr[i];

		if (phdr->p_type == PT_LOAD && phdr->p_flags & PF_X)
			wanted->text = (struct text){info->dlpi_addr + phdr->p_vaddr,
						     info->dlpi_addr + phdr->p_vaddr + phdr->p_memsz};
	}
	return 1;
}

static struct text text_of(const char *name, uintptr_t bias)
{
	struct wanted wanted = {name, bias, {0, 0}};

	dl_iterate_phdr(find_text, &wanted);
	return wanted.text;
}

#define NR_HAMMERS 4
#define NR_ADDRESSES 4096

static csink_row_t rows[NR_ADDRESSES];
static struct text libc_text;
static atomic_ulong nr_wrong;

/* Few slots, many addresses: entries are overwritten by all threads all the time. */
static uintptr_t hammered(uint64_t i)
{
	return libc_text.start + 16384 * (i % 64) + i / 64 % 64;
}

static void *hammer(void *arg)
{
	uint64_t seed = (uintptr_t)arg * 7919 + 1, mix = csink_row_mix(csink_modules_unloads());

	for (int i = 0; i < 300000; i++) {
		seed = seed * 6364136223846793005UL + 1;
		if (csink_row_find(hammered(seed >> 40), true, mix) != rows[(seed >> 40) % NR_ADDRESSES])
			nr_wrong++;
	}
	return NULL;
}

static void check_cache(void)
{
	pthread_t threads[NR_HAMMERS];

	libc_text = text_of("libc.so", 0);
	for (uint64_t i = 0; i < NR_ADDRESSES; i++)
		rows[i] = csink_row_compile(hammered(i), true);
	for (uintptr_t i = 0; i < NR_HAMMERS; i++)
		pthread_create(&threads[i], NULL, hammer, (void *)i);
	for (int i = 0; i < NR_HAMMERS; i++)
		pthread_join(threads[i], NULL);
	is_num((long)nr_wrong, 0, "rows stay right while four threads overwrite each other's");
}

/* Rows of an object's code, out of the cache and made anew: how many are the same. */
static int count_same(struct text text, int *nr)
{
	uint64_t mix = csink_row_mix(csink_modules_unloads());
	int same = 0;

	for (uintptr_t pc = (text.start + 15) & ~15UL; pc < text.end; pc += 16, ++*nr)
		same += csink_row_find(pc, true, mix) == csink_row_compile(pc, true);
	return same;
}

/* Another object where one was: its rows must not be those of the old one. */
static void check_reload(void)
{
	static const char *const names[] = {"libcrypto.so.3", "libz.so.1", "libelf.so.1", "liblzma.so.5", "libdw.so.1"};
	struct text last = {0, 0}, text;
	int nr = 0, nr_same = 0, nr_overlaps = 0;
	uint32_t now = 1;

	for (size_t n = 0; n < 4 * CSINK_ARRAY_SIZE(names); n++) {
		void *handle = dlopen(names[n % CSINK_ARRAY_SIZE(names)], RTLD_NOW | RTLD_LOCAL);
		struct link_map *map;

		if (!handle || dlinfo(handle, RTLD_DI_LINKMAP, &map))
			continue;
		csink_modules_refresh(&setup_rec, &setup_writer, ++now);
		text = text_of(NULL, map->l_addr);
		nr_overlaps += text.start < last.end && last.start < text.end && text.start != last.start;
		last = text;
		nr_same += count_same(text, &nr);
		dlclose(handle);
		csink_modules_refresh(&setup_rec, &setup_writer, ++now);
	}
	printf("# %d rows, %d times where another object was\n", nr, nr_overlaps);
	if (nr_overlaps)
		is_num(nr_same, nr, "what is loaded where something was has rows of its own");
	else
		skip("what is loaded where something was has rows of its own",
		     "the loader never used an address again");
}

static void know(void)
{
	const void *const all[] = {inner,
				   on_outer,
				   interrupted,
				   check_signal_frames,
				   check_signals,
				   call_nothing,
				   check_call_of_nothing,
				   thread_start,
				   check_thread,
				   coroutine_start,
				   check_coroutine,
				   call_made,
				   overwrite_caller,
				   check_overwritten};

	memcpy(known, all, sizeof(all));
	nr_known = CSINK_ARRAY_SIZE(all);
}

int main(void)
{
	is_num(setup_modules(), 0, "a module snapshot is there");
	is_num(csink_walk_dwarf_init(), 0, "the walker is ready");
	main_stack = setup_stack();
	know();
	handle(SIGPROF, on_sample, 0);
	check_signals();
	check_call_of_nothing();
	check_thread();
	check_coroutine();
	check_made_code();
	check_objects_end();
	check_lies();
	check_overwritten();
	check_random();
	check_depth();
	check_cache();
	check_reload();
	return done();
}
