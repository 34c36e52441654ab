#include "preload/inject/confine.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/rawcall.h"
#include "preload/inject/config.h"
#include "preload/inject/real.h"
#include "preload/inject/seccomp_filter.h"
#include "preload/inject/signals.h"
#include "preload/sample/calls_off.h"
#include "preload/sample/modules.h"
#include "preload/sample/process.h"
#include "preload/sample/safe_load.h"
#include "preload/sample/thread.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#if defined(__x86_64__)
#define OWN_ARCH AUDIT_ARCH_X86_64
#else
#define OWN_ARCH AUDIT_ARCH_AARCH64
#endif

enum {
	SPARE_BYTES = 4 << 20, /* what a recording that cannot grow any more is given */
	ALL_CALLS = CSINK_CALLS_PROBE | CSINK_CALLS_MEMORY | CSINK_CALLS_CLOCK | CSINK_CALLS_SCAN | CSINK_CALLS_PAUSE |
		    CSINK_CALLS_LIFE | CSINK_CALLS_TIME, /* strict mode forbids the counter, too */
};

/* Our system calls, with arguments as we give them; each once, under what cannot be done without it. */
static const struct {
	const char *name;
	int number;
	uint32_t calls; /* enum csink_calls */
	uint64_t args[6];
} used[] = {
	{"rt_sigreturn", SYS_rt_sigreturn, CSINK_CALLS_RETURN, {0}},
	{"rt_sigprocmask", SYS_rt_sigprocmask, CSINK_CALLS_PROBE | CSINK_CALLS_LIFE, {UINT64_MAX, 4096, 0, 8}},
	{"madvise", SYS_madvise, CSINK_CALLS_MEMORY, {4096, 4096, MADV_POPULATE_WRITE}},
	{"mmap",
	 SYS_mmap,
	 CSINK_CALLS_MEMORY | CSINK_CALLS_LIFE,
	 {0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, UINT64_MAX}},
	{"munmap", SYS_munmap, CSINK_CALLS_MEMORY | CSINK_CALLS_LIFE, {4096, 4096}},
	{"clock_gettime", SYS_clock_gettime, CSINK_CALLS_CLOCK | CSINK_CALLS_LIFE, {CLOCK_PROCESS_CPUTIME_ID, 4096}},
	{"process_vm_readv", SYS_process_vm_readv, CSINK_CALLS_SCAN, {1, 4096, 1, 4096, 1}},
	{"readlink", SYS_readlinkat, CSINK_CALLS_SCAN, {(uint64_t)-100, 4096, 4096, 4096}},
	{"prctl", SYS_prctl, CSINK_CALLS_PAUSE | CSINK_CALLS_LIFE, {PR_TASK_PERF_EVENTS_DISABLE}},
	{"prctl", SYS_prctl, CSINK_CALLS_LIFE, {PR_GET_NAME, 4096}},
	{"timer_settime", SYS_timer_settime, CSINK_CALLS_PAUSE, {1, 0, 4096}},
	{"perf_event_open", SYS_perf_event_open, CSINK_CALLS_LIFE, {4096, 1, UINT64_MAX, UINT64_MAX, 8}},
	{"timer_create", SYS_timer_create, CSINK_CALLS_LIFE, {CLOCK_THREAD_CPUTIME_ID, 4096, 4096}},
	{"timer_delete", SYS_timer_delete, CSINK_CALLS_LIFE, {1}},
	{"ioctl", SYS_ioctl, CSINK_CALLS_LIFE, {3, PERF_EVENT_IOC_ENABLE, 1}},
	{"fcntl", SYS_fcntl, CSINK_CALLS_LIFE, {3, 10, 62}}, /* F_SETSIG */
	{"close", SYS_close, CSINK_CALLS_LIFE, {3}},
	{"getpid", SYS_getpid, CSINK_CALLS_LIFE, {0}},
	{"gettid", SYS_gettid, CSINK_CALLS_LIFE, {0}},
	{"openat", SYS_openat, CSINK_CALLS_LIFE, {(uint64_t)-100, 4096, 02000002 /* O_RDWR | O_CLOEXEC */, 0600}},
	{"faccessat", SYS_faccessat, CSINK_CALLS_LIFE, {(uint64_t)-100, 4096, 0}},
	{"ftruncate", SYS_ftruncate, CSINK_CALLS_LIFE, {3, 4096}},
};

/* What the kernel does then is no plain error that our code knows how to take. */
static bool punishes(uint32_t verdict)
{
	uint32_t action = verdict & SECCOMP_RET_ACTION_FULL;

	return action != SECCOMP_RET_ALLOW && action != SECCOMP_RET_LOG && action != SECCOMP_RET_ERRNO;
}

/* Bits of what cannot be done under the filter; *name is the first call that is to blame, *refused the first that
 * merely fails. */
static uint32_t judge(const struct sock_fprog *prog, const char **name, const char **refused)
{
	uint32_t calls = 0;

	if (!csink_readable((uintptr_t)prog, sizeof(*prog)) || !prog->filter || !prog->len ||
	    !csink_readable((uintptr_t)prog->filter, prog->len * sizeof(*prog->filter)))
		return 0; /* the kernel's EFAULT or EINVAL */
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(used); i++) {
		struct seccomp_data data = {.nr = used[i].number, .arch = OWN_ARCH};
		uint32_t verdict;

		for (int k = 0; k < 6; k++)
			data.args[k] = used[i].args[k];
		verdict = csink_seccomp_run(prog, &data);
		if ((verdict & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO && !*refused)
			*refused = used[i].name;
		if (!punishes(verdict))
			continue;
		*name = calls ? *name : used[i].name;
		calls |= used[i].calls;
	}
	return calls;
}

/* The last moment at which all may be called. */
static void make_ready(struct csink_thread *thread, uint32_t calls)
{
	struct csink_process *process = &csink_process;

	csink_thread_pause(thread);
	csink_modules_refresh(&process->rec, &thread->writer, csink_now_ns());
	if (calls & CSINK_CALLS_MEMORY) {
		/* Nor can libunwind be trusted to make no calls. */
		if (process->walk == csink_unwind_walker(CSINK_UNWIND_LIBUNWIND))
			process->walk = csink_walk_dwarf_init() ? NULL : csink_unwind_walker(CSINK_UNWIND_DWARF);
		csink_recording_freeze(&process->rec, SPARE_BYTES);
	}
	if (calls & CSINK_CALLS_LIFE)
		csink_env_leave();
	if (calls & CSINK_CALLS_RETURN)
		csink_thread_flush(thread);
	else
		csink_thread_resume(thread);
}

static void take_back(struct csink_thread *thread, uint32_t calls, uint32_t before)
{
	csink_calls_off = before;
	if (calls & CSINK_CALLS_RETURN)
		csink_thread_resume(thread);
}

/* No system call: the recording has room, and the writer is not the handler's. */
static void say(const char *what, const char *name, uint32_t calls)
{
	struct csink_writer writer = {0, 0};
	const char *rest = calls & CSINK_CALLS_LIFE
				   ? "threads, children and ends of threads after that are not in the profile"
				   : "what is loaded after that has no name";

	if (calls & CSINK_CALLS_RETURN)
		rest = "the thread is not sampled after that";
	csink_recording_note(&csink_process.rec, &writer, 1, "%s%s%s: %s", what, name ? " that punishes " : "",
			     name ? name : "", rest);
}

static void say_refused(const char *name)
{
	struct csink_writer writer = {0, 0};

	csink_recording_note(&csink_process.rec, &writer, 0,
			     "the program installed a seccomp filter that refuses %s: threads and children after that "
			     "may be missing",
			     name);
}

static long confine(const struct sock_fprog *prog, bool strict, long number, long a, long b, long c, long d, long e)
{
	struct csink_thread *thread = csink_self;
	uint32_t before = csink_calls_off, calls = strict ? ALL_CALLS : 0;
	const char *name = NULL, *refused = NULL;
	long result;
	int saved;

	if (!thread || !atomic_load(&csink_process.active) || csink_signals_borrowed())
		return csink_rawcall(number, a, b, c, d, e);
	if (!strict)
		calls = judge(prog, &name, &refused);
	calls &= ~before;
	if (calls)
		make_ready(thread, calls);
	csink_calls_off = before | calls;
	result = csink_rawcall(number, a, b, c, d, e);
	saved = errno;
	if (calls && result < 0)
		take_back(thread, calls, before);
	else if (!calls && refused && result >= 0)
		say_refused(refused);
	else if (calls)
		say(strict ? "the program entered seccomp's strict mode" : "the program installed a seccomp filter",
		    name, calls);
	errno = saved;
	return result;
}

long csink_confine_call(long number, long a, long b, long c, long d, long e)
{
	bool by_prctl = number == SYS_prctl && a == PR_SET_SECCOMP;

	if (by_prctl ? b == SECCOMP_MODE_STRICT : number == SYS_seccomp && a == SECCOMP_SET_MODE_STRICT)
		return confine(NULL, true, number, a, b, c, d, e);
	if (by_prctl ? b == SECCOMP_MODE_FILTER : number == SYS_seccomp && a == SECCOMP_SET_MODE_FILTER)
		return confine((const struct sock_fprog *)c, false, number, a, b, c, d, e);
	return csink_rawcall(number, a, b, c, d, e);
}

/* Of the calling thread and those that it makes; for us, of all. */
static int set_tsc(int how)
{
	int result;

	if (how == PR_TSC_SIGSEGV)
		csink_calls_off |= CSINK_CALLS_TIME;
	result = REAL(prctl)(PR_SET_TSC, how, 0, 0, 0);
	if (how == PR_TSC_ENABLE && result == 0)
		csink_calls_off &= ~(uint32_t)CSINK_CALLS_TIME;
	return result;
}

CSINK_EXPORT int prctl(int option, ...)
{
	unsigned long args[4];
	va_list ap;

	va_start(ap, option);
	for (int i = 0; i < 4; i++)
		args[i] = va_arg(ap, unsigned long);
	va_end(ap);
	if (option == PR_SET_TSC)
		return set_tsc((int)args[0]);
	if (CSINK_LIKELY(option != PR_SET_SECCOMP) || !REAL(prctl))
		return REAL(prctl)(option, args[0], args[1], args[2], args[3]);
	return (int)csink_confine_call(SYS_prctl, option, (long)args[0], (long)args[1], (long)args[2], (long)args[3]);
}
