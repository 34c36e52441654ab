/*
 * walk_diff.so, for LD_PRELOAD: at timer ticks, and then at every one of the next instructions (single-stepped), walk
 * the stack of the program's first thread by our rows and by libunwind's full walk, and compare. Single steps see what
 * samples seldom do: prologues, epilogues, PLT stubs, the dynamic linker.
 *
 * WALK_DIFF_OUT (a file name; the pid is appended), WALK_DIFF_HZ (default 1000), WALK_DIFF_BURST (instructions stepped
 * after a tick, default 40).
 */
#include "tests/diff/verdict.h"
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
/* Differences in a row, and instructions stepped beyond a burst in search of a walk that is agreed on. */
#define MAX_PENDING 512

static struct walk_diff *diff;
static struct csink_stack_bounds stack;
static uint64_t frames[4][CSINK_MAX_DEPTH];
static struct csink_walk_memo memo;
static int burst, left, more;
static uint32_t ticks;
/* Of this burst: the last walk that is known to be right, and the differences since, that wait for the next one. */
static struct instant agreed;
static struct pending pending[MAX_PENDING];
static uint32_t nr_pending;

static void keep_maps(void)
{
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	size_t done = 0;
	ssize_t n;

	while (fd >= 0 && done < sizeof(diff->maps) - 1 &&
	       (n = read(fd, diff->maps + done, sizeof(diff->maps) - 1 - done)) > 0)
		done += (size_t)n;
	diff->maps[done] = 0;
	close(fd);
}

/* Returns the record's number, DIFF_RECORDS if there is no room. */
static uint32_t record(enum walk_diff_class class, uint64_t pc, const struct csink_walk *walks, uint32_t at)
{
	uint32_t from = at > 4 ? at - 4 : 0;
	struct walk_diff_record *r;

	for (uint32_t i = 0; i < diff->nr_records; i++)
		if (diff->records[i].pc == pc && diff->records[i].class == class) {
			diff->records[i].times++;
			return i;
		}
	/* guesses are many; they must not crowd out what matters */
	if (diff->nr_records == DIFF_RECORDS || (class == DIFF_UNTABLED && diff->nr_records > DIFF_RECORDS / 4))
		return DIFF_RECORDS;
	r = &diff->records[diff->nr_records];
	*r = (struct walk_diff_record){.pc = pc, .times = 1, .class = class, .at = at};
	for (int w = 0; w < 2; w++) {
		r->nr[w] = walks[w].nr_frames;
		r->end[w] = walks[w].end;
		for (uint32_t i = from; i < walks[w].nr_frames && i - from < DIFF_FRAMES_KEPT; i++)
			r->frames[w][i - from] = walks[w].frames[i];
	}
	keep_maps();
	return diff->nr_records++;
}

static bool is_complete(const struct csink_walk *walk)
{
	return walk->end == CSINK_WALK_COMPLETE || walk->end == CSINK_WALK_DEPTH;
}

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

/* ---- verdicts ---------------------------------------------------------------------------------------------------- */

static void note_instant(struct instant *to, uint64_t pc, const struct csink_walk *walk)
{
	to->pc = pc;
	to->nr = walk->nr_frames;
	memcpy(to->frames, walk->frames, walk->nr_frames * sizeof(*walk->frames));
}

static void pass_verdict(const struct pending *p, enum walk_diff_verdict verdict)
{
	diff->verdicts[p->class][verdict]++;
	if (p->record < DIFF_RECORDS)
		diff->records[p->record].verdicts[verdict]++;
}

/* Right by what was before or by what came after: between stacks, as in longjmp, either may be said. */
static enum walk_diff_verdict either(enum walk_diff_verdict a, enum walk_diff_verdict b)
{
	for (enum walk_diff_verdict v = VERDICT_OURS; v < NR_VERDICTS; v++)
		if (a == v || b == v)
			return v;
	return VERDICT_NONE;
}

/* The burst is over, or both agree again (@after). */
static void judge_all(const struct instant *after)
{
	static struct instant truth;
	enum walk_diff_verdict verdicts[MAX_PENDING] = {VERDICT_NONE};
	bool known = agreed.nr > 0;

	truth = agreed;
	for (uint32_t i = 0; i < nr_pending && known; i++) {
		known = follow(&truth, &pending[i]);
		verdicts[i] = known ? judge(&pending[i], &truth) : VERDICT_NONE;
	}
	known = after != NULL;
	if (known)
		truth = *after;
	for (uint32_t i = nr_pending; i-- > 0;) {
		known = known && trace_back(&truth, &pending[i]);
		if (known)
			verdicts[i] = either(verdicts[i], judge(&pending[i], &truth));
		pass_verdict(&pending[i], verdicts[i]);
	}
	nr_pending = 0;
}

/* What is known is not of the instruction before this one. */
static void lose_track(void)
{
	judge_all(NULL);
	agreed.nr = 0;
}

static void begin_burst(void)
{
	lose_track();
	left = burst;
	more = MAX_PENDING;
}

static void wait_for_verdict(enum walk_diff_class class, uint32_t record, uint64_t pc, const struct csink_walk *ours,
			     const struct csink_walk *other)
{
	struct pending *p = &pending[nr_pending];

	if (nr_pending == MAX_PENDING) {
		lose_track();
		p = pending;
	}
	p->record = record;
	p->class = class;
	note_instant(&p->by[0], pc, ours);
	note_instant(&p->by[1], pc, other);
	nr_pending++;
}

/* ---- one comparison ---------------------------------------------------------------------------------------------- */

static bool same_walk(const struct csink_walk *a, const struct csink_walk *b)
{
	return a->nr_frames == b->nr_frames && a->end == b->end &&
	       !memcmp(a->frames, b->frames, a->nr_frames * sizeof(*a->frames));
}

static void compare(const ucontext_t *uc)
{
	struct csink_walk walks[2], again = {.stack = &stack, .frames = frames[2], .max_frames = CSINK_MAX_DEPTH};
	struct csink_walk kept = {.stack = &stack, .frames = frames[3], .max_frames = CSINK_MAX_DEPTH, .memo = &memo};
	struct csink_walk_dwarf_counts before, after;
	uint64_t pc = csink_context_pc(uc);
	enum walk_diff_class class;
	uint32_t at, last;

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
	csink_walk_libunwind(&walks[1], uc);
	class = classify(walks, &at);
	if (class != DIFF_SAME && class != DIFF_SAME_SHORT) {
		csink_libunwind_use_cache(false);
		csink_walk_libunwind(&again, uc);
		csink_libunwind_use_cache(true);
		class = without_cache(class, classify((struct csink_walk[]){walks[0], again}, &last));
		if (class == DIFF_FRAMES && is_astray(&walks[0], &again, last))
			class = DIFF_ASTRAY;
	}
	if (class != DIFF_SAME && class != DIFF_CACHE && before.untabled_steps != after.untabled_steps)
		class = DIFF_UNTABLED;
	diff->counts[class]++;
	if (class == DIFF_SAME || class == DIFF_CACHE) {
		static struct instant now;

		note_instant(&now, pc, &walks[0]);
		judge_all(&now);
		agreed = now;
	}
	if (class == DIFF_SAME)
		return;
	last = record(class, pc, walks, at);
	if (class == DIFF_SAME_SHORT)
		lose_track();
	else if (class != DIFF_CACHE)
		wait_for_verdict(class, last, pc, &walks[0], &again);
}

/* About to change the signal mask: a trap while SIGTRAP is blocked would kill. */
static bool changes_mask(const ucontext_t *uc)
{
	const unsigned char *code = (const unsigned char *)csink_context_pc(uc);

	return code[0] == 0x0f && code[1] == 0x05 && uc->uc_mcontext.gregs[REG_RAX] == SYS_rt_sigprocmask;
}

static void on_signal(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	int kept = errno;

	(void)info;
	if (sig == SIGPROF) {
		/* The module snapshot is refreshed as the real library does: not for every sample. */
		if (ticks++ % 100 == 0)
			csink_modules_refresh(&setup_rec, &setup_writer, ticks);
	}
	if (sig == SIGPROF && uc->uc_mcontext.gregs[REG_EFL] & TRAP_FLAG) /* this instruction has been looked at */
		return;
	if (sig == SIGPROF)
		begin_burst();
	compare(uc);
	if ((left-- > 0 || (nr_pending && more-- > 0)) && !changes_mask(uc))
		uc->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
	else
		uc->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
	errno = kept;
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
	if (setup_modules() || csink_walk_dwarf_init() || csink_libunwind_init(reason))
		return;
	burst = (int)setting("WALK_DIFF_BURST", 40);
	sigfillset(&action.sa_mask);
	sigaction(SIGPROF, &action, NULL);
	sigaction(SIGTRAP, &action, NULL);
	start_timer();
}

__attribute__((destructor)) static void stop(void)
{
	struct csink_walk_dwarf_counts counts;

	if (!diff)
		return;
	judge_all(NULL);
	csink_walk_dwarf_counts(&counts);
	diff->untabled_steps = counts.untabled_steps;
	diff->complex_steps = counts.complex_steps;
}
