/*
 * Walks through signal frames, from handlers on their own stacks, from threads' and coroutines' stacks, from where a
 * call of nothing led. Each must end with the truth.
 */
#include "tests/unit/walk_by_libunwind.h"
#include "tests/unit/walk_seen.h"

#include <pthread.h>
#include <setjmp.h>
#include <sys/mman.h>

/* ---- signal frames ----------------------------------------------------------------------------------------------- */

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
		"a walk inside a handler %s: the trampoline and the interrupted function follow, both exact", where))
		print_walk();
	ok(frame_in(interrupted) > handler && frame_in(check_signal_frames) > frame_in(interrupted),
	   "the interrupted function and its caller follow");
	is_end(CSINK_WALK_COMPLETE, "up to the outermost frame");
}

static void check_signals(void)
{
	static char room[65536];
	stack_t stack = {.ss_sp = room, .ss_size = sizeof(room)};

	char reason[160];
	int err = libunwind_init(reason);

	handle(SIGUSR1, on_outer, 0);
	check_signal_frames(csink_walk_dwarf, "on the same stack");
	sigaltstack(&stack, NULL);
	handle(SIGUSR1, on_outer, SA_ONSTACK);
	check_signal_frames(csink_walk_dwarf, "on its own stack");
	if (err)
		skip("libunwind's walk inside a handler on its own stack", reason);
	else
		check_signal_frames(libunwind_walk, "on its own stack, by libunwind");
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
	is_end(CSINK_WALK_COMPLETE, "a call of address 0: all callers are found");
	expect(&main_stack, CSINK_MAX_DEPTH);
	if (!sigsetjmp(back, 1))
		call_nothing((void (*)(void))unmapped);
	ok(frame_in(call_nothing) == 0, "a call of unmapped memory: its caller is found");
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
	is_end(CSINK_WALK_COMPLETE, "a thread on a small stack of unknown bounds is walked to its start");
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
	ok(frame_in(coroutine_start) > frame_in(inner), "a walk finds the caller on a coroutine's stack");
	is_end(CSINK_WALK_COMPLETE, "a coroutine is walked to its start");
}

int main(void)
{
	static const void *const functions[] = {
		inner,         on_outer,        interrupted,           check_signal_frames,
		check_signals, call_nothing,    check_call_of_nothing, thread_start,
		check_thread,  coroutine_start, check_coroutine};

	start_seeing(functions, CSINK_ARRAY_SIZE(functions));
	check_signals();
	check_call_of_nothing();
	check_thread();
	check_coroutine();
	return done();
}
