/*
 * A thread's engine: opened, paused, resumed and closed (see engine.h). Each thread does this for itself. The functions
 * that engine.h marks "signal" also run in its handler: they take no lock and call no libc.
 */
#include "preload/agent/sampler/engine.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <ucontext.h>

#include "countersink/explain.h"
#include "include/internal/base.h"
#include "include/internal/rawcall.h"
#include "preload/agent/sampler/engine_impl.h"
#include "preload/agent/sampler/engine_timer.h"
#include "preload/agent/sampler/plan.h"
#include "preload/agent/sampler/process.h"
#include "preload/agent/sampler/switches.h"
#include "preload/agent/sampler/thread.h"
#include "preload/core/calls_off.h"

struct csink_engine_state csink_engine_state;

static const char names[CSINK_NR_ENGINES][8] = {
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

/* A signal that is pending or blocked before the program begins is used: another process sends it, or the program
 * waits for it. */
static bool is_unused(int signo, uint64_t wanted)
{
	void *action[4] = {NULL}; /* the kernel's struct sigaction: the handler first, NULL is SIG_DFL */

	return !(wanted >> (signo - 1) & 1) && !csink_rawcall(SYS_rt_sigaction, signo, NULL, action, sizeof(wanted)) &&
	       !action[0];
}

static uint64_t pending_signals(void)
{
	uint64_t set = 0;

	csink_rawcall(SYS_rt_sigpending, &set, sizeof(set));
	return set;
}

static uint64_t blocked_signals(void)
{
	uint64_t set = 0;

	csink_rawcall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &set, sizeof(set));
	return set;
}

/*
 * A real-time signal that is not in use yet, from the top: programs and libraries take them from the bottom. A debugger
 * stops at each of those, but by default passes the signals that profilers have always used.
 */
int csink_engine_free_signal(void)
{
	static const int profilers[] = {SIGPROF, SIGVTALRM};
	uint64_t pending = pending_signals(), blocked = blocked_signals();

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(profilers) && csink_process.is_traced; i++)
		if (is_unused(profilers[i], pending))
			return profilers[i];
	for (int signo = SIGRTMAX - 2; signo > SIGRTMIN; signo--)
		if (is_unused(signo, pending | blocked))
			return signo;
	for (int signo = SIGRTMAX - 2; signo > SIGRTMIN; signo--)
		if (is_unused(signo, pending))
			return signo;
	return -EBUSY;
}

void csink_engine_refuse_event(struct csink_thread *thread, uint32_t event, const char *why)
{
	csink_plan.events[event].rec.flags |= CSINK_EVENT_REFUSED;
	csink_own_recording.header->events[event].flags |= CSINK_EVENT_REFUSED;
	csink_recording_note(&csink_own_recording, &thread->writer, 1, "event %s is not counted: %s",
			     csink_plan.events[event].rec.name, why);
}

const char csink_engine_kernels_own[] = "it happens in the kernel, which perf_event_paranoid hides: it takes "
					"kernel.perf_event_paranoid <= 1 or CAP_PERFMON";

/* Time off the CPU is taken with the sigtrap engine alone: any other signal would interrupt the calls that block. */
void csink_engine_open_switches(struct csink_thread *thread)
{
	uint32_t event = csink_plan.off_cpu_event;
	char words[120];
	int err;

	if (event == CSINK_MAX_EVENTS || csink_plan.events[event].rec.flags & CSINK_EVENT_REFUSED)
		return;
	if (thread->engine != CSINK_ENGINE_SIGTRAP) {
		csink_engine_refuse_event(thread, event, "only the sigtrap engine does not interrupt blocking calls");
		return;
	}
	err = csink_switches_open(thread);
	if (err == -EACCES)
		csink_engine_refuse_event(thread, event, csink_engine_kernels_own);
	else if (err)
		csink_engine_refuse_event(thread, event, csink_explain_brief(-err, words, sizeof(words)));
}

/*
 * Install a free signal, and make it the one of the process, *signo, in place of `before`. Several threads may get here
 * at once: the first decides for all, since what is not sent by *signo is taken for the program's, which would end of
 * it. What another one has installed meanwhile stays ours, and unused. Returns the signal, or a negative errno.
 */
static int change_signal(_Atomic int *signo, int before)
{
	int found = csink_engine_free_signal();
	int err = found < 0 ? found : csink_engine_state.install_signal(found);

	if (err)
		return err;
	return atomic_compare_exchange_strong(signo, &before, found) ? found : before;
}

/* A signal that another thread has installed after this one began may still be blocked here. */
static void hide_here(const struct csink_thread *thread, int signo)
{
	if (!(thread->hidden.signals >> (signo - 1) & 1))
		csink_engine_state.install_signal(signo);
}

/* For the signal engine; SIGIO is what the kernel sends where the user's queue of signals is full. */
static void hide_both(const struct csink_thread *thread)
{
	hide_here(thread, csink_engine_state.signo);
	hide_here(thread, SIGIO);
}

int csink_engine_open_timer(struct csink_thread *thread)
{
	int signo = csink_engine_state.timer_signo, err;

	if (!signo)
		signo = change_signal(&csink_engine_state.timer_signo, 0);
	if (signo < 0)
		return signo;
	hide_here(thread, signo);
	err = csink_cputimer_open(&thread->timer, signo, &csink_process);
	if (err)
		return err;
	csink_engine_start_timer(thread);
	thread->engine = CSINK_ENGINE_TIMER;
	return 0;
}

void csink_engine_start_timer(struct csink_thread *thread)
{
	thread->timer_period_ns = csink_engine_state.period_ns;
	csink_cputimer_resume(thread->timer, thread->timer_period_ns);
}

/* The handler may reopen a thread's groups (csink_engine_slow_down), but not while the thread itself changes them.
 */
void csink_engine_hold(struct csink_thread *thread)
{
	atomic_store_explicit(&thread->engine_busy, 1, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst); /* before the groups change */
}

/* Returns why our signals had to be blocked meanwhile: enum csink_held; 0: they were not. */
static uint32_t end_change(struct csink_thread *thread)
{
	atomic_signal_fence(memory_order_seq_cst); /* after the groups have changed */
	atomic_store_explicit(&thread->engine_busy, 0, memory_order_relaxed);
	return atomic_exchange_explicit(&thread->is_held, 0, memory_order_relaxed);
}

static void unblock_own_signals(const struct csink_thread *thread)
{
	uint64_t bits = thread->hidden.signals & ~thread->hidden.queued;

	csink_rawcall(SYS_rt_sigprocmask, SIG_UNBLOCK, &bits, NULL, sizeof(bits));
}

void csink_engine_block_in(void *context)
{
	*(uint64_t *)&((ucontext_t *)context)->uc_sigmask |= csink_self->hidden.signals;
}

/*
 * If our signals had to be blocked because of samples while the groups were being opened, open the groups again with a
 * longer period, until that is not needed any more.
 */
void csink_engine_release(struct csink_thread *thread)
{
	uint32_t held, was_held = 0;

	while (CSINK_UNLIKELY(held = end_change(thread))) {
		was_held |= held;
		if (!(held & CSINK_HELD_SAMPLES))
			break;
		if (thread->engine != CSINK_ENGINE_SIGTRAP && thread->engine != CSINK_ENGINE_SIGNAL)
			break;
		csink_engine_hold(thread);
		if (csink_engine_reopen_rarer(thread, CSINK_MAX_EVENTS, false))
			csink_recording_lose(&csink_own_recording, CSINK_LOSS_STUCK, 1);
	}
	if (was_held)
		unblock_own_signals(thread);
}

/* Once in a process: a thread could not have the process's engine. */
static void note_lesser(struct csink_thread *thread, int err)
{
	static _Atomic int32_t noted_by; /* the PID: a forked child notes it again */
	int32_t pid = csink_process.pid;
	char words[120];

	if (atomic_exchange_explicit(&noted_by, pid, memory_order_relaxed) == pid)
		return;
	csink_recording_note(&csink_own_recording, &thread->writer, 1,
			     "some threads are sampled by the timer engine, on the kernel's tick only: %s",
			     csink_explain_brief(-err, words, sizeof(words)));
}

static int open_as_chosen(struct csink_thread *thread)
{
	enum csink_engine engine =
		csink_engine_state.engine; /* another thread may change it: csink_engine_leave_sigtrap */
	uint32_t failed;
	int err;

	switch (engine) {
	case CSINK_ENGINE_SIGNAL:
		hide_both(thread);
		/* fall through */
	case CSINK_ENGINE_SIGTRAP:
		err = csink_engine_open_groups(thread, engine, &failed);
		if (err) {
			note_lesser(thread, err);
			return csink_engine_open_timer(thread);
		}
		thread->engine = engine;
		csink_engine_open_switches(thread);
		return 0;
	case CSINK_ENGINE_TIMER:
		return csink_engine_open_timer(thread);
	default:
		return 0;
	}
}

int csink_engine_open(struct csink_thread *thread)
{
	bool first = !csink_engine_state.is_decided;
	int err;

	thread->engine = CSINK_ENGINE_NONE;
	csink_engine_state.is_decided = true;
	if (first) {
		csink_thread_mute(thread, true); /* what chooses has no unwind tables */
		err = csink_engine_choose(thread);
		csink_thread_mute(thread, false);
		return err;
	}
	csink_engine_hold(thread);
	err = open_as_chosen(thread);
	csink_engine_release(thread);
	return err;
}

bool csink_engine_ends_at_once(const struct csink_thread *thread)
{
	return thread->engine == CSINK_ENGINE_SIGTRAP && csink_plan.nr_groups == 1 &&
	       thread->groups[0].members == 1u << csink_plan.cpu_event &&
	       csink_plan.events[csink_plan.cpu_event].rec.flags & CSINK_EVENT_CPU_NS &&
	       !csink_group_is_open(&thread->switches);
}

static void close_all(struct csink_thread *thread)
{
	csink_engine_hold(thread);
	csink_group_close(&thread->switches);
	csink_engine_close_groups(thread);
	if (end_change(thread))
		unblock_own_signals(thread);
}

/* The kernel writes the pages when it switches a thread out: so the thread sleeps, as briefly as possible. */
void csink_engine_refresh(struct csink_thread *thread, bool software)
{
	static const struct timespec shortest = {0, 1};
	uint32_t of = 0;
	bool behind = false;

	for (uint32_t i = 0; i < csink_plan.nr_events; i++)
		if (!(csink_plan.events[i].rec.flags & CSINK_EVENT_CPU_NS) &&
		    (software || csink_plan.events[i].attr.type != PERF_TYPE_SOFTWARE))
			of |= 1u << i;

	for (uint32_t g = 0; g < csink_plan.nr_groups; g++)
		behind |= csink_group_page_is_behind(&thread->groups[g], of);
	if (behind && !csink_calls_are_off(CSINK_CALLS_LIFE))
		csink_rawcall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &shortest, NULL);
}

/*
 * A filter of the program's own kills for opening groups: once closed they would stay so. Then all events of the task
 * are stopped by prctl(2) and resumed, unless the program has opened some itself.
 */
static bool must_stay_open(const struct csink_thread *thread)
{
	bool elsewhere = thread->switches.elsewhere;

	for (uint32_t g = 0; g < csink_plan.nr_groups; g++)
		elsewhere |= thread->groups[g].elsewhere;
	return csink_calls_are_off(CSINK_CALLS_LIFE) && !csink_calls_are_off(CSINK_CALLS_TASK) && !elsewhere &&
	       !thread->program_has_events;
}

static void switch_task_events(int option)
{
	csink_rawcall(SYS_prctl, option, 0, 0, 0, 0);
}

void csink_engine_pause(struct csink_thread *thread)
{
	if (thread->engine == CSINK_ENGINE_TIMER) {
		csink_cputimer_pause(thread->timer);
	} else if (thread->engine != CSINK_ENGINE_NONE && must_stay_open(thread)) {
		switch_task_events(PR_TASK_PERF_EVENTS_DISABLE);
		thread->is_stopped_open = true;
	} else if (thread->engine != CSINK_ENGINE_NONE) {
		csink_engine_refresh(thread, true);
		close_all(thread);
	}
}

/* The groups were closed to pause; they go on from what has been attributed. */
static void reopen(struct csink_thread *thread)
{
	uint32_t failed;

	csink_engine_hold(thread);
	csink_engine_count_on(thread);
	if (csink_engine_open_groups(thread, thread->engine, &failed)) {
		thread->engine = CSINK_ENGINE_NONE;
		csink_engine_open_timer(thread);
	} else {
		csink_engine_open_switches(thread);
	}
	csink_engine_release(thread);
	thread->entry->engine = thread->engine;
}

void csink_engine_resume(struct csink_thread *thread)
{
	if (thread->engine == CSINK_ENGINE_TIMER)
		csink_engine_start_timer(thread);
	else if (thread->is_stopped_open)
		switch_task_events(PR_TASK_PERF_EVENTS_ENABLE);
	else if (thread->engine != CSINK_ENGINE_NONE)
		reopen(thread);
	thread->is_stopped_open = false;
}

void csink_engine_leave_sigtrap(struct csink_thread *thread, const char *why)
{
	struct csink_rec_header *header = csink_own_recording.header;

	if (thread->engine != CSINK_ENGINE_SIGTRAP)
		return;
	if (csink_engine_state.engine == CSINK_ENGINE_SIGTRAP) {
		if (change_signal(&csink_engine_state.signo, SIGTRAP) < 0)
			return;
		csink_engine_state.engine = CSINK_ENGINE_SIGNAL;
		header->engine = CSINK_ENGINE_SIGNAL;
		snprintf(header->engine_reason, sizeof(header->engine_reason), "sigtrap: %s", why);
	}
	csink_engine_pause(thread);
	csink_thread_flush(thread);
	hide_both(thread);
	thread->engine = CSINK_ENGINE_SIGNAL;
	reopen(thread);
}

void csink_engine_close(struct csink_thread *thread)
{
	if (thread->engine == CSINK_ENGINE_TIMER)
		csink_cputimer_close(thread->timer);
	close_all(thread);
	thread->engine = CSINK_ENGINE_NONE;
}
