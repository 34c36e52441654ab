#include "preload/counters/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "countersink/explain.h"
#include "include/internal/base.h"
#include "preload/counters/engine_timer.h"
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

/* A real-time signal that nobody uses yet, from the top: programs and libraries take them from the bottom. */
static int free_signal(void)
{
	for (int signo = SIGRTMAX - 2; signo > SIGRTMIN; signo--) {
		struct sigaction now;

		if (sigaction(signo, NULL, &now) == 0 && now.sa_handler == SIG_DFL)
			return signo;
	}
	return -EBUSY;
}

/* A debugger keeps SIGTRAP for itself. */
static bool is_traced(void)
{
	char buf[1024], *at;
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, buf, sizeof(buf) - 1);

	if (fd >= 0)
		close(fd);
	buf[n > 0 ? n : 0] = 0;
	at = strstr(buf, "TracerPid:");
	return at && atoi(at + 10) != 0;
}

static int open_group(struct csink_thread *thread, enum csink_engine engine, uint32_t *failed)
{
	struct csink_process *process = &csink_process;
	struct csink_group_open open = {
		.events = process->events,
		.nr = CSINK_MIN(process->nr_events, process->off_cpu_event),
		.how = engine == CSINK_ENGINE_SIGTRAP ? CSINK_GROUP_SIGTRAP : CSINK_GROUP_SETSIG,
		.signo = process->signo,
		.tid = thread->tid,
	};

	csink_thread_lend_stack(thread, &open);
	return csink_group_open(&thread->group, &open, failed);
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

static void leave_kernel_out(void)
{
	for (uint32_t i = 0; i < CSINK_MIN(csink_process.nr_events, csink_process.off_cpu_event); i++) {
		csink_event_set_user_only(&csink_process.events[i]);
		csink_process.rec.header->events[i].flags |= CSINK_EVENT_USER_ONLY;
	}
}

/* Open the group, giving up what the kernel refuses: its own side first (paranoid 2), then single counters. */
static int try_perf(struct csink_thread *thread, enum csink_engine engine)
{
	uint32_t failed = 0;
	int err = csink_process.signo < 0 ? csink_process.signo : csink_process.install_signal(csink_process.signo);
	char words[120];

	while (!err) {
		err = open_group(thread, engine, &failed);
		if (!err) {
			thread->engine = engine;
			return 0;
		}
		if (err == -EACCES && !(csink_process.events[0].rec.flags & CSINK_EVENT_USER_ONLY))
			leave_kernel_out();
		else if (failed && err != -EMFILE && err != -EPERM)
			refuse_event(thread, failed, csink_explain_brief(-err, words, sizeof(words)));
		else
			return err;
		err = 0;
	}
	return err;
}

static int try_engine(struct csink_thread *thread, enum csink_engine engine)
{
	switch (engine) {
	case CSINK_ENGINE_SIGTRAP:
		csink_process.signo = SIGTRAP;
		return try_perf(thread, engine);
	case CSINK_ENGINE_SIGNAL:
		csink_process.signo = free_signal();
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

static int choose(struct csink_thread *thread)
{
	struct csink_rec_header *header = csink_process.rec.header;
	int first = csink_process.wanted_engine, last = first, err = -ENOSYS;
	char *why = header->engine_reason;
	size_t used = 0, size = sizeof(header->engine_reason);
	char words[120];

	if (first == CSINK_NR_ENGINES) {
		first = CSINK_ENGINE_SIGTRAP;
		last = CSINK_ENGINE_TIMER;
		if (is_traced()) {
			first = CSINK_ENGINE_SIGNAL;
			used = (size_t)snprintf(why, size, "sigtrap: a debugger owns SIGTRAP");
		}
	} else {
		used = (size_t)snprintf(why, size, "as asked");
	}
	for (int engine = first; engine <= last; engine++) {
		err = try_engine(thread, (enum csink_engine)engine);
		if (!err) {
			csink_process.engine = (enum csink_engine)engine;
			open_switches(thread);
			break;
		}
		if (used < size)
			used += (size_t)snprintf(why + used, size - used, "%s%s: %s", used ? "; " : "", names[engine],
						 csink_explain_brief(-err, words, sizeof(words)));
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
		err = open_group(thread, csink_process.engine, &failed);
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

void csink_engine_pause(struct csink_thread *thread)
{
	if (thread->engine == CSINK_ENGINE_TIMER) {
		csink_cputimer_pause(thread->timer);
	} else if (thread->group.elsewhere || thread->switches.elsewhere) {
		csink_group_close(&thread->switches);
		csink_group_close(&thread->group);
	} else if (thread->engine != CSINK_ENGINE_NONE) {
		csink_group_pause();
	}
}

/* Opened by another task, the groups were closed to pause; they go on from what has been attributed. */
static void reopen(struct csink_thread *thread)
{
	uint32_t failed;

	memcpy(thread->group.base, thread->last, sizeof(thread->group.base));
	thread->last_enabled_ns = thread->last_running_ns = 0;
	if (open_group(thread, thread->engine, &failed)) {
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
	else if (thread->group.elsewhere || thread->switches.elsewhere)
		reopen(thread);
	else if (thread->engine != CSINK_ENGINE_NONE)
		csink_group_resume();
}

void csink_engine_close(struct csink_thread *thread)
{
	if (thread->engine == CSINK_ENGINE_TIMER)
		csink_cputimer_close(thread->timer);
	else if (thread->engine != CSINK_ENGINE_NONE)
		csink_group_close(&thread->group);
	csink_group_close(&thread->switches);
	thread->engine = CSINK_ENGINE_NONE;
}
