/*
 * walk_bench [SAMPLES]: time of one stack walk inside the signal handler, our walkers beside libunwind's fast path
 * (unw_backtrace, the library as it is installed), in one run, in turns. Prints p10 and p50 in ns, and ratios.
 *
 * warm: a 10 kHz timer interrupts a CPU-bound program. cold: before each walk the program reads a buffer larger than
 * the caches. Only walks from the innermost of the known functions count, so that the depth is what the table says.
 */
#define DEEP_UNIFORM
#include "tests/unit/walk_setup.h"
#include "tests/unit/walk_truth.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MAX_SAMPLES 100000
#define TURN 250
#define COLD_BYTES (64UL << 20)

enum { IP_ONLY, FP, DWARF, DWARF_AGAIN, LIBUNWIND_FAST, NR_WALKERS };
static const char *const names[NR_WALKERS] = {"ip only", "frame pointers", "dwarf rows", "dwarf, kept",
					      "unw_backtrace"};

static int (*fast_backtrace)(void **, int);

static struct {
	int walker, depth, cold;
	unsigned int nr, wanted;
	struct csink_stack_bounds stack;
	struct csink_walk_memo memo;
	uint64_t memo_frames[CSINK_MAX_DEPTH];
	uint64_t frames[CSINK_MAX_DEPTH];
	uint64_t ticks[NR_WALKERS][MAX_SAMPLES];
	unsigned int nr_of[NR_WALKERS];
	unsigned int short_walks[NR_WALKERS];
} run;

static inline uint64_t now_ticks(void)
{
#if defined(__x86_64__)
	uint32_t low, high;

	__asm__ volatile("lfence; rdtsc; lfence" : "=a"(low), "=d"(high)::"memory");
	return (uint64_t)high << 32 | low;
#else
	uint64_t value;

	__asm__ volatile("isb; mrs %0, cntvct_el0" : "=r"(value)::"memory");
	return value;
#endif
}

static void on_sample(int sig, siginfo_t *info, void *context)
{
	struct csink_walk walk = {.stack = &run.stack, .frames = run.frames, .max_frames = CSINK_MAX_DEPTH};
	const ucontext_t *uc = context;
	uint64_t before, after;

	(void)sig;
	(void)info;
	if (truth_nr(csink_context_pc(uc)) != run.depth - 1 && !run.cold)
		return;
	before = now_ticks();
	switch (run.walker) {
	case IP_ONLY:
		run.frames[0] = csink_context_pc(uc);
		break;
	case FP:
		csink_walk_fp(&walk, uc);
		break;
	case DWARF:
		csink_walk_dwarf(&walk, uc);
		break;
	case DWARF_AGAIN: /* as in the library: with what the thread's last walk left */
		walk.memo = &run.memo;
		walk.frames = run.memo_frames;
		csink_walk_dwarf(&walk, uc);
		break;
	case LIBUNWIND_FAST:
		walk.nr_frames = (uint32_t)fast_backtrace((void **)run.frames, CSINK_MAX_DEPTH);
		break;
	}
	after = now_ticks();
	if (run.walker >= DWARF && (int)walk.nr_frames < run.depth)
		run.short_walks[run.walker]++;
	if (run.nr_of[run.walker] < MAX_SAMPLES)
		run.ticks[run.walker][run.nr_of[run.walker]++] = after - before;
	if (++run.nr % TURN == 0 || run.cold)
		run.walker = (run.walker + 1) % NR_WALKERS;
}

static timer_t start_timer(void)
{
	struct itimerspec when = {{0, 100000}, {0, 100000}};
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF};
	timer_t timer;

	event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
	timer_create(CLOCK_MONOTONIC, &event, &timer);
	timer_settime(timer, 0, &when, NULL);
	return timer;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static double ns_per_tick(void)
{
	struct timespec from, to;
	uint64_t ticks = now_ticks();
	double ns;

	clock_gettime(CLOCK_MONOTONIC, &from);
	do
		clock_gettime(CLOCK_MONOTONIC, &to);
	while ((ns = (double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec)) < 5e7);
	return ns / (double)(now_ticks() - ticks);
}

static void print_table(double tick)
{
	double p50[NR_WALKERS];

	for (int w = 0; w < NR_WALKERS; w++) {
		uint64_t *ticks = run.ticks[w];
		unsigned int nr = run.nr_of[w];

		if (!nr)
			continue;
		qsort(ticks, nr, sizeof(*ticks), by_value);
		p50[w] = (double)ticks[nr / 2] * tick;
		printf("%-5s %3d  %-15s p10 %6.0f  p50 %6.0f  p90 %6.0f ns", run.cold ? "cold" : "warm", run.depth,
		       names[w], (double)ticks[nr / 10] * tick, p50[w], (double)ticks[nr * 9 / 10] * tick);
		if (w == LIBUNWIND_FAST)
			printf("  rows/unw_backtrace p50 %.2f, kept/unw_backtrace %.2f", p50[DWARF] / p50[w],
			       p50[DWARF_AGAIN] / p50[w]);
		printf("%s\n", run.short_walks[w] ? "  SHORT WALKS" : "");
	}
}

static unsigned long thrash(void)
{
	static unsigned char *buffer;
	unsigned long sum = 0;

	if (!buffer) {
		buffer = malloc(COLD_BYTES);
		memset(buffer, 1, COLD_BYTES);
	}
	for (unsigned long i = 0; i < COLD_BYTES; i += 64)
		sum += buffer[i]++;
	return sum;
}

/* The innermost function calls this; two frames more, then. */
static unsigned long cold_leaf(unsigned long x)
{
	x += thrash();
	syscall(SYS_tgkill, getpid(), (pid_t)syscall(SYS_gettid), SIGPROF);
	return x;
}

static void measure(int depth, int cold, double tick)
{
	unsigned long sum = 0;
	timer_t timer;

	run.depth = depth;
	run.cold = cold;
	run.nr = 0;
	run.walker = 0;
	memset(run.nr_of, 0, sizeof(run.nr_of));
	if (cold) {
		deep_leaf = cold_leaf;
		while (run.nr < run.wanted / 50)
			sum += deep_call((unsigned int)depth - 2, 16, sum);
		deep_leaf = NULL;
	} else {
		timer = start_timer();
		while (run.nr < run.wanted)
			sum += deep_call((unsigned int)depth, 200000, sum);
		timer_delete(timer);
	}
	print_table(tick);
}

int main(int argc, char **argv)
{
	static const int depths[] = {10, 30, 100};
	struct sigaction action = {.sa_sigaction = on_sample, .sa_flags = SA_SIGINFO | SA_RESTART};
	void *libunwind = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
	double tick = ns_per_tick();

	run.wanted = argc > 1 ? (unsigned int)atoi(argv[1]) : 20000;
	fast_backtrace = libunwind ? (int (*)(void **, int))dlsym(libunwind, "unw_backtrace") : NULL;
	if (!fast_backtrace) {
		fprintf(stderr, "walk_bench: libunwind.so.8 is needed to compare with: %s\n", dlerror());
		return 1;
	}
	run.stack = setup_stack();
	truth_init();
	if (setup_modules() || csink_walk_dwarf_init())
		return 1;
	sigfillset(&action.sa_mask);
	sigaction(SIGPROF, &action, NULL);
	for (int cold = 0; cold < 2; cold++)
		for (int d = 0; d < 3; d++)
			measure(depths[d], cold, tick);
	return 0;
}
