/*
 * seccomp(2) and prctl(2): see confine.h. Any thread of the program, in its own call; not in signal handlers of ours.
 */
#include "preload/agent/interpose/confine.h"

#include <errno.h>
#include <linux/audit.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/rawcall.h"
#include "preload/agent/lifecycle/bus_guard.h"
#include "preload/agent/lifecycle/config.h"
#include "preload/agent/lifecycle/filtered.h"
#include "preload/agent/lifecycle/hidden_signals.h"
#include "preload/agent/lifecycle/real.h"
#include "preload/agent/lifecycle/seccomp_filter.h"
#include "preload/agent/sampler/process.h"
#include "preload/agent/sampler/thread.h"
#include "preload/agent/unwind/modules.h"
#include "preload/core/calls_off.h"
#include "preload/core/safe_load.h"
#include "preload/core/seccomp_probe.h"

#if defined(__x86_64__)
#define OWN_ARCH AUDIT_ARCH_X86_64
#else
#define OWN_ARCH AUDIT_ARCH_AARCH64
#endif

/* Not in the headers of Linux 5.10. */
#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif

enum {
	SPARE_BYTES = 4 << 20, /* reserve of a recording that cannot grow any more */
	ALL_CALLS = CSINK_CALLS_PROBE | CSINK_CALLS_MEMORY | CSINK_CALLS_CLOCK | CSINK_CALLS_SCAN | CSINK_CALLS_PAUSE |
		    CSINK_CALLS_LIFE | CSINK_CALLS_LOCK | CSINK_CALLS_RIGHTS | CSINK_CALLS_SELF | CSINK_CALLS_QUEUE |
		    CSINK_CALLS_ARM | CSINK_CALLS_TIME, /* strict mode forbids the counter, too */
};

/* Needed only for calls that few programs make: without them the rest is profiled as before. */
#define RARE_CALLS ((uint32_t)(CSINK_CALLS_LOCK | CSINK_CALLS_RIGHTS | CSINK_CALLS_ARM))

/* Does the verdict do more than fail the call with an errno, which the agent could handle? */
static bool is_deadly(uint32_t verdict)
{
	uint32_t action = verdict & SECCOMP_RET_ACTION_FULL;

	return action != SECCOMP_RET_ALLOW && action != SECCOMP_RET_LOG && action != SECCOMP_RET_ERRNO;
}

struct findings {
	const char *deadly;  /* the first call for which the filter kills */
	const char *refused; /* the first call that fails with an errno */
	bool any_deadly;     /* also true for a call of a program's start alone */
};

/* The calls that cannot be made under the filter, as bits of enum csink_calls. */
static uint32_t judge(const struct sock_fprog *prog, struct findings *found)
{
	uint32_t calls = 0;

	if (!csink_readable((uintptr_t)prog, sizeof(*prog)) || !prog->filter || !prog->len ||
	    !csink_readable((uintptr_t)prog->filter, prog->len * sizeof(*prog->filter)))
		return 0; /* the kernel's EFAULT or EINVAL */
	for (uint32_t i = 0; i < csink_nr_own_calls; i++) {
		const struct csink_own_call *call = &csink_own_calls[i];
		struct seccomp_data data = {.nr = call->number, .arch = OWN_ARCH};
		uint32_t verdict;

		if (call->calls == CSINK_CALLS_LAUNCHER)
			continue;
		for (size_t k = 0; k < CSINK_ARRAY_SIZE(call->args); k++)
			data.args[k] = (uint64_t)csink_own_call_arg(call, k);
		verdict = csink_seccomp_run(prog, &data);
		if ((verdict & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO && call->calls & ~RARE_CALLS &&
		    !found->refused)
			found->refused = csink_own_call_name(call);
		if (!is_deadly(verdict))
			continue;
		found->any_deadly = true;
		if (!call->calls)
			continue;
		found->deadly = calls ? found->deadly : csink_own_call_name(call);
		calls |= call->calls;
	}
	return calls;
}

/* Before the filter is installed all calls are still allowed: refresh modules, grow the recording, flush. */
static void make_ready(struct csink_thread *thread, uint32_t calls)
{
	csink_thread_pause(thread);
	csink_modules_refresh(&csink_own_recording, &thread->writer, csink_now_ns());
	if (calls & CSINK_CALLS_MEMORY)
		csink_recording_freeze(&csink_own_recording, SPARE_BYTES);
	if (calls & (CSINK_CALLS_LIFE | CSINK_CALLS_MEMORY | CSINK_CALLS_RETURN))
		csink_bus_guard_end();
	if (calls & CSINK_CALLS_LIFE)
		csink_env_leave();
	if (calls & CSINK_CALLS_RETURN)
		csink_thread_flush(thread);
	else
		csink_thread_resume(thread);
}

static void take_back(struct csink_thread *thread, uint32_t calls, bool is_last)
{
	/* A filter that another thread has installed meanwhile may kill for them as well. */
	if (is_last)
		__atomic_fetch_and(&csink_calls_off, ~calls, __ATOMIC_SEQ_CST);
	csink_bus_guard_enter();
	if (calls & CSINK_CALLS_RETURN)
		csink_thread_resume(thread);
}

/* No system call: the recording has room, and the writer is not the handler's. */
static void say(const char *what, const char *name, uint32_t calls)
{
	struct csink_writer writer = {0, 0};
	const char *rest = "modules that are loaded after that have no names";

	if (!(calls & ~RARE_CALLS))
		rest = calls & CSINK_CALLS_RIGHTS
			       ? "programs that it starts as another user after that are not in the profile"
		       : calls & CSINK_CALLS_ARM
			       ? "programs that cannot be injected are not sampled where it starts them after that"
			       : "mlockall(2) also locks the memory of this library after that";
	if (calls & CSINK_CALLS_LIFE)
		rest = "threads, children and exits of threads after that are not in the profile";
	if (calls & CSINK_CALLS_RETURN)
		rest = "the thread is not sampled after that";
	csink_recording_note(&csink_own_recording, &writer, 1, "%s%s%s: %s", what, name ? " that kills for " : "",
			     name ? name : "", rest);
}

static void note_refused(const char *name)
{
	struct csink_writer writer = {0, 0};

	csink_recording_note(&csink_own_recording, &writer, 0,
			     "the program installed a seccomp filter that refuses %s: threads and children after that "
			     "may be missing",
			     name);
}

static long confine(const struct sock_fprog *prog, bool strict, long number, long a, long b, long c, long d, long e)
{
	static _Atomic uint32_t nr_confined; /* calls that have come this far, of all threads */
	struct csink_thread *thread = csink_self;
	uint32_t calls = strict ? ALL_CALLS : 0, turn;
	struct findings found = {0};
	long result;
	int saved;

	if (!thread || !atomic_load(&csink_process.active) || csink_in_vfork_child())
		return csink_raw_to_libc(csink_rawcall(number, a, b, c, d, e));
	if (!strict)
		calls = judge(prog, &found);
	turn = atomic_fetch_add(&nr_confined, 1) + 1;
	calls &= ~csink_calls_off;
	if (calls)
		make_ready(thread, calls);
	else if (found.refused) /* what is refused later may be more room */
		csink_recording_prepare(&csink_own_recording, SPARE_BYTES);
	__atomic_fetch_or(&csink_calls_off, calls, __ATOMIC_SEQ_CST);
	result = csink_rawcall(number, a, b, c, d, e);
	saved = errno;
	if (calls && result < 0)
		take_back(thread, calls, turn == atomic_load(&nr_confined));
	else if (!calls && found.refused && result >= 0)
		note_refused(found.refused);
	else if (calls)
		say(strict ? "the program entered seccomp's strict mode" : "the program installed a seccomp filter",
		    found.deadly, calls);
	if (!strict && result >= 0 && !found.any_deadly)
		csink_filtered_one_more();
	errno = saved;
	return csink_raw_to_libc(result);
}

/*
 * The calling thread is about to be traced by a process that knows nothing of our signals (PTRACE_TRACEME), or to have
 * its system calls, also the end of our handler, sent to it as signals: it is not to be sampled any more. Returns it
 * for stopped(), NULL if it is not sampled.
 */
static struct csink_thread *stop_sampling(void)
{
	struct csink_thread *thread = csink_self;

	if (!thread || thread->engine == CSINK_ENGINE_NONE || csink_in_vfork_child() ||
	    csink_calls_are_off(CSINK_CALLS_PAUSE))
		return NULL;
	csink_thread_pause(thread);
	csink_thread_flush(thread);
	return thread;
}

/* After the call, without a system call if it succeeded. What the thread does from here on is no row's. */
static void stopped(struct csink_thread *thread, bool has_succeeded)
{
	CSINK_KEEP_ERRNO;

	if (thread && !has_succeeded) {
		csink_thread_resume(thread);
	} else if (thread) {
		thread->engine = CSINK_ENGINE_NONE;
		thread->last_row = thread->off_row = (struct csink_row){0};
		thread->entry->flags |= CSINK_THREAD_STOPPED;
		csink_recording_lose(&csink_own_recording, CSINK_LOSS_THREADS, 1);
	}
}

/* PR_SET_TSC holds for the calling thread and the threads that it creates; the agent treats it as of all threads. */
static long set_tsc(long number, long option, long how)
{
	long result;

	if (how == PR_TSC_SIGSEGV)
		__atomic_fetch_or(&csink_calls_off, CSINK_CALLS_TIME, __ATOMIC_SEQ_CST);
	result = csink_rawcall(number, option, how);
	if (how == PR_TSC_ENABLE && result == 0)
		__atomic_fetch_and(&csink_calls_off, ~(uint32_t)CSINK_CALLS_TIME, __ATOMIC_SEQ_CST);
	return csink_raw_to_libc(result);
}

long csink_confine_call(long number, long a, long b, long c, long d, long e)
{
	/* seccomp(2)'s operations are one less than prctl(2)'s modes. */
	long mode = number == SYS_seccomp ? a + 1 : a == PR_SET_SECCOMP ? b : SECCOMP_MODE_DISABLED, result;
	struct csink_thread *thread = NULL;

	if (mode == SECCOMP_MODE_STRICT || mode == SECCOMP_MODE_FILTER)
		return confine((const struct sock_fprog *)c, mode == SECCOMP_MODE_STRICT, number, a, b, c, d, e);
	if (number == SYS_prctl && a == PR_SET_TSC)
		return set_tsc(number, a, b);
	if (number == SYS_prctl && a == PR_SET_SYSCALL_USER_DISPATCH && b)
		thread = stop_sampling();
	result = csink_rawcall(number, a, b, c, d, e);
	stopped(thread, result >= 0);
	return csink_raw_to_libc(result);
}

CSINK_EXPORT int prctl(int option, ...)
{
	long args[4];
	va_list ap;

	va_start(ap, option);
	for (int i = 0; i < 4; i++)
		args[i] = va_arg(ap, long);
	va_end(ap);
	if (REAL(prctl) && option != PR_SET_SECCOMP && option != PR_SET_TSC && option != PR_SET_SYSCALL_USER_DISPATCH)
		return REAL(prctl)(option, args[0], args[1], args[2], args[3]);
	return (int)csink_confine_call(SYS_prctl, option, args[0], args[1], args[2], args[3]);
}

CSINK_EXPORT long ptrace(enum __ptrace_request request, ...)
{
	struct csink_thread *thread;
	long args[3], result;
	va_list ap;

	va_start(ap, request);
	for (int i = 0; i < 3; i++)
		args[i] = va_arg(ap, long);
	va_end(ap);
	thread = request == PTRACE_TRACEME ? stop_sampling() : NULL;
	result = REAL(ptrace)(request, args[0], args[1], args[2]);
	stopped(thread, result >= 0);
	return result;
}
