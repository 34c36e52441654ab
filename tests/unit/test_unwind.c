/* Walkers against a known truth: 10, 30 and 100 frames without frame pointers, interrupted at any instruction. */
#include "include/internal/clock.h"
#include "preload/agent/unwind/cfi_row.h"
#include "preload/agent/unwind/unwind.h"
#include "tests/unit/tap.h"
#include "tests/unit/walk_by_libunwind.h"
#include "tests/unit/walk_setup.h"
#include "tests/unit/walk_truth.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NR_SAMPLES 3000
#define PAUSE_NS 50000                    /* between two of them */
#define DEADLINE_NS (60 * CSINK_NS_PER_S) /* of CPU time: how much of it a busy machine gives is another matter */

typedef void walker_t(struct csink_walk *walk, const ucontext_t *uc);

static timer_t timer;

static struct {
	walker_t *walker;
	struct csink_stack_bounds stack;
	uint64_t frames[CSINK_MAX_DEPTH];
	struct csink_walk_memo memo;
	uint64_t memo_frames[CSINK_MAX_DEPTH];
	struct csink_walk first_wrong;
	uint64_t first_wrong_frames[CSINK_MAX_DEPTH], first_wrong_pc;
	atomic_uint exact, wrong, elsewhere, errno_changed, misled, joined, differ;
	uint64_t last_same;
} run;

/*
 * At the end of a function that realigned its stack, after the pop of its caller's frame pointer, GCC's table still
 * says that this lies in memory, at a place that the popped value itself now misleads to: two instructions of each such
 * function (lea -8(%r10), %rsp; ret). libunwind promises what tables say, and skips a caller; our walker sees that the
 * frame pointer is none of this frame. AddressSanitizer has many functions realign theirs: there it was 57 of 450,145
 * walks of libunwind's, and the only reason for one that was wrong.
 */
static bool table_misleads(const ucontext_t *uc)
{
#if defined(__x86_64__)
	const greg_t *regs = uc->uc_mcontext.gregs;
	csink_row_t row = csink_row_compile(csink_context_pc(uc), true);
	unsigned int reg = csink_row_reg(row);
	uint64_t base = (uint64_t)(reg == CSINK_REG_SP ? regs[REG_RSP] : regs[REG_R10]);

	return csink_row_kind(row) == CSINK_ROW_REG_FPX && (reg == CSINK_REG_SP || reg == 10) &&
	       (uint64_t)regs[REG_RBP] >= base + (uint64_t)csink_row_cfa_offset(row);
#else
	(void)uc;
	return false;
#endif
}

/* With what the last walk left; each is done again without, and must be the same. */
static void walk_kept(struct csink_walk *walk, const ucontext_t *uc)
{
	struct csink_walk alone = *walk;

	walk->memo = &run.memo;
	walk->frames = run.memo_frames;
	csink_walk_dwarf(walk, uc);
	run.joined += walk->same && walk->same == run.last_same;
	run.last_same = walk->same;
	csink_walk_dwarf(&alone, uc);
	run.differ += alone.nr_frames != walk->nr_frames || alone.end != walk->end ||
		      memcmp(alone.frames, walk->frames, alone.nr_frames * sizeof(*alone.frames)) != 0;
}

/* Signals the thread once. */
static void set_timer(void)
{
	const struct itimerspec when = {.it_value = {0, PAUSE_NS}};

	timer_settime(timer, 0, &when, NULL);
}

static void start_timer(void)
{
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF};

	event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
	timer_create(CLOCK_MONOTONIC, &event, &timer);
	set_timer();
}

static void on_tick(int sig, siginfo_t *info, void *context)
{
	struct csink_walk walk = {.stack = &run.stack, .frames = run.frames, .max_frames = CSINK_MAX_DEPTH};
	const ucontext_t *uc = context;
	int verdict;

	(void)sig;
	(void)info;
	errno = 4711;
	run.walker(&walk, uc);
	run.errno_changed += errno != 4711;
	verdict = truth_judge(&walk, csink_context_pc(uc));
	if (verdict == 1) {
		run.exact++;
	} else if (verdict == -1) {
		run.elsewhere++;
	} else if (run.walker == libunwind_walk && table_misleads(uc)) {
		run.misled++;
	} else if (!run.wrong++) {
		run.first_wrong = walk;
		run.first_wrong_pc = csink_context_pc(uc);
		memcpy(run.first_wrong_frames, walk.frames, walk.nr_frames * sizeof(*walk.frames));
	}
	set_timer(); /* from the end of this walk on, so that the program goes on, however long walks take */
}

static void print_wrong(void)
{
	printf("# pc 0x%lx, in function %d; %u frames, end %d\n", (long)run.first_wrong_pc,
	       truth_nr(run.first_wrong_pc), run.first_wrong.nr_frames, run.first_wrong.end);
	for (uint32_t i = 0; i < run.first_wrong.nr_frames; i++)
		printf("#   0x%lx %d\n", (long)run.first_wrong_frames[i], truth_nr(run.first_wrong_frames[i] - 1));
}

static void check_walker(walker_t *walker, const char *name, unsigned int depth, unsigned int work)
{
	uint64_t deadline_ns = csink_clock_ns(CLOCK_THREAD_CPUTIME_ID) + DEADLINE_NS;
	unsigned int allowed = NR_SAMPLES / 1000;
	unsigned long sum = 0;

	run.walker = walker;
	run.exact = run.wrong = run.elsewhere = run.errno_changed = run.misled = run.joined = run.differ = 0;
	start_timer();
	while (run.exact + run.wrong < NR_SAMPLES && csink_clock_ns(CLOCK_THREAD_CPUTIME_ID) < deadline_ns)
		for (int i = 0; i < 16; i++)
			sum += deep_call(depth, work, sum);
	timer_delete(timer);
	ok(run.exact >= NR_SAMPLES - allowed && run.wrong <= allowed, "%s: stacks of %u frames are exact (work %u)",
	   name, depth, work);
	printf("# %u exact, %u wrong, %u elsewhere, %u misled by their table\n", run.exact, run.wrong, run.elsewhere,
	       run.misled);
	if (run.wrong)
		print_wrong();
	is_num(run.errno_changed, 0, "a walk keeps errno");
	if (walker == walk_kept && !is_num(run.differ, 0, "no stack is another one for what the last walk left"))
		printf("# of %u\n", run.exact + run.wrong + run.elsewhere);
	if (walker == walk_kept)
		printf("# %u the same as the last one\n", run.joined);
}

/* Two addresses share a block of the cache: neither drives out the other. */
static void check_neighbours(void)
{
	uintptr_t pc[2] = {((uintptr_t)truth_nr | 31) + 2};
	uint64_t mix = csink_row_mix(csink_modules_unloads());
	csink_row_t rows[2], row;

	pc[1] = pc[0] + CSINK_ROW_NEIGHBOUR;
	for (int i = 1; i >= 0; i--)
		rows[i] = csink_row_find(pc[i], false, mix);
	for (int i = 0; i < 2; i++) {
		const char *slot = csink_rows.callers + csink_row_slot(pc[i], CSINK_ROW_CALLER_SHIFT, csink_row_mask());

		ok(csink_row_get(slot, pc[i], mix, &row) && row == rows[i], "row %d of a block is where it belongs", i);
	}
}

static bool is_cached(uintptr_t pc, uint64_t mix)
{
	const char *slot = csink_rows.callers + csink_row_slot(pc, CSINK_ROW_CALLER_SHIFT, csink_row_mask());
	csink_row_t row;

	return csink_row_get(slot, pc, mix, &row) ||
	       csink_row_get((const char *)((uintptr_t)slot ^ CSINK_ROW_NEIGHBOUR), pc, mix, &row);
}

/* Nor does one that was used before them: it does not go from one's place to the other's for ever. */
static void check_unused(void)
{
	uintptr_t pc[3] = {((uintptr_t)truth_nr | 31) + 66};
	uint64_t mix = csink_row_mix(csink_modules_unloads());

	pc[1] = pc[0] + CSINK_ROW_NEIGHBOUR;
	pc[2] = pc[0] + CSINK_ROW_FIRST_BYTES;
	for (int i = 2; i >= 0; i--)
		csink_row_find(pc[i], false, mix);
	for (int i = 0; i < 64; i++)
		csink_row_find(pc[i % 2], false, mix);
	ok(is_cached(pc[0], mix) && is_cached(pc[1], mix), "two rows in use stay, one that is not used goes");
}

/* A process with few rows touches few pages of the cache. */
static void check_growth(void)
{
	uintptr_t first = csink_row_mask(), pc = (uintptr_t)truth_nr, nr = 0;
	uint64_t mix = csink_row_mix(csink_modules_unloads());
	csink_row_t row = csink_row_find(pc, false, mix);

	ok(first < CSINK_ROW_FIRST_BYTES, "the first rows are in the first pages");
	for (; csink_row_mask() == first && nr < 2 * CSINK_ROW_FIRST_ROWS; nr++)
		csink_row_find(pc + nr, false, mix);
	ok(nr >= CSINK_ROW_FIRST_ROWS / 2 && nr < 2 * CSINK_ROW_FIRST_ROWS,
	   "the next hundreds of rows are in the first pages, too (%zu)", (size_t)nr);
	is_num((intptr_t)csink_row_mask(), CSINK_ROW_TABLE_BYTES - sizeof(struct csink_row_entry),
	       "many rows are in all pages");
	ok(csink_row_find(pc, false, mix) == row, "a row is the same in the larger table");
}

int main(void)
{
	static const unsigned int depths[] = {10, 30, 100}, works[] = {16, 2000};
	struct sigaction action = {.sa_sigaction = on_tick, .sa_flags = SA_SIGINFO | SA_RESTART};
	char reason[160] = "";
	int err;

	sigfillset(&action.sa_mask);
	sigaction(SIGPROF, &action, NULL);
	run.stack = setup_stack();
	is_num(setup_modules(), 0, "the module snapshot is created");
	truth_init();
	err = libunwind_init(reason);
	if (err == -ENOENT)
		skip("libunwind is ready", "libunwind is not installed");
	else if (!is_num(err, 0, "libunwind is ready"))
		printf("# %s\n", reason);
	is_num(csink_walk_dwarf_init(), 0, "our own walker is ready");
	check_neighbours();
	check_unused();
	check_growth();
	for (int w = 0; w < 2; w++)
		for (int d = 0; d < 3; d++) {
			if (!err)
				check_walker(libunwind_walk, "libunwind", depths[d], works[w]);
			check_walker(csink_walk_dwarf, "dwarf", depths[d], works[w]);
			check_walker(walk_kept, "dwarf with a stack memo", depths[d], works[w]);
		}
	return done();
}
