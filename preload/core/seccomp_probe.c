/* For which of the agent's calls an earlier filter kills: see seccomp_probe.h. Source: seccomp(2), clone(2). In the
 * constructor, or at the launcher's start; not async-signal-safe. */
#include "preload/core/seccomp_probe.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/rawcall.h"
#include "preload/core/calls_off.h"
#include "preload/core/status.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* An address that is never mapped, and the working directory. */
enum { NOWHERE = 4096, HERE = -100 /* AT_FDCWD */ };

/* Arguments that take more than 16 bits stand for the entries of large[]: a file descriptor that is never open, a
 * process that does not exist, and flags. */
enum { NO_FILE = INT16_MIN, NO_PROCESS, OPEN_FLAGS, SOCKET_TYPE, ACCEPT_FLAGS };
static const int32_t large[] = {
	0x7ffffff0,
	INT32_MAX,
	02000002 /* O_RDWR | O_CLOEXEC */,
	02004005 /* SOCK_SEQPACKET and its flags */,
	02004000 /* SOCK_CLOEXEC | SOCK_NONBLOCK */,
};

#define LIFE CSINK_CALLS_LIFE
#define RIGHTS CSINK_CALLS_RIGHTS

/* clang-format off */
#if defined(__x86_64__)
#define OLD_CALLS(X) \
	X("access", access, LIFE, NOWHERE, 0) \
	X("mkdir", mkdir, RIGHTS, NOWHERE, 0700) \
	X("readlink", readlink, 0, NOWHERE, NOWHERE, 4096) \
	X("unlink", unlink, 0, NOWHERE) \
	X("rmdir", rmdir, RIGHTS, NOWHERE)
#else
#define OLD_CALLS(X) \
	X("mkdirat", mkdirat, RIGHTS, HERE, NOWHERE, 0700)
#endif

/* X(name, number, what cannot be done without it, the arguments...) */
#define OWN_CALLS(X) \
	X("rt_sigreturn", rt_sigreturn, CSINK_CALLS_RETURN, 0) \
	X("rt_sigprocmask", rt_sigprocmask, CSINK_CALLS_PROBE | LIFE, -1, NOWHERE, 0, 8) \
	X("sigaltstack", sigaltstack, LIFE, NOWHERE, NOWHERE) \
	X("rt_sigaction", rt_sigaction, LIFE, SIGUSR1, NOWHERE, NOWHERE, 8) \
	X("madvise", madvise, CSINK_CALLS_MEMORY, NOWHERE, 4096, MADV_POPULATE_WRITE) \
	X("mremap", mremap, CSINK_CALLS_MEMORY, NOWHERE, 4096, 8192, 0) \
	X("mmap", mmap, CSINK_CALLS_MEMORY | LIFE, 0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1) \
	X("mmap", mmap, LIFE, 0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, NO_FILE) \
	X("munmap", munmap, CSINK_CALLS_MEMORY | CSINK_CALLS_PAUSE | LIFE, NOWHERE, 4096) \
	X("rt_sigpending", rt_sigpending, CSINK_CALLS_PAUSE, NOWHERE, 8) \
	X("rt_sigtimedwait", rt_sigtimedwait, CSINK_CALLS_PAUSE, NOWHERE, 0, NOWHERE, 8) \
	X("munlock", munlock, CSINK_CALLS_LOCK, NOWHERE, 4096) \
	X("mprotect", mprotect, CSINK_CALLS_LOCK, NOWHERE, 4096, PROT_READ | PROT_WRITE) \
	X("clock_gettime", clock_gettime, CSINK_CALLS_CLOCK | LIFE, CLOCK_PROCESS_CPUTIME_ID, NOWHERE) \
	X("clock_nanosleep", clock_nanosleep, LIFE, CLOCK_MONOTONIC, 0, NOWHERE) \
	X("process_vm_readv", process_vm_readv, CSINK_CALLS_SCAN, 1, NOWHERE, 1, NOWHERE, 1) \
	X("readlink", readlinkat, CSINK_CALLS_SCAN | LIFE, HERE, NOWHERE, NOWHERE, 4096) \
	X("prctl", prctl, LIFE, PR_GET_NAME, NOWHERE) \
	X("prctl", prctl, CSINK_CALLS_TASK, PR_TASK_PERF_EVENTS_DISABLE) \
	X("timer_settime", timer_settime, CSINK_CALLS_PAUSE | LIFE, 1, 0, NOWHERE) \
	X("perf_event_open", perf_event_open, LIFE, NOWHERE, 1, -1, -1, 8) \
	X("timer_create", timer_create, LIFE, CLOCK_THREAD_CPUTIME_ID, NOWHERE, NOWHERE) \
	X("timer_delete", timer_delete, LIFE, 1) \
	X("ioctl", ioctl, LIFE, NO_FILE, PERF_EVENT_IOC_ENABLE, 1) \
	X("fcntl", fcntl, LIFE, NO_FILE, 10, 62 /* F_SETSIG */) \
	X("close", close, LIFE, NO_FILE) \
	X("getpid", getpid, CSINK_CALLS_SELF | CSINK_CALLS_SCAN | LIFE, 0) \
	X("gettid", gettid, LIFE, 0) \
	X("openat", openat, LIFE, HERE, NOWHERE, OPEN_FLAGS, 0600) \
	X("faccessat", faccessat, LIFE, HERE, NOWHERE, 0) \
	X("ftruncate", ftruncate, LIFE, NO_FILE, 4096) \
	X("newfstatat", newfstatat, LIFE, HERE, NOWHERE, NOWHERE, 0) \
	X("read", read, RIGHTS, NO_FILE, NOWHERE, 1) \
	X("write", write, 0, NO_FILE, NOWHERE, 1) \
	X("pread64", pread64, CSINK_CALLS_SCAN, NO_FILE, NOWHERE, 1, 0) \
	X("lseek", lseek, 0, NO_FILE, 0, 0) \
	X("getdents64", getdents64, RIGHTS, NO_FILE, NOWHERE, 1) \
	X("fchmod", fchmod, RIGHTS, NO_FILE, 0600) \
	X("fchown", fchown, RIGHTS, NO_FILE, -1, -1) \
	X("renameat", renameat, RIGHTS, HERE, NOWHERE, HERE, NOWHERE) \
	X("umask", umask, 0, 077) \
	X("getppid", getppid, 0, 0) \
	X("getresuid", getresuid, RIGHTS, NOWHERE, NOWHERE, NOWHERE) \
	X("getuid", getuid, RIGHTS | LIFE, 0) \
	X("geteuid", geteuid, RIGHTS | LIFE, 0) \
	X("getgid", getgid, LIFE, 0) \
	X("getegid", getegid, LIFE, 0) \
	X("socket", socket, CSINK_CALLS_ARM, 1 /* AF_UNIX */, SOCKET_TYPE) \
	X("connect", connect, CSINK_CALLS_ARM, NO_FILE, NOWHERE, 110) \
	X("sendmsg", sendmsg, CSINK_CALLS_ARM, NO_FILE, NOWHERE, 0x4000 /* MSG_NOSIGNAL */) \
	X("ppoll", ppoll, CSINK_CALLS_ARM, NOWHERE, 1, NOWHERE, NOWHERE, 8) \
	X("sched_getaffinity", sched_getaffinity, CSINK_CALLS_ARM, 0, 128, NOWHERE) \
	X("pwrite64", pwrite64, CSINK_CALLS_ARM, NO_FILE, NOWHERE, 4, 0) \
	X("bind", bind, CSINK_CALLS_LAUNCHER, NO_FILE, NOWHERE, 110) \
	X("listen", listen, CSINK_CALLS_LAUNCHER, NO_FILE, 1) \
	X("accept4", accept4, CSINK_CALLS_LAUNCHER, NO_FILE, 0, 0, ACCEPT_FLAGS) \
	X("recvmsg", recvmsg, CSINK_CALLS_LAUNCHER, NO_FILE, NOWHERE, 64 /* MSG_DONTWAIT */) \
	X("getsockopt", getsockopt, CSINK_CALLS_LAUNCHER, NO_FILE, 1 /* SOL_SOCKET */, 17 /* SO_PEERCRED */, NOWHERE, NOWHERE) \
	X("sendto", sendto, CSINK_CALLS_LAUNCHER, NO_FILE, NOWHERE, 1, 0x4040 /* MSG_DONTWAIT | MSG_NOSIGNAL */) \
	X("uname", uname, 0, NOWHERE) \
	X("sysinfo", sysinfo, 0, NOWHERE) \
	X("getrandom", getrandom, 0, NOWHERE, 1, 0) \
	X("prlimit64", prlimit64, LIFE, 0, RLIMIT_STACK, 0, NOWHERE) \
	X("futex", futex, 0, NOWHERE, 129 /* FUTEX_WAKE_PRIVATE */, 1) \
	X("rt_tgsigqueueinfo", rt_tgsigqueueinfo, CSINK_CALLS_QUEUE | LIFE, NO_PROCESS, NO_PROCESS, 0, NOWHERE) \
	X("fstatfs", fstatfs, 0, NO_FILE, NOWHERE) \
	X("fgetxattr", fgetxattr, 0, NO_FILE, NOWHERE, NOWHERE, 0) \
	X("unlinkat", unlinkat, 0, HERE, NOWHERE, 0) \
	OLD_CALLS(X)
/* clang-format on */

const struct csink_own_call csink_own_calls[] = {
#define ROW(name, number, calls, ...) {SYS_##number, calls, {__VA_ARGS__}},
	OWN_CALLS(ROW)
#undef ROW
};
const uint32_t csink_nr_own_calls = CSINK_ARRAY_SIZE(csink_own_calls);

/* One after the other, as the loader would have to relocate pointers in every program. */
static const char names[] =
#define NAME(name, number, calls, ...) name "\0"
	OWN_CALLS(NAME);
#undef NAME

const char *csink_own_call_name(const struct csink_own_call *call)
{
	const char *name = names;

	for (; call > csink_own_calls; call--)
		name += strlen(name) + 1;
	return name;
}

int32_t csink_own_call_arg(const struct csink_own_call *call, size_t at)
{
	int16_t arg = call->args[at];

	return arg < INT16_MIN + (int)CSINK_ARRAY_SIZE(large) ? large[arg - INT16_MIN] : arg;
}

uint32_t csink_deadly_calls;
int32_t csink_filters_children[8];
int csink_nr_filters;
const char *csink_deadly_name = "";

static uint32_t deadly_bit(const struct csink_own_call *call)
{
	static const struct {
		uint16_t number;
		uint8_t bit; /* enum csink_deadly */
	} bits[] = {
		{SYS_perf_event_open, CSINK_DEADLY_PERF},
		{SYS_ioctl, CSINK_DEADLY_PERF},
		{SYS_timer_create, CSINK_DEADLY_TIMER},
		{SYS_timer_settime, CSINK_DEADLY_TIMER},
		{SYS_timer_delete, CSINK_DEADLY_TIMER},
		{SYS_process_vm_readv, CSINK_DEADLY_SCAN},
		{SYS_munlock, CSINK_DEADLY_LOCK},
		{SYS_mprotect, CSINK_DEADLY_LOCK},
		{SYS_fchown, CSINK_DEADLY_RIGHTS},
		{SYS_renameat, CSINK_DEADLY_RIGHTS},
		{SYS_getresuid, CSINK_DEADLY_RIGHTS},
		{SYS_socket, CSINK_DEADLY_ARM},
		{SYS_connect, CSINK_DEADLY_ARM},
		{SYS_sendmsg, CSINK_DEADLY_ARM},
		{SYS_ppoll, CSINK_DEADLY_ARM},
		{SYS_sched_getaffinity, CSINK_DEADLY_ARM},
		{SYS_pwrite64, CSINK_DEADLY_ARM},
		{SYS_bind, CSINK_DEADLY_ARM},
		{SYS_listen, CSINK_DEADLY_ARM},
		{SYS_accept4, CSINK_DEADLY_ARM},
		{SYS_recvmsg, CSINK_DEADLY_ARM},
		{SYS_getsockopt, CSINK_DEADLY_ARM},
		{SYS_sendto, CSINK_DEADLY_ARM},
	};

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(bits); i++)
		if (bits[i].number == call->number)
			return bits[i].bit;
	return CSINK_DEADLY_OTHER;
}

static void on_sigsys(int signo)
{
	(void)signo;
}

/* The only way to make that call without harm. */
static void return_from_handler(void)
{
	struct sigaction act = {.sa_handler = on_sigsys};
	uint64_t none = 0;

	sigaction(SIGUSR1, &act, NULL);
	csink_rawcall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, sizeof(none));
	csink_rawcall(SYS_tgkill, csink_rawcall(SYS_getpid), csink_rawcall(SYS_gettid), SIGUSR1);
}

/* In the child: from *at on. If a call kills the child, *at is the index of that call. */
static void try_from(volatile uint32_t *at)
{
	/* No core of those that die; one byte is too little for a file, and a pipe's reader is spared by it alone. */
	struct rlimit least = {1, 1};

	csink_rawcall(SYS_prlimit64, 0, RLIMIT_CORE, &least, NULL);
	for (; *at < csink_nr_own_calls; ++*at) {
		const struct csink_own_call *call = &csink_own_calls[*at];

		if (call->number == SYS_rt_sigreturn)
			return_from_handler();
		else
			csink_rawcall6(call->number, csink_own_call_arg(call, 0), csink_own_call_arg(call, 1),
				       csink_own_call_arg(call, 2), csink_own_call_arg(call, 3),
				       csink_own_call_arg(call, 4), 0);
	}
}

/*
 * A child with memory of its own: older kernels end all processes that share the memory of one that dumps core. It has
 * no exit signal, so that neither SIGCHLD nor a wait(2) of the program's reports it.
 */
static int run_child(volatile uint32_t *at)
{
	static uint32_t nr_children;
	long pid = csink_rawcall(SYS_clone, 0, 0, 0, 0, 0);
	int status = 0;
	long err;

	if (pid == 0) {
		try_from(at);
		csink_raw_exit(0);
	}
	if (pid < 0)
		return (int)pid;
	csink_filters_children[nr_children++ % CSINK_ARRAY_SIZE(csink_filters_children)] = (int32_t)pid;
	do
		err = csink_rawcall(SYS_wait4, pid, &status, __WALL, NULL);
	while (err == -EINTR);
	return err < 0 ? (int)err : 0;
}

int csink_filters_try(const char **first)
{
	long map = csink_rawcall(SYS_mmap, NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	volatile uint32_t *at = (volatile uint32_t *)map;
	int deadly = 0, err = 0;

	if (csink_raw_failed(map))
		return (int)map;
	for (*at = 0; *at < csink_nr_own_calls && !err; ++*at) {
		err = run_child(at);
		if (err || *at >= csink_nr_own_calls)
			break;
		if (!deadly)
			*first = csink_own_call_name(&csink_own_calls[*at]);
		deadly |= (int)deadly_bit(&csink_own_calls[*at]);
	}
	csink_rawcall(SYS_munmap, map, 4096);
	return err ? err : deadly;
}

void csink_filters_begin(void)
{
	struct csink_status status;
	int deadly;

	if (csink_status_read(CSINK_STATUS_PROCESS, &status) || !status.nr_filters)
		return;
	csink_nr_filters = status.nr_filters;
	deadly = csink_filters_try(&csink_deadly_name);
	/* Where no child can be started, nothing can be profiled. */
	csink_deadly_calls = deadly < 0 ? CSINK_DEADLY_OTHER : (uint32_t)deadly;
}
