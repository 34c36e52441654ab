#include "preload/counters/engine.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "countersink/explain.h"
#include "include/internal/base.h"
#include "preload/counters/engine_timer.h"
#include "preload/counters/filters.h"
#include "preload/counters/own_status.h"
#include "preload/counters/switches.h"
#include "preload/sample/process.h"
#include "preload/sample/thread.h"

/* CPU timers fire on the tick, of 1 to 10 ms; with HZ = 250, as most distributions build it, every 4 ms. */
#define TICK_NS 4000000ULL

static const char *const names[CSINK_NR_ENGINES] = {
	[CSINK_ENGINE_NONE] = "none",
	[CSINK_ENGINE_SIGTRAP] = "sigtrap",
	[CSINK_ENGINE_SIGNAL] = "signal",
	[CSINK_ENGINE_TIMER] = "timer",
};

const char *csink_engine_name(enum csink_engine engine)
{
	return engine < CSINK_NR_ENGINES ? names[engine] : "unknown";
}

int csink_engine_parse(const char *name)
{
	if (!strcmp(name, "auto"))
		return CSINK_NR_ENGINES;
	for (int i = 0; i < CSINK_NR_ENGINES; i++)
		if (!strcmp(name, names[i]))
			return i;
	return -EINVAL;
}

/* A debugger keeps SIGTRAP for itself. */
static bool is_traced(void)
{
	struct csink_status status;

	return csink_status_read(0, &status) == 0 && status.tracer != 0;
}

static bool traced; /* as the engine was chosen */

/* Valgrind puts libraries of its own there, for the programs that it runs. */
static bool is_in_valgrind(void)
{
	const char *preload = getenv("LD_PRELOAD");

	return preload && strstr(preload, "/vgpreload_core");
}

/*
 * Go's runtime executes programs by a system call of its own, which no library sees. It has its mark among the notes of
 * the program.
 */
static bool is_go(void)
{
	const ElfW(Phdr) *phdr = (const ElfW(Phdr) *)getauxval(AT_PHDR), *end = phdr + getauxval(AT_PHNUM);
	uintptr_t bias = 0;

	for (const ElfW(Phdr) *at = phdr; at < end; at++)
		if (at->p_type == PT_PHDR)
			bias = (uintptr_t)phdr - at->p_vaddr;
	for (; phdr < end; phdr++) {
		const char *note = (const char *)(bias + phdr->p_vaddr), *last = note + phdr->p_memsz;

		while (phdr->p_type == PT_NOTE && note + sizeof(ElfW(Nhdr)) + 4 <= last) {
			const ElfW(Nhdr) *head = (const ElfW(Nhdr) *)note;
			size_t align = phdr->p_align > 4 ? phdr->p_align - 1 : 3;

			note += sizeof(*head);
			if (head->n_namesz == 4 && !memcmp(note, "Go\0", 4))
				return true;
			note += ((head->n_namesz + 3) & ~3UL) + ((head->n_descsz + align) & ~align);
		}
	}
	return false;
}

static bool is_unused(int signo)
{
	struct sigaction now;

	return sigaction(signo, NULL, &now) == 0 && now.sa_handler == SIG_DFL;
}

/*
 * A real-time signal that nobody uses yet, from the top: programs and libraries take them from the bottom. A debugger
 * stops at each of those, but lets pass, unless told otherwise, what has always been profilers'.
 */
static int free_signal(void)
{
	static const int profilers[] = {SIGPROF, SIGVTALRM};

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(profilers) && traced; i++)
		if (is_unused(profilers[i]))
			return profilers[i];
	for (int signo = SIGRTMAX - 2; signo > SIGRTMIN; signo--)
		if (is_unused(signo))
			return signo;
	return -EBUSY;
}

/*
 * Who leads a group: its first event; where that was refused, CPU time does in the first group, so that time is sampled
 * all the same, and the next event in the others. CSINK_MAX_EVENTS: nobody is left.
 */
static uint32_t leader_of(uint32_t g)
{
	uint32_t left = csink_process.groups[g], cpu = csink_process.cpu_event;
	bool is_first = true;

	for (; left; left &= left - 1, is_first = false) {
		uint32_t i = (uint32_t)__builtin_ctz(left);

		if (csink_process.events[i].rec.flags & CSINK_EVENT_REFUSED)
			continue;
		return !is_first && !g && csink_process.group_of[cpu] == 0 ? cpu : i;
	}
	return CSINK_MAX_EVENTS;
}

/* What of a group is to be opened: CPU time is counted by itself only where it leads (see csink_process.groups). */
static uint8_t members_of(uint32_t g)
{
	uint32_t left = csink_process.groups[g], leader = leader_of(g);
	uint8_t members = 0;

	for (; left; left &= left - 1) {
		uint32_t i = (uint32_t)__builtin_ctz(left);

		if (!(csink_process.events[i].rec.flags & CSINK_EVENT_REFUSED) &&
		    (i == leader || i != csink_process.cpu_event))
			members |= (uint8_t)(1u << i);
	}
	return members;
}

static void close_groups(struct csink_thread *thread)
{
	for (uint32_t g = csink_process.nr_groups; g-- > 0;)
		csink_group_close(&thread->groups[g]);
}

/* All of them, or none; *failed is then the event that could not be had. */
static int open_groups(struct csink_thread *thread, enum csink_engine engine, uint32_t *failed)
{
	struct csink_process *process = &csink_process;
	struct csink_group_open open = {
		.events = process->events,
		.how = engine == CSINK_ENGINE_SIGTRAP ? CSINK_GROUP_SIGTRAP : CSINK_GROUP_SETSIG,
		.signo = process->signo,
		.tid = thread->tid,
	};
	int err = 0;

	csink_thread_lend_stack(thread, &open);
	for (uint32_t g = 0; g < process->nr_groups && !err; g++) {
		open.members = members_of(g);
		open.leader = (uint8_t)leader_of(g);
		if (open.members)
			err = csink_group_open(&thread->groups[g], &open, failed);
	}
	if (err)
		close_groups(thread);
	return err;
}

static bool is_elsewhere(const struct csink_thread *thread)
{
	bool elsewhere = thread->switches.elsewhere;

	for (uint32_t g = 0; g < csink_process.nr_groups; g++)
		elsewhere |= thread->groups[g].elsewhere;
	return elsewhere;
}

static int open_timer(struct csink_thread *thread)
{
	int err;

	if (!csink_process.timer_signo) {
		int signo = free_signal();

		err = signo < 0 ? signo : csink_process.install_signal(signo);
		if (err)
			return err;
		csink_process.timer_signo = signo;
	}
	err = csink_cputimer_open(&thread->timer, csink_process.timer_signo, csink_process.period_ns, &csink_process);
	if (!err)
		thread->engine = CSINK_ENGINE_TIMER;
	return err;
}

/* ---- the choice, once, in the main thread ------------------------------------------------------------------------ */

static void refuse_event(struct csink_thread *thread, uint32_t i, const char *why)
{
	csink_process.events[i].rec.flags |= CSINK_EVENT_REFUSED;
	csink_process.rec.header->events[i].flags |= CSINK_EVENT_REFUSED;
	csink_recording_note(&csink_process.rec, &thread->writer, 1, "event %s is not counted: %s",
			     csink_process.events[i].rec.name, why);
}

static void leave_kernel_out(struct csink_thread *thread)
{
	for (uint32_t i = 0; i < CSINK_MIN(csink_process.nr_events, csink_process.off_cpu_event); i++) {
		if (csink_process.events[i].rec.flags & CSINK_EVENT_REFUSED)
			continue;
		/* It would count 0, whatever goes on. */
		if (csink_event_is_kernels_own(&csink_process.events[i]))
			refuse_event(thread, i,
				     "it happens in the kernel, which perf_event_paranoid hides: it takes "
				     "kernel.perf_event_paranoid <= 1 or CAP_PERFMON");
		csink_event_set_user_only(&csink_process.events[i]);
		csink_process.rec.header->events[i].flags |= CSINK_EVENT_USER_ONLY;
	}
}

/* Is it this event that cannot be had, rather than the way in which it is opened? */
static bool is_events_own(uint32_t failed, int err)
{
	bool first = failed == leader_of(0);

	if (err == -EMFILE || err == -ENFILE || err == -EPERM || err == -ENOMEM)
		return false;
	/* The first one of all: another engine may do better, unless there is no such event. */
	return !first || err == -ENOENT || err == -EOPNOTSUPP || err == -ENODEV || err == -ENOSPC;
}

/*
 * Open the groups, giving up what the kernel refuses: its own side first (paranoid 2), then single events.
 */
static int try_perf(struct csink_thread *thread, enum csink_engine engine)
{
	uint32_t failed = 0;
	int err = csink_process.signo < 0 ? csink_process.signo : csink_process.install_signal(csink_process.signo);
	char words[120];

	while (!err) {
		err = open_groups(thread, engine, &failed);
		if (!err) {
			thread->engine = engine;
			return 0;
		}
		memset(thread->groups, 0, sizeof(thread->groups));
		if (err == -EACCES && !(csink_process.events[failed].rec.flags & CSINK_EVENT_USER_ONLY))
			leave_kernel_out(thread);
		else if (failed != csink_process.cpu_event && is_events_own(failed, err))
			refuse_event(thread, failed, csink_explain_brief(-err, words, sizeof(words)));
		else
			return err;
		err = 0;
	}
	return err;
}

/* Say in the recording who samples, now that it is known. */
static void name_leaders(void)
{
	struct csink_rec_header *header = csink_process.rec.header;

	for (uint32_t g = 0; g < csink_process.nr_groups; g++) {
		uint32_t at = leader_of(g);
		struct csink_event_spec *leader;

		if (at == CSINK_MAX_EVENTS)
			continue;
		leader = &csink_process.events[at];
		leader->rec.flags |= CSINK_EVENT_LEADER;
		leader->rec.period = leader->attr.freq ? 0 : leader->attr.sample_period;
		header->events[at].flags |= CSINK_EVENT_LEADER;
		header->events[at].period = leader->rec.period;
	}
}

static int try_engine(struct csink_thread *thread, enum csink_engine engine)
{
	switch (engine) {
	case CSINK_ENGINE_SIGTRAP:
		csink_process.signo = SIGTRAP;
		return try_perf(thread, engine);
	case CSINK_ENGINE_SIGNAL:
		csink_process.signo = free_signal();
		/* Where the user's queue of signals is full, the kernel sends this one instead. */
		csink_process.install_signal(SIGIO);
		return try_perf(thread, engine);
	case CSINK_ENGINE_TIMER:
		/* CPU time is all it can weigh. */
		for (uint32_t i = 0; i < csink_process.nr_events; i++)
			if (i != csink_process.cpu_event && i != csink_process.off_cpu_event &&
			    !(csink_process.events[i].rec.flags & CSINK_EVENT_REFUSED))
				refuse_event(thread, i, "the timer engine counts CPU time only");
		if (csink_process.period_ns < TICK_NS)
			csink_recording_note(&csink_process.rec, &thread->writer, 0,
					     "the timer engine samples on the kernel's tick only, some milliseconds "
					     "apart; each sample weighs what passed");
		return open_timer(thread);
	default:
		return 0;
	}
}

/* Time off the CPU is taken with the sigtrap engine alone: any other signal would interrupt the calls that block. */
static void open_switches(struct csink_thread *thread)
{
	uint32_t event = csink_process.off_cpu_event;
	char words[120];
	int err;

	if (event == CSINK_MAX_EVENTS || csink_process.events[event].rec.flags & CSINK_EVENT_REFUSED)
		return;
	if (thread->engine != CSINK_ENGINE_SIGTRAP) {
		refuse_event(thread, event, "only the sigtrap engine leaves blocking calls alone");
		return;
	}
	err = csink_switches_open(thread);
	if (err == -EACCES)
		refuse_event(thread, event,
			     "switches happen in the kernel, which perf_event_paranoid hides: it takes "
			     "kernel.perf_event_paranoid <= 1 or CAP_PERFMON");
	else if (err)
		refuse_event(thread, event, csink_explain_brief(-err, words, sizeof(words)));
}

static const char *explain(int engine, int err, char *words, size_t size)
{
	if (engine == CSINK_ENGINE_TIMER && err == -EAGAIN)
		return "timer_create says EAGAIN: no room in the queue of signals (RLIMIT_SIGPENDING)";
	if (csink_deadly_calls & (engine == CSINK_ENGINE_TIMER ? CSINK_DEADLY_TIMER : CSINK_DEADLY_PERF) &&
	    err == -EPERM)
		return engine == CSINK_ENGINE_TIMER ? "a seccomp filter kills for timer_create"
						    : "a seccomp filter kills for perf_event_open";
	return csink_explain_brief(-err, words, size);
}

/* The engines to try, from the first to the last one, as far as nobody else forbids them; *why is told who does. */
static void choose_range(int *first, int *last, char *why, size_t size)
{
	int wanted = csink_process.wanted_engine;

	csink_process.stay_on_stack = is_in_valgrind();
	traced = is_traced();
	*first = *last = wanted;
	if (csink_process.stay_on_stack && wanted != CSINK_ENGINE_TIMER && wanted != CSINK_ENGINE_NONE) {
		/* A signal of the kernel's reaches valgrind itself, which dies of it. */
		*first = *last = CSINK_ENGINE_NONE;
		snprintf(why, size,
			 "valgrind runs the program on a CPU of its own: its tool callgrind samples there, or "
			 "--engine=timer");
	} else if ((wanted == CSINK_NR_ENGINES || wanted == CSINK_ENGINE_SIGTRAP) && is_go()) {
		*first = CSINK_ENGINE_SIGNAL;
		*last = CSINK_ENGINE_TIMER;
		snprintf(why, size, "sigtrap: would kill what Go executes past us");
	} else if (wanted == CSINK_NR_ENGINES) {
		*first = CSINK_ENGINE_SIGTRAP;
		*last = CSINK_ENGINE_TIMER;
		if (traced) {
			*first = CSINK_ENGINE_SIGNAL;
			snprintf(why, size, "sigtrap: a debugger owns SIGTRAP");
		}
	} else {
		snprintf(why, size, "as asked");
	}
}

static int choose(struct csink_thread *thread)
{
	struct csink_rec_header *header = csink_process.rec.header;
	size_t used, size = sizeof(header->engine_reason);
	char *why = header->engine_reason;
	int first, last, err = -ENOSYS;
	char words[120];

	choose_range(&first, &last, why, size);
	used = strlen(why);
	for (int engine = first; engine <= last; engine++) {
		err = try_engine(thread, (enum csink_engine)engine);
		if (!err) {
			csink_process.engine = (enum csink_engine)engine;
			name_leaders();
			open_switches(thread);
			break;
		}
		if (used < size)
			used += (size_t)snprintf(why + used, size - used, "%s%s: %s", used ? "; " : "", names[engine],
						 explain(engine, err, words, sizeof(words)));
	}
	header->engine = csink_process.engine;
	return err;
}

int csink_engine_open(struct csink_thread *thread)
{
	uint32_t failed;
	int err;

	thread->engine = CSINK_ENGINE_NONE;
	if (!csink_process.engine_decided) {
		csink_process.engine_decided = true;
		return choose(thread);
	}
	switch (csink_process.engine) {
	case CSINK_ENGINE_SIGTRAP:
	case CSINK_ENGINE_SIGNAL:
		err = open_groups(thread, csink_process.engine, &failed);
		if (err)
			return open_timer(thread);
		thread->engine = csink_process.engine;
		open_switches(thread);
		return 0;
	case CSINK_ENGINE_TIMER:
		return open_timer(thread);
	default:
		return 0;
	}
}

bool csink_engine_ends_at_once(const struct csink_thread *thread)
{
	return thread->engine == CSINK_ENGINE_SIGTRAP && csink_process.nr_groups == 1 &&
	       thread->groups[0].members == 1u << csink_process.cpu_event &&
	       csink_process.events[csink_process.cpu_event].rec.flags & CSINK_EVENT_CPU_NS &&
	       !csink_group_is_open(&thread->switches);
}

void csink_engine_pause(struct csink_thread *thread)
{
	if (thread->engine == CSINK_ENGINE_TIMER) {
		csink_cputimer_pause(thread->timer);
	} else if (is_elsewhere(thread)) {
		csink_group_close(&thread->switches);
		close_groups(thread);
	} else if (thread->engine != CSINK_ENGINE_NONE) {
		csink_group_pause();
	}
}

/* Opened by another task, the groups were closed to pause; they go on from what has been attributed. */
static void reopen(struct csink_thread *thread)
{
	uint32_t failed;

	for (uint32_t g = 0; g < csink_process.nr_groups; g++)
		memcpy(thread->groups[g].base, thread->last, sizeof(thread->groups[g].base));
	memset(thread->last_enabled_ns, 0, sizeof(thread->last_enabled_ns));
	memset(thread->last_running_ns, 0, sizeof(thread->last_running_ns));
	if (open_groups(thread, thread->engine, &failed)) {
		thread->engine = CSINK_ENGINE_NONE;
		open_timer(thread);
	} else {
		open_switches(thread);
	}
	thread->entry->engine = thread->engine;
}

void csink_engine_resume(struct csink_thread *thread)
{
	if (thread->engine == CSINK_ENGINE_TIMER)
		csink_cputimer_resume(thread->timer, csink_process.period_ns);
	else if (is_elsewhere(thread))
		reopen(thread);
	else if (thread->engine != CSINK_ENGINE_NONE)
		csink_group_resume();
}

void csink_engine_leave_sigtrap(struct csink_thread *thread, const char *why)
{
	struct csink_rec_header *header = csink_process.rec.header;
	int signo;

	if (thread->engine != CSINK_ENGINE_SIGTRAP)
		return;
	if (csink_process.engine == CSINK_ENGINE_SIGTRAP) {
		signo = free_signal();
		if (signo < 0 || csink_process.install_signal(signo))
			return;
		csink_process.signo = signo;
		csink_process.engine = CSINK_ENGINE_SIGNAL;
		header->engine = CSINK_ENGINE_SIGNAL;
		snprintf(header->engine_reason, sizeof(header->engine_reason), "sigtrap: %s", why);
	}
	csink_group_pause();
	csink_thread_flush(thread);
	csink_group_close(&thread->switches);
	close_groups(thread);
	thread->engine = csink_process.engine;
	reopen(thread);
	csink_group_resume(); /* what the program itself had opened was paused as well */
}

void csink_engine_close(struct csink_thread *thread)
{
	if (thread->engine == CSINK_ENGINE_TIMER)
		csink_cputimer_close(thread->timer);
	else if (thread->engine != CSINK_ENGINE_NONE)
		close_groups(thread);
	csink_group_close(&thread->switches);
	thread->engine = CSINK_ENGINE_NONE;
}
