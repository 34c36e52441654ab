/*
 * walk_diff.so, for LD_PRELOAD: at timer ticks, and then at every one of the next instructions (single-stepped), walk
 * the stack of the program's first thread by our rows and by libunwind's full walk, and compare. Single steps see what
 * samples seldom do: prologues, epilogues, PLT stubs, the dynamic linker.
 *
 * WALK_DIFF_OUT (a file name; the pid is appended), WALK_DIFF_HZ (default 1000), WALK_DIFF_BURST (instructions stepped
 * after a tick, default 40).
 */
#include "preload/agent/unwind/cfi_row.h"
#include "tests/diff/judge.h"
#include "tests/unit/walk_by_libunwind.h"
#include "tests/unit/walk_setup.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define TRAP_FLAG 0x100
/* Instructions stepped ahead of one through code without tables, where none is ever agreed on. */
#define MAX_AHEAD 16384

static uint64_t frames[4][CSINK_MAX_DEPTH];
static struct csink_walk_memo memo;
static int burst, left, more, ahead;
static uint32_t ticks;
static bool ending; /* SIGTERM came */

static enum walk_diff_class classify(const struct csink_walk walks[2], uint32_t *first)
{
	uint32_t at = 0, shorter;
	bool complete[2];

	for (int w = 0; w < 2; w++)
		complete[w] = is_complete(&walks[w]);
	shorter = walks[0].nr_frames < walks[1].nr_frames ? walks[0].nr_frames : walks[1].nr_frames;
	while (at < shorter && walks[0].frames[at] == walks[1].frames[at])
		at++;
	*first = at;
	if (at == walks[0].nr_frames && at == walks[1].nr_frames)
		return complete[0] != complete[1] ? DIFF_END : complete[0] ? DIFF_SAME : DIFF_SAME_SHORT;
	if (at == walks[1].nr_frames && !complete[1])
		return DIFF_OURS_LONGER;
	if (at == walks[0].nr_frames && !complete[0])
		return DIFF_OURS_SHORTER;
	return DIFF_FRAMES;
}

/* libunwind has no rules for a stack pointer in a register, as in the C library's longjmp: it looks for the caller in
 * the wrong place, and ends there. */
static bool is_astray(const struct csink_walk *ours, const struct csink_walk *other, uint32_t at)
{
	return is_complete(ours) && !is_complete(other) && at + 1 == other->nr_frames;
}

/* What a difference comes to after a second look. */
static enum walk_diff_class without_cache(enum walk_diff_class with, enum walk_diff_class without)
{
	if (without == DIFF_SAME || without == DIFF_SAME_SHORT)
		return DIFF_CACHE;
	return without == DIFF_OURS_LONGER && with != DIFF_OURS_LONGER ? DIFF_CACHE_LONGER : without;
}

/* ---- one comparison ---------------------------------------------------------------------------------------------- */

static void begin_burst(void)
{
	lose_track();
	left = burst;
	more = MAX_PENDING;
	ahead = MAX_AHEAD;
}

static bool same_walk(const struct csink_walk *a, const struct csink_walk *b)
{
	return a->nr_frames == b->nr_frames && a->end == b->end &&
	       !memcmp(a->frames, b->frames, a->nr_frames * sizeof(*a->frames));
}

static bool has_table(uint64_t pc)
{
	csink_row_t row = csink_row_find(pc, true, csink_row_mix(csink_modules_unloads()));

	return csink_row_kind(row) != CSINK_ROW_NO_CFI;
}

/* Both agree, and did not have to guess where the program is. */
static bool is_known(enum walk_diff_class class, uint64_t pc)
{
	return (class == DIFF_SAME || class == DIFF_CACHE || class == DIFF_OBJECT) && has_table(pc);
}

/* A burst begins where there are tables: else it would be guesses against guesses. Returns whether to go on without. */
static bool look_ahead(uint64_t pc)
{
	if (ahead <= 0 || has_table(pc)) {
		ahead = 0;
		return false;
	}
	left = --ahead ? left + 1 : 0;
	diff->nr_ahead++;
	return true;
}

/* A difference, looked at again: libunwind gets the list of all objects, and an empty cache. */
static enum walk_diff_class look_again(enum walk_diff_class class, const struct csink_walk *ours, const ucontext_t *uc,
				       struct csink_walk *again)
{
	bool news = csink_modules_refresh(&setup_rec, &setup_writer, ++ticks) > 0;
	uint32_t at;

	libunwind_use_cache(false);
	libunwind_walk(again, uc);
	libunwind_use_cache(true);
	class = without_cache(class, classify((struct csink_walk[]){*ours, *again}, &at));
	if (class == DIFF_FRAMES && is_astray(ours, again, at))
		class = DIFF_ASTRAY;
	return class == DIFF_CACHE && news ? DIFF_OBJECT : class;
}

static void compare(const ucontext_t *uc, bool reached)
{
	struct csink_walk walks[2], again = {.stack = &stack, .frames = frames[2], .max_frames = CSINK_MAX_DEPTH};
	struct csink_walk kept = {.stack = &stack, .frames = frames[3], .max_frames = CSINK_MAX_DEPTH, .memo = &memo};
	struct csink_walk_dwarf_counts before, after;
	uint64_t pc = csink_context_pc(uc), sp = csink_context_sp(uc);
	static struct instant now;
	enum walk_diff_class class;
	uint32_t at, last = DIFF_RECORDS;
	bool same;

	for (int w = 0; w < 2; w++)
		walks[w] = (struct csink_walk){.stack = &stack, .frames = frames[w], .max_frames = CSINK_MAX_DEPTH};
	csink_walk_dwarf_counts(&before);
	csink_walk_dwarf(&walks[0], uc);
	csink_walk_dwarf_counts(&after);
	csink_walk_dwarf(&kept, uc);
	if (!same_walk(&kept, &walks[0])) {
		diff->counts[DIFF_KEPT]++;
		record(DIFF_KEPT, pc, (struct csink_walk[]){walks[0], kept}, 0);
	}
	libunwind_walk(&walks[1], uc);
	class = classify(walks, &at);
	if (class != DIFF_SAME && class != DIFF_SAME_SHORT)
		class = look_again(class, &walks[0], uc, &again);
	same = class == DIFF_SAME || class == DIFF_CACHE || class == DIFF_OBJECT;
	if (!same && before.untabled_steps != after.untabled_steps)
		class = has_table(pc) ? DIFF_UNTABLED : DIFF_GUESS;
	diff->counts[class]++;
	if (class != DIFF_SAME)
		last = record(class, pc, (struct csink_walk[]){walks[0], again.nr_frames ? again : walks[1]}, at);
	if (class == DIFF_SAME_SHORT)
		lose_track();
	if (reached)
		hear_appeal(&walks[0], pc, is_known(class, pc));
	if (is_known(class, pc)) {
		note_instant(&now, pc, &walks[0]);
		judge_all(&now);
		agreed = now;
	} else if (class != DIFF_SAME_SHORT && !reached) {
		wait_for_verdict(same ? DIFF_SAME : class, last, pc, &walks[0], same ? &walks[0] : &again, sp);
	}
}

/* About to change the signal mask: a trap while SIGTRAP is blocked would kill. */
static bool changes_mask(const ucontext_t *uc)
{
	const unsigned char *code = (const unsigned char *)csink_context_pc(uc);

	return code[0] == 0x0f && code[1] == 0x05 && uc->uc_mcontext.gregs[REG_RAX] == SYS_rt_sigprocmask;
}

__attribute__((destructor)) static void stop(void)
{
	struct csink_walk_dwarf_counts counts;

	if (!diff)
		return;
	lose_track();
	if (appeal.is_set)
		set_breakpoint(false);
	for (uint32_t i = 0; i < appeal.nr_records; i++)
		pass_verdict(appeal.classes[i], appeal.records[i], VERDICT_NONE);
	appeal.nr_records = 0;
	csink_walk_dwarf_counts(&counts);
	diff->untabled_steps = counts.untabled_steps;
	diff->complex_steps = counts.complex_steps;
}

/* SIGTERM came, and nothing is left to be judged: as if we had not caught it. */
static void end_program(void)
{
	stop();
	signal(SIGTERM, SIG_DFL);
	raise(SIGTERM);
}

static void on_signal(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	uint64_t pc = csink_context_pc(uc);
	int kept = errno;
	enum stop stop = sig == SIGTRAP ? stopped_at(&pc, csink_context_sp(uc)) : STOP_ELSEWHERE;

	(void)info;
	uc->uc_mcontext.gregs[REG_RIP] = (greg_t)pc;
	if (sig == SIGPROF) {
		/* The module snapshot is refreshed as the real library does: not for every sample. */
		if (ticks++ % 100 == 0)
			csink_modules_refresh(&setup_rec, &setup_writer, ticks);
	}
	if (sig == SIGPROF && uc->uc_mcontext.gregs[REG_EFL] & TRAP_FLAG) /* this instruction has been looked at */
		return;
	if (appeal.open && !appeal.is_set && stop == STOP_ELSEWHERE && !is_heard()) /* that return was another one */
		set_breakpoint(true);
	if (sig == SIGPROF || stop == STOP_REACHED)
		begin_burst();
	if (stop == STOP_REACHED)
		ahead = 0;
	if (!look_ahead(pc))
		compare(uc, stop == STOP_REACHED);
	if ((left-- > 0 || (nr_waiting && more-- > 0) || stop == STOP_OTHER_RETURN) && !changes_mask(uc))
		uc->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
	else
		uc->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
	if (ending && !nr_waiting && !appeal.open)
		end_program();
	errno = kept;
}

static void on_term(int sig)
{
	(void)sig;
	ending = true;
}

static long setting(const char *name, long otherwise)
{
	const char *value = getenv(name);

	return value ? atol(value) : otherwise;
}

static bool open_file(void)
{
	char path[4096];
	int fd;

	if (!getenv("WALK_DIFF_OUT"))
		return false;
	snprintf(path, sizeof(path), "%s.%d", getenv("WALK_DIFF_OUT"), getpid());
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, sizeof(*diff)))
		return false;
	diff = mmap(NULL, sizeof(*diff), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return diff != MAP_FAILED;
}

static void start_timer(void)
{
	long period_ns = 1000000000 / setting("WALK_DIFF_HZ", 1000);
	struct itimerspec when = {{0, period_ns}, {0, period_ns}};
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF};
	timer_t timer;

	event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
	timer_create(CLOCK_MONOTONIC, &event, &timer);
	timer_settime(timer, 0, &when, NULL);
}

__attribute__((constructor)) static void start(void)
{
	struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
	char reason[160];
	int fd;

	if (!open_file())
		return;
	fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, diff->command, sizeof(diff->command) - 1) < 0)
		return;
	close(fd);
	stack = setup_stack();
	if (setup_modules() || csink_walk_dwarf_init() || libunwind_init(reason))
		return;
	burst = (int)setting("WALK_DIFF_BURST", 40);
	sigfillset(&action.sa_mask);
	sigaction(SIGPROF, &action, NULL);
	sigaction(SIGTRAP, &action, NULL);
	signal(SIGTERM, on_term);
	start_timer();
}
