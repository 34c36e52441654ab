/*
 * Stacks with no room to spare: small alternate ones, threads of the least size, coroutines of 16 KB, recursion to the
 * guard page; and jumps, contexts and exceptions that leave samples' frames behind. What is measured as free is free.
 */
#include <alloca.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdbool.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <ucontext.h>

#include "guest.h"

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

static size_t page(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/* What the kernel puts on a stack for a handler. */
static size_t frame_bytes(void)
{
	size_t bytes = getauxval(AT_MINSIGSTKSZ);

	return bytes ? bytes : 4096;
}

/* Memory that ends at a page without access; it must be as it was below what its user has used. */
static char *guarded(size_t bytes)
{
	size_t whole = (bytes + page() - 1) & ~(page() - 1);
	char *at = mmap(NULL, whole + page(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	mprotect(at, page(), PROT_NONE);
	return at + page();
}

/* ---- alternate stacks ---- */

static volatile sig_atomic_t nr_handled;

static void handle(int signo)
{
	(void)signo;
	nr_handled++;
}

static void handle_at_length(int signo)
{
	(void)signo;
	guest_sink = guest_work(2);
	nr_handled++;
}

/*
 * The smallest alternate stack on which the program's own handler works; a profiler that needs more, or that comes on
 * top of it, has none.
 */
static int small_alternate(int argc, char **argv)
{
	struct sigaction act = {.sa_handler = handle, .sa_flags = SA_ONSTACK};
	struct itimerval every = {{0, 1000}, {0, 1000}}, off = {{0, 0}, {0, 0}};
	size_t bytes = (frame_bytes() + 512 + 15) & ~15UL;
	stack_t stack = {.ss_sp = guarded(bytes), .ss_size = bytes};

	(void)argc;
	(void)argv;
	if (sigaltstack(&stack, NULL))
		return 1;
	sigaction(SIGALRM, &act, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	while (nr_handled < 50)
		guest_burn(1);
	act.sa_handler = handle_at_length;
	sigaction(SIGALRM, &act, NULL);
	every.it_interval.tv_usec = every.it_value.tv_usec = 10000;
	setitimer(ITIMER_REAL, &every, NULL);
	while (nr_handled < 70)
		guest_burn(1);
	setitimer(ITIMER_REAL, &off, NULL);
	puts("handled on a small stack");
	return 0;
}

/* A stack that overflows, handled on the alternate one, again and again. */
static sigjmp_buf out;
static volatile uintptr_t low_end;

static void overflowed(int signo, siginfo_t *info, void *context)
{
	(void)signo;
	(void)context;
	low_end = (uintptr_t)info->si_addr;
	siglongjmp(out, 1);
}

static volatile bool endless = true;

static __attribute__((noinline)) uint64_t recurse(uint64_t n)
{
	volatile char room[200];

	room[n % sizeof(room)] = (char)n;
	guest_sink += spin(n, 100);
	return endless ? recurse(n + 1) + (uint64_t)room[0] : n;
}

static void *overflow_here(void *arg)
{
	struct sigaction act = {.sa_sigaction = overflowed, .sa_flags = SA_ONSTACK | SA_SIGINFO};
	size_t bytes = frame_bytes() + 4096; /* the loader needs some to bind siglongjmp */
	stack_t stack = {.ss_sp = guarded(bytes), .ss_size = bytes}, off = {.ss_flags = SS_DISABLE};
	volatile int times = 0;

	sigaltstack(&stack, NULL);
	sigaction(SIGSEGV, &act, NULL);
	while (times < 5) {
		if (sigsetjmp(out, 1) == 0)
			guest_sink = recurse(1);
		times++;
	}
	printf("%s overflowed %d times, at an address: %d\n", (char *)arg, times, low_end != 0);
	sigaltstack(&off, NULL);
	return NULL;
}

static int overflow(int argc, char **argv)
{
	struct rlimit limit = {1 << 20, 1 << 20};
	pthread_t thread;

	(void)argc;
	(void)argv;
	setrlimit(RLIMIT_STACK, &limit);
	overflow_here("main");
	pthread_create(&thread, NULL, overflow_here, "a thread");
	pthread_join(thread, NULL);
	guest_burn(50);
	return 0;
}

/* ---- small threads and coroutines ---- */

static void *work_in_little(void *arg)
{
	guest_sink = guest_work((uint64_t)(uintptr_t)arg);
	return arg;
}

static int small_threads(int argc, char **argv)
{
	size_t least = (size_t)sysconf(_SC_THREAD_STACK_MIN), given = 16384;
	pthread_attr_t attr;
	pthread_t threads[8];
	int nr = 0;

	(void)argc;
	(void)argv;
	pthread_attr_init(&attr);
	for (int round = 0; round < 3; round++) {
		pthread_attr_setstacksize(&attr, round ? least : given);
		for (int i = 0; i < 8; i++) {
			if (round == 2)
				pthread_attr_setstack(&attr, guarded(least), least);
			nr += pthread_create(&threads[i], &attr, work_in_little, (void *)10) == 0;
		}
		for (int i = 0; i < 8; i++)
			pthread_join(threads[i], NULL);
		if (round == 0 && nr == 0) /* less than this machine's least */
			nr += 8;
	}
	printf("%d threads\n", nr);
	return 0;
}

enum { NR_COROUTINES = 64, COROUTINE_BYTES = 16384 };
static ucontext_t scheduler, coroutines[NR_COROUTINES];
static uint64_t sums[NR_COROUTINES];

static __attribute__((noinline)) uint64_t coroutine_work(uint64_t x)
{
	__asm__ volatile("");
	return spin(x, ROUNDS_MS / 10);
}

static void coroutine(int n)
{
	for (int i = 0; i < 20; i++) {
		sums[n] += coroutine_work((uint64_t)n);
		swapcontext(&coroutines[n], &scheduler);
	}
}

static int switches(int argc, char **argv)
{
	volatile uint64_t sum = 0;

	(void)argc;
	(void)argv;
	for (int n = 0; n < NR_COROUTINES; n++) {
		getcontext(&coroutines[n]);
		coroutines[n].uc_stack.ss_sp = guarded(COROUTINE_BYTES);
		coroutines[n].uc_stack.ss_size = COROUTINE_BYTES;
		coroutines[n].uc_link = &scheduler;
		makecontext(&coroutines[n], (void (*)(void))coroutine, 1, n);
	}
	for (int i = 0; i < 20; i++)
		for (int n = 0; n < NR_COROUTINES; n++)
			swapcontext(&scheduler, &coroutines[n]);
	for (int n = 0; n < NR_COROUTINES; n++)
		sum += sums[n];
	printf("%016llx\n", (unsigned long long)sum);
	return 0;
}

/* ---- deep, and out again ---- */

static __attribute__((noinline)) uint64_t deep(uint64_t n, uint64_t x)
{
	volatile char room[64];

	room[n % sizeof(room)] = 1;
	if (n == 0)
		return guest_work(1);
	x = spin(x, 20);
	return deep(n - 1, x) + (uint64_t)room[n % sizeof(room)];
}

static int depth(int argc, char **argv)
{
	uint64_t sum = 0;

	(void)argc;
	(void)argv;
	for (int i = 0; i < 40; i++)
		sum += deep(30000, (uint64_t)i);
	printf("%016llx\n", (unsigned long long)sum);
	return 0;
}

static void jump_out(int signo)
{
	siglongjmp(out, signo);
}

static __attribute__((noinline)) void run_until_thrown(void)
{
	for (;;)
		guest_sink = coroutine_work(guest_sink);
}

/* Handlers left by longjmp, on both stacks, with and without the mask, while samples come at ten thousand a second. */
static int jumps(int argc, char **argv)
{
	struct itimerval once = {{0, 0}, {0, 700}};
	struct sigaction act = {.sa_handler = jump_out, .sa_flags = SA_ONSTACK};
	stack_t stack = {.ss_size = frame_bytes() + (argc > 1 ? 65536 : 4096)};
	volatile int times = 0;

	(void)argv;
	stack.ss_sp = guarded(stack.ss_size);
	sigaltstack(&stack, NULL);
	for (volatile int flags = 0; flags < 4; flags++) {
		act.sa_flags = (flags & 1 ? SA_ONSTACK : 0) | (flags & 2 ? SA_NODEFER : 0);
		sigaction(SIGALRM, &act, NULL);
		for (volatile int i = 0; i < 20; i++) {
			if (sigsetjmp(out, !(flags & 2)) == 0) {
				setitimer(ITIMER_REAL, &once, NULL);
				run_until_thrown();
			}
			times++;
		}
	}
	printf("jumped %d times\n", times);
	guest_burn(100);
	return 0;
}

/* A stack pointer that points nowhere for a while: context of its own, then back. */
static int no_stack(int argc, char **argv)
{
#if defined(__x86_64__)
	uint64_t x = 1, rounds = 100 * ROUNDS_MS;
	stack_t stack = {.ss_size = 65536};
	sigset_t all;

	(void)argc;
	(void)argv;
	stack.ss_sp = guarded(stack.ss_size);
	sigaltstack(&stack, NULL);
	sigfillset(&all);
	__asm__ volatile("movq %%rsp, %%r12\n"
			 "movq %%rbp, %%r13\n"
			 "xorl %%ebp, %%ebp\n"
			 "movq $64, %%rsp\n"
			 "1: imulq $77, %0\n"
			 "incq %0\n"
			 "decq %1\n"
			 "jnz 1b\n"
			 "movq %%r12, %%rsp\n"
			 "movq %%r13, %%rbp\n"
			 : "+a"(x), "+c"(rounds)
			 :
			 : "r12", "r13", "cc");
	printf("%016llx\n", (unsigned long long)x);
#else
	(void)argc;
	(void)argv;
	puts("not on this machine");
#endif
	guest_burn(20);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct guest_way ways[] = {{"small_alternate", small_alternate},
						{"overflow", overflow},
						{"small_threads", small_threads},
						{"switches", switches},
						{"depth", depth},
						{"jumps", jumps},
						{"no_stack", no_stack},
						{NULL, NULL}};

	return guest_main(ways, argc, argv);
}
