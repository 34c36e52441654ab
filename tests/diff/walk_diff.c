/*
 * walk_diff.so, for LD_PRELOAD: at timer ticks, and then at every one of the next instructions (single-stepped), walk
 * the stack of the program's first thread by our rows and by libunwind's full walk, and compare. Single steps see what
 * samples seldom do: prologues, epilogues, PLT stubs, the dynamic linker.
 *
 * WALK_DIFF_OUT (a file name; the pid is appended), WALK_DIFF_HZ (default 1000), WALK_DIFF_BURST (instructions stepped
 * after a tick, default 40).
 */
#include "preload/sample/cfi_row.h"
#include "tests/diff/appeal.h"
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
#define MAX_PENDING 4096
/* Instructions stepped ahead of one, in search of the same: so many in code without tables, or with. */
#define MAX_AHEAD 16384
#define MAX_AHEAD_TABLED 256

static struct walk_diff *diff;
static struct csink_stack_bounds stack;
static uint64_t frames[4][CSINK_MAX_DEPTH];
static struct csink_walk_memo memo;
static int burst, left, more, ahead;
static uint32_t ticks;
/* Of this burst: the last walk that is known to be right, and the differences since, that wait for the next one. */
static struct instant agreed;
static struct pending pending[MAX_PENDING];
static uint32_t nr_pending, nr_waiting; /* so many of them are differences */
static bool ending;                     /* SIGTERM came */

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

static void pass_verdict(enum walk_diff_class class, uint32_t record, enum walk_diff_verdict verdict)
{
	/* what both agree on needs none; refuted, it is worth to be known */
	if (class == DIFF_SAME && verdict < VERDICT_CUT)
		return;
	diff->verdicts[class][verdict]++;
	if (record < DIFF_RECORDS)
		diff->records[record].verdicts[verdict]++;
}

/* What both agree on, and is not true: beside the truth instead of libunwind's. */
static uint32_t record_refuted(const struct pending *p, enum walk_diff_verdict verdict, const struct instant *truth)
{
	struct csink_walk walks[2] = {
		{.frames = (uint64_t *)p->by[0].frames, .nr_frames = p->by[0].nr},
		{.frames = (uint64_t *)truth->frames, .nr_frames = truth->nr},
	};

	return verdict < VERDICT_CUT ? DIFF_RECORDS : record(DIFF_SAME, p->by[0].pc, walks, 0);
}

static void settle(const struct pending *p, enum walk_diff_verdict verdict, const struct instant *truth)
{
	if (p->is_appeal) {
		verdict = verdict == VERDICT_NONE ? verdict : judge_appeal(truth);
		for (uint32_t i = 0; i < appeal.nr_records; i++)
			pass_verdict(appeal.classes[i], appeal.records[i], verdict);
		appeal.open = false;
		appeal.nr_records = 0;
	} else if (verdict != VERDICT_NONE || p->class == DIFF_SAME || !lodge_appeal(p)) {
		pass_verdict(p->class, p->class == DIFF_SAME ? record_refuted(p, verdict, truth) : p->record, verdict);
	}
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
	static enum walk_diff_verdict verdicts[MAX_PENDING];
	bool known = agreed.nr > 0;

	truth = agreed;
	for (uint32_t i = 0; i < nr_pending; i++) {
		known = known && follow(&truth, &pending[i]);
		verdicts[i] = known ? judge(&pending[i], &truth) : VERDICT_NONE;
	}
	known = after != NULL;
	if (known)
		truth = *after;
	for (uint32_t i = nr_pending; i-- > 0;) {
		known = known && trace_back(&truth, &pending[i]);
		if (known)
			verdicts[i] = either(verdicts[i], judge(&pending[i], &truth));
		settle(&pending[i], verdicts[i], &truth);
	}
	nr_pending = nr_waiting = 0;
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
	ahead = MAX_AHEAD;
}

static void wait_for_verdict(enum walk_diff_class class, uint32_t record, uint64_t pc, const struct csink_walk *ours,
			     const struct csink_walk *other, uint64_t sp)
{
	struct pending *p = &pending[nr_pending];

	if (nr_pending == MAX_PENDING) {
		lose_track();
		p = pending;
	}
	p->record = record;
	p->class = class;
	p->complete = is_complete(ours);
	p->is_appeal = false;
	note_instant(&p->by[0], pc, ours);
	note_instant(&p->by[1], pc, other);
	p->slot = class == DIFF_SAME ? 0 : find_slot(p, sp, stack.high);
	nr_pending++;
	nr_waiting += class != DIFF_SAME;
}

/* The appeal's return was reached, and waits for a walk that is agreed on. */
static bool is_heard(void)
{
	for (uint32_t i = 0; i < nr_pending; i++)
		if (pending[i].is_appeal)
			return true;
	return false;
}

/* The program returned to where an appeal waits for it. */
static void hear_appeal(const struct csink_walk *ours, uint64_t pc, bool is_agreed)
{
	struct pending *p;

	wait_for_verdict(DIFF_SAME, DIFF_RECORDS, pc, ours, ours, 0);
	p = &pending[nr_pending - 1];
	p->is_appeal = true;
	nr_waiting++;
	if (is_agreed) {
		settle(p, VERDICT_OURS, &p->by[0]);
		nr_pending = nr_waiting = 0; /* it was the first of its burst */
	}
}

/* ---- one comparison ---------------------------------------------------------------------------------------------- */

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

/* Ahead of a burst: returns whether to look for its beginning further on. */
static bool look_ahead(bool is_known, bool has_table)
{
	ahead -= has_table ? MAX_AHEAD / MAX_AHEAD_TABLED : 1;
	if (is_known || (ahead <= 0 && has_table)) {
		ahead = 0;
		return false;
	}
	/* no end of code without tables: it would be guesses against guesses */
	left = ahead > 0 ? left + 1 : 0;
	diff->nr_ahead++;
	return true;
}

/* A difference, looked at again: libunwind is told of all objects, and without its cache. */
static enum walk_diff_class look_again(enum walk_diff_class class, const struct csink_walk *ours, const ucontext_t *uc,
				       struct csink_walk *again)
{
	bool news = csink_modules_refresh(&setup_rec, &setup_writer, ++ticks) > 0;
	uint32_t at;

	csink_libunwind_use_cache(false);
	csink_walk_libunwind(again, uc);
	csink_libunwind_use_cache(true);
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
	csink_walk_libunwind(&walks[1], uc);
	class = classify(walks, &at);
	if (class != DIFF_SAME && class != DIFF_SAME_SHORT)
		class = look_again(class, &walks[0], uc, &again);
	same = class == DIFF_SAME || class == DIFF_CACHE || class == DIFF_OBJECT;
	if (!same && before.untabled_steps != after.untabled_steps)
		class = DIFF_UNTABLED;
	/* A burst begins where both agree, so that what comes of that can be judged. */
	if (ahead > 0 && look_ahead(is_known(class, pc), true))
		return;
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
	if (ahead <= 0 || has_table(pc) || !look_ahead(false, false))
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
	if (setup_modules() || csink_walk_dwarf_init() || csink_libunwind_init(reason))
		return;
	burst = (int)setting("WALK_DIFF_BURST", 40);
	sigfillset(&action.sa_mask);
	sigaction(SIGPROF, &action, NULL);
	sigaction(SIGTRAP, &action, NULL);
	signal(SIGTERM, on_term);
	start_timer();
}
