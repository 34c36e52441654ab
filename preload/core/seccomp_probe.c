/* For which of the agent's calls an earlier filter kills: see seccomp_probe.h. Source: seccomp(2), clone(2). In the
 * constructor, or at the launcher's start; not async-signal-safe. */
#include "preload/core/seccomp_probe.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <signal.h>
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

/* An address that is never mapped, and a file descriptor that is never open. */
enum { NOWHERE = 4096, NO_FILE = 0x7ffffff0, HERE = -100 /* AT_FDCWD */ };

#define LIFE CSINK_CALLS_LIFE
#define RIGHTS CSINK_CALLS_RIGHTS

const struct csink_own_call csink_own_calls[] = {
	{"rt_sigreturn", SYS_rt_sigreturn, CSINK_CALLS_RETURN, {0}},
	{"rt_sigprocmask", SYS_rt_sigprocmask, CSINK_CALLS_PROBE | LIFE, {-1, NOWHERE, 0, 8}},
	{"rt_sigaction", SYS_rt_sigaction, LIFE, {SIGUSR1, NOWHERE, NOWHERE, 8}},
	{"madvise", SYS_madvise, CSINK_CALLS_MEMORY, {NOWHERE, 4096, MADV_POPULATE_WRITE}},
	{"mremap", SYS_mremap, CSINK_CALLS_MEMORY, {NOWHERE, 4096, 8192, 0}},
	{"mmap",
	 SYS_mmap,
	 CSINK_CALLS_MEMORY | LIFE,
	 {0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1}},
	{"mmap", SYS_mmap, LIFE, {0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, NO_FILE}},
	{"munmap", SYS_munmap, CSINK_CALLS_MEMORY | CSINK_CALLS_PAUSE | LIFE, {NOWHERE, 4096}},
	{"rt_sigpending", SYS_rt_sigpending, CSINK_CALLS_PAUSE, {NOWHERE, 8}},
	{"rt_sigtimedwait", SYS_rt_sigtimedwait, CSINK_CALLS_PAUSE, {NOWHERE, 0, NOWHERE, 8}},
	{"munlock", SYS_munlock, CSINK_CALLS_LOCK, {NOWHERE, 4096}},
	{"mprotect", SYS_mprotect, CSINK_CALLS_LOCK, {NOWHERE, 4096, PROT_READ | PROT_WRITE}},
	{"clock_gettime", SYS_clock_gettime, CSINK_CALLS_CLOCK | LIFE, {CLOCK_PROCESS_CPUTIME_ID, NOWHERE}},
	{"clock_nanosleep", SYS_clock_nanosleep, LIFE, {CLOCK_MONOTONIC, 0, NOWHERE}},
	{"process_vm_readv", SYS_process_vm_readv, CSINK_CALLS_SCAN, {1, NOWHERE, 1, NOWHERE, 1}},
	{"readlink", SYS_readlinkat, CSINK_CALLS_SCAN | LIFE, {HERE, NOWHERE, NOWHERE, 4096}},
	{"prctl", SYS_prctl, LIFE, {PR_GET_NAME, NOWHERE}},
	{"prctl", SYS_prctl, CSINK_CALLS_TASK, {PR_TASK_PERF_EVENTS_DISABLE}},
	{"timer_settime", SYS_timer_settime, CSINK_CALLS_PAUSE | LIFE, {1, 0, NOWHERE}},
	{"perf_event_open", SYS_perf_event_open, LIFE, {NOWHERE, 1, -1, -1, 8}},
	{"timer_create", SYS_timer_create, LIFE, {CLOCK_THREAD_CPUTIME_ID, NOWHERE, NOWHERE}},
	{"timer_delete", SYS_timer_delete, LIFE, {1}},
	{"ioctl", SYS_ioctl, LIFE, {NO_FILE, PERF_EVENT_IOC_ENABLE, 1}},
	{"fcntl", SYS_fcntl, LIFE, {NO_FILE, 10, 62}}, /* F_SETSIG */
	{"close", SYS_close, LIFE, {NO_FILE}},
	{"getpid", SYS_getpid, CSINK_CALLS_SELF | CSINK_CALLS_SCAN | LIFE, {0}},
	{"gettid", SYS_gettid, LIFE, {0}},
	{"openat", SYS_openat, LIFE, {HERE, NOWHERE, 02000002 /* O_RDWR | O_CLOEXEC */, 0600}},
	{"faccessat", SYS_faccessat, LIFE, {HERE, NOWHERE, 0}},
	{"ftruncate", SYS_ftruncate, LIFE, {NO_FILE, 4096}},
	{"newfstatat", SYS_newfstatat, LIFE, {HERE, NOWHERE, NOWHERE, 0}},
	{"read", SYS_read, RIGHTS, {NO_FILE, NOWHERE, 1}},
	{"write", SYS_write, 0, {NO_FILE, NOWHERE, 1}},
	{"pread64", SYS_pread64, CSINK_CALLS_SCAN, {NO_FILE, NOWHERE, 1, 0}},
	{"lseek", SYS_lseek, 0, {NO_FILE, 0, 0}},
	{"getdents64", SYS_getdents64, RIGHTS, {NO_FILE, NOWHERE, 1}},
	{"fchmod", SYS_fchmod, RIGHTS, {NO_FILE, 0600}},
	{"fchown", SYS_fchown, RIGHTS, {NO_FILE, -1, -1}},
	{"renameat", SYS_renameat, RIGHTS, {HERE, NOWHERE, HERE, NOWHERE}},
	{"umask", SYS_umask, 0, {077}},
	{"getppid", SYS_getppid, 0, {0}},
	{"getresuid", SYS_getresuid, RIGHTS, {NOWHERE, NOWHERE, NOWHERE}},
	{"getuid", SYS_getuid, RIGHTS | LIFE, {0}},
	{"geteuid", SYS_geteuid, RIGHTS | LIFE, {0}},
	{"getgid", SYS_getgid, LIFE, {0}},
	{"getegid", SYS_getegid, LIFE, {0}},
	{"socket", SYS_socket, CSINK_CALLS_ARM, {1 /* AF_UNIX */, 02004005 /* SOCK_SEQPACKET and its flags */}},
	{"connect", SYS_connect, CSINK_CALLS_ARM, {NO_FILE, NOWHERE, 110}},
	{"sendmsg", SYS_sendmsg, CSINK_CALLS_ARM, {NO_FILE, NOWHERE, 0x4000 /* MSG_NOSIGNAL */}},
	{"ppoll", SYS_ppoll, CSINK_CALLS_ARM, {NOWHERE, 1, NOWHERE, NOWHERE, 8}},
	{"sched_getaffinity", SYS_sched_getaffinity, CSINK_CALLS_ARM, {0, 128, NOWHERE}},
	{"pwrite64", SYS_pwrite64, CSINK_CALLS_ARM, {NO_FILE, NOWHERE, 4, 0}},
	{"bind", SYS_bind, CSINK_CALLS_LAUNCHER, {NO_FILE, NOWHERE, 110}},
	{"listen", SYS_listen, CSINK_CALLS_LAUNCHER, {NO_FILE, 1}},
	{"accept4", SYS_accept4, CSINK_CALLS_LAUNCHER, {NO_FILE, 0, 0, 02004000 /* SOCK_CLOEXEC | SOCK_NONBLOCK */}},
	{"recvmsg", SYS_recvmsg, CSINK_CALLS_LAUNCHER, {NO_FILE, NOWHERE, 64 /* MSG_DONTWAIT */}},
	{"getsockopt",
	 SYS_getsockopt,
	 CSINK_CALLS_LAUNCHER,
	 {NO_FILE, 1 /* SOL_SOCKET */, 17 /* SO_PEERCRED */, NOWHERE, NOWHERE}},
	{"sendto", SYS_sendto, CSINK_CALLS_LAUNCHER, {NO_FILE, NOWHERE, 1, 0x4040 /* MSG_DONTWAIT | MSG_NOSIGNAL */}},
	{"uname", SYS_uname, 0, {NOWHERE}},
	{"sysinfo", SYS_sysinfo, 0, {NOWHERE}},
	{"getrandom", SYS_getrandom, 0, {NOWHERE, 1, 0}},
	{"prlimit64", SYS_prlimit64, LIFE, {0, RLIMIT_STACK, 0, NOWHERE}},
	{"futex", SYS_futex, 0, {NOWHERE, 129 /* FUTEX_WAKE_PRIVATE */, 1}},
	{"rt_tgsigqueueinfo", SYS_rt_tgsigqueueinfo, CSINK_CALLS_QUEUE | LIFE, {INT32_MAX, INT32_MAX, 0, NOWHERE}},
	{"fstatfs", SYS_fstatfs, 0, {NO_FILE, NOWHERE}},
	{"fgetxattr", SYS_fgetxattr, 0, {NO_FILE, NOWHERE, NOWHERE, 0}},
	{"unlinkat", SYS_unlinkat, 0, {HERE, NOWHERE, 0}},
#if defined(__x86_64__)
	{"access", SYS_access, LIFE, {NOWHERE, 0}},
	{"mkdir", SYS_mkdir, RIGHTS, {NOWHERE, 0700}},
	{"readlink", SYS_readlink, 0, {NOWHERE, NOWHERE, 4096}},
	{"unlink", SYS_unlink, 0, {NOWHERE}},
	{"rmdir", SYS_rmdir, RIGHTS, {NOWHERE}},
#else
	{"mkdirat", SYS_mkdirat, RIGHTS, {HERE, NOWHERE, 0700}},
#endif
};
const uint32_t csink_nr_own_calls = CSINK_ARRAY_SIZE(csink_own_calls);

uint32_t csink_deadly_calls;
int32_t csink_filters_children[8];
int csink_nr_filters;
const char *csink_deadly_name = "";

static uint32_t deadly_bit(const struct csink_own_call *call)
{
	static const struct {
		int number;
		uint32_t bit;
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
			csink_rawcall6(call->number, call->args[0], call->args[1], call->args[2], call->args[3],
				       call->args[4], 0);
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
			*first = csink_own_calls[*at].name;
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
