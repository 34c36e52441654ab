/*
 * Explanations: each errno of perf_event_open is provoked for real, and the field to blame must be found. As root the
 * privileged cases run first, then the rest in children that have given something up: the uid, the filter-free system
 * calls, the initial user namespace, the file descriptors, the locked memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/hw_breakpoint.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "include/countersink/explain.h"
#include "include/internal/base.h"
#include "include/internal/event.h"
#include "preload/counters/explain_system.h"
#include "tests/unit/refuse.h"
#include "tests/unit/tap.h"

#define NOBODY 65534

/* The calls are plain task-clock events of our own, which open, with what the test changes in them. */
static struct perf_event_attr attr;
static struct csink_perf_call call;
static struct csink_explanation found[CSINK_EXPLAIN_MAX];
static unsigned nr_found;
static bool may_kernel; /* observing the kernel is allowed, so faults can be provoked with it or without */

static void plain(void)
{
	memset(&attr, 0, sizeof(attr));
	attr.type = PERF_TYPE_SOFTWARE;
	attr.size = sizeof(attr);
	attr.config = PERF_COUNT_SW_TASK_CLOCK;
	attr.disabled = 1;
	attr.exclude_kernel = !may_kernel;
	attr.sample_period = 1000000;
	call = (struct csink_perf_call){&attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC};
}

static int lowest_fd(void)
{
	int fd = dup(STDOUT_FILENO);

	close(fd);
	return fd;
}

/* Open the call as it is; it must fail with err, and field must be found to blame. Starts the next one afresh. */
static void blames(const char *what, int err, const char *field, enum csink_cause cause)
{
	struct perf_event_attr as_passed = attr;
	char line[640] = "it opened";
	int fds = lowest_fd(), fd, same;

	/* E2BIG overwrites attr.size: explain what was passed, not what came back. */
	fd = csink_perf_open(&as_passed, call.pid, call.cpu, call.group_fd, call.flags);
	nr_found = 0;
	if (fd >= 0) {
		close(fd);
	} else {
		errno = 4711;
		nr_found = (unsigned)csink_explain_open(&call, -fd, found, CSINK_EXPLAIN_MAX);
		csink_explain_print(&found[0], line, sizeof(line));
	}
	same = fd == -err && found[0].err == err && !strcmp(found[0].field, field) && found[0].cause == cause &&
	       errno == 4711 && lowest_fd() == fds;
	if (!ok(same, "%s: %s, %s", what, csink_errno_name(err), field[0] ? field : "no field"))
		printf("#   got %s, cause %d, field '%s', errno %d, fd %d for %d\n", csink_errno_name(-fd),
		       found[0].cause, found[0].field, errno, lowest_fd(), fds);
	printf("# %s\n", line);
	plain();
}

/* The same, and another fault behind the first. */
static void blames_two(const char *what, int err, const char *field, enum csink_cause cause, const char *second)
{
	blames(what, err, field, cause);
	if (!ok(nr_found >= 2 && !strcmp(found[1].field, second), "%s: and %s behind it", what, second))
		printf("#   %u found; the second '%s'\n", nr_found, nr_found > 1 ? found[1].field : "");
}

/* ---- every user -------------------------------------------------------------------------------------------------- */

static void test_size(void)
{
	static union {
		struct perf_event_attr attr;
		char bytes[8192];
	} big;

	attr.size = 56;
	blames("attr.size below the first version", E2BIG, "size", CSINK_CAUSE_BAD_VALUE);
	big.attr = attr;
	big.attr.size = 4104;
	call.attr = &big.attr;
	attr.size = 4104; /* blames() opens attr */
	blames("attr.size over a page", E2BIG, "size", CSINK_CAUSE_BAD_VALUE);
}

static void test_tail(void)
{
	static union {
		struct perf_event_attr attr;
		char bytes[512];
	} big;
	char line[640];
	int fd;

	big.attr = attr;
	big.attr.size = 400;
	big.bytes[390] = 1;
	call.attr = &big.attr;
	fd = csink_perf_open(&big.attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	is_num(fd, -E2BIG, "a tail that no kernel knows gives E2BIG");
	ok(big.attr.size != 400, "and the kernel's own size");
	is_num(csink_explain_open(&call, E2BIG, found, CSINK_EXPLAIN_MAX), 1, "which is explained after the fact");
	ok(found[0].cause == CSINK_CAUSE_NEW_FIELD && !strcmp(found[0].field, "size"), "%s",
	   csink_explain_print(&found[0], line, sizeof(line)));
	big.attr.size = 400;
	csink_explain_open(&call, E2BIG, found, CSINK_EXPLAIN_MAX);
	ok(found[0].err == E2BIG && found[0].cause == CSINK_CAUSE_NEW_FIELD && !strcmp(found[0].field, "size"), "%s",
	   csink_explain_print(&found[0], line, sizeof(line)));
	plain();
}

static void test_values(void)
{
	attr.sample_type = 1ULL << 40;
	blames("an unknown kind of sample", EINVAL, "sample_type: bit 40", CSINK_CAUSE_NEW_FIELD);
	attr.sample_type = PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT;
	blames("two kinds of weight", EINVAL, "sample_type: WEIGHT_STRUCT", CSINK_CAUSE_BAD_VALUE);
	attr.read_format = 1ULL << 30;
	blames("an unknown read format", EINVAL, "read_format: bit 30", CSINK_CAUSE_NEW_FIELD);
	attr.sample_type = PERF_SAMPLE_REGS_USER;
	blames("no registers to sample", EINVAL, "sample_regs_user", CSINK_CAUSE_BAD_VALUE);
	attr.sample_type = PERF_SAMPLE_REGS_INTR;
	blames("no registers of the interrupt", EINVAL, "sample_regs_intr", CSINK_CAUSE_BAD_VALUE);
#ifdef __x86_64__
	attr.sample_type = PERF_SAMPLE_REGS_INTR;
	attr.sample_regs_intr = 1ULL << 63;
	blames("vector registers", EOPNOTSUPP, "sample_regs_intr", CSINK_CAUSE_UNSUPPORTED);
#endif
	attr.sample_type = PERF_SAMPLE_STACK_USER;
	attr.sample_stack_user = 1001;
	blames("an odd piece of stack", EINVAL, "sample_stack_user", CSINK_CAUSE_BAD_VALUE);
	attr.sample_type = PERF_SAMPLE_STACK_USER;
	attr.sample_stack_user = 65536;
	blames("too large a piece of stack", EINVAL, "sample_stack_user", CSINK_CAUSE_BAD_VALUE);
	attr.__reserved_2 = 1;
	blames("a reserved field", EINVAL, "reserved", CSINK_CAUSE_BAD_VALUE);
	attr.sample_period = 1ULL << 63;
	blames("a period of 64 bits", EINVAL, "sample_period", CSINK_CAUSE_BAD_VALUE);
	attr.freq = 1;
	attr.sample_freq = 1ULL << 40;
	blames("a frequency over the limit", EINVAL, "sample_freq", CSINK_CAUSE_LIMIT);
	attr.sample_type = PERF_SAMPLE_CALLCHAIN;
	attr.sample_max_stack = 60000;
	blames("a call chain over the limit", EOVERFLOW, "sample_max_stack", CSINK_CAUSE_LIMIT);
	attr.use_clockid = 1;
	attr.clockid = CLOCK_PROCESS_CPUTIME_ID;
	blames("a clock that cannot stamp", EINVAL, "clockid", CSINK_CAUSE_BAD_VALUE);
}

static void test_flags(void)
{
	attr.inherit = 1;
	attr.sample_type = PERF_SAMPLE_READ;
	attr.read_format = PERF_FORMAT_GROUP;
	blames("inherit with group reads in samples", EINVAL, "inherit", CSINK_CAUSE_BAD_VALUE);
	attr.inherit_thread = 1;
	blames("inherit_thread alone", EINVAL, "inherit_thread", CSINK_CAUSE_BAD_VALUE);
	attr.enable_on_exec = attr.remove_on_exec = 1;
	blames("enable_on_exec and remove_on_exec", EINVAL, "remove_on_exec", CSINK_CAUSE_BAD_VALUE);
	attr.sigtrap = 1;
	blames("sigtrap without remove_on_exec", EINVAL, "sigtrap", CSINK_CAUSE_BAD_VALUE);
	*(uint64_t *)((char *)&attr + offsetof(struct perf_event_attr, read_format) + 8) |= 1ULL << 63;
	blames("a reserved flag", EINVAL, "flags of the attr: bit 63", CSINK_CAUSE_NEW_FIELD);
	attr.sample_type = PERF_SAMPLE_BRANCH_STACK;
	attr.branch_sample_type = PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_USER;
	blames("a branch stack on a software event", EOPNOTSUPP, "branch_sample_type", CSINK_CAUSE_UNSUPPORTED);
	attr.sample_type = PERF_SAMPLE_BRANCH_STACK;
	attr.branch_sample_type = PERF_SAMPLE_BRANCH_USER;
	blames("a branch stack of no branches", EINVAL, "branch_sample_type", CSINK_CAUSE_BAD_VALUE);
	attr.aux_output = 1;
	blames("AUX output of a software event", EOPNOTSUPP, "aux_output", CSINK_CAUSE_UNSUPPORTED);
	attr.sample_type = PERF_SAMPLE_AUX;
	attr.aux_sample_size = 4096;
	blames("AUX samples with no AUX leader", EINVAL, "aux_sample_size", CSINK_CAUSE_GROUP);
}

static void test_events(void)
{
	attr.config = 999;
	blames("an unknown software event", ENOENT, "config", CSINK_CAUSE_NO_EVENT);
	attr.type = 4000000;
	blames("an unknown PMU", ENOENT, "type", CSINK_CAUSE_NO_EVENT);
	attr.type = PERF_TYPE_HARDWARE;
	attr.config = 0;
	if (access("/sys/bus/event_source/devices/cpu", F_OK))
		blames("cycles without a PMU", ENOENT, "type", CSINK_CAUSE_NO_PMU);
	else
		skip("cycles without a PMU", "this machine has one");
	plain();
	attr.type = PERF_TYPE_HARDWARE;
	attr.config = 999;
	blames("a generic event that is none", access("/sys/bus/event_source/devices/cpu", F_OK) ? ENOENT : EINVAL,
	       access("/sys/bus/event_source/devices/cpu", F_OK) ? "type" : "config",
	       access("/sys/bus/event_source/devices/cpu", F_OK) ? CSINK_CAUSE_NO_PMU : CSINK_CAUSE_NO_EVENT);
}

static void breakpoint_at(uint64_t address, uint64_t length, uint32_t type)
{
	attr.type = PERF_TYPE_BREAKPOINT;
	attr.config = 0;
	attr.bp_addr = address;
	attr.bp_len = length;
	attr.bp_type = type;
	attr.sample_period = 1;
}

static void test_breakpoints(void)
{
	static uint64_t watched[8];
	int fds[32], nr = 0;

	breakpoint_at((uintptr_t)watched, 3, HW_BREAKPOINT_RW);
	blames("a breakpoint of three bytes", EINVAL, "bp_len", CSINK_CAUSE_BAD_VALUE);
	breakpoint_at((uintptr_t)watched, 8, 0);
	blames("a breakpoint on nothing", EINVAL, "bp_type", CSINK_CAUSE_BAD_VALUE);
	breakpoint_at((uintptr_t)watched + 1, 4, HW_BREAKPOINT_RW);
#ifdef __x86_64__
	blames("an unaligned breakpoint", EINVAL, "bp_addr", CSINK_CAUSE_BAD_VALUE);
	breakpoint_at(UINT64_MAX - 4095, 8, HW_BREAKPOINT_RW);
	attr.exclude_kernel = 1;
	blames("a breakpoint in the kernel that leaves the kernel out", EINVAL, "exclude_kernel",
	       CSINK_CAUSE_BAD_VALUE);
#endif
	for (; nr < 32; nr++) {
		breakpoint_at((uintptr_t)&watched[nr % 8], 8, HW_BREAKPOINT_RW);
		fds[nr] = csink_perf_open(&attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
		if (fds[nr] < 0)
			break;
	}
	if (nr && fds[nr] == -ENOSPC)
		blames("one breakpoint too many", ENOSPC, "", CSINK_CAUSE_RESOURCE);
	else
		skip("one breakpoint too many", "this machine has no breakpoints, or more than 32");
	while (nr)
		close(fds[--nr]);
	plain();
}

/* ---- targets ----------------------------------------------------------------------------------------------------- */

static void *main_thread_gone(void *ready)
{
	char byte = 0;

	/* The number of the process is that of its main thread, which ends now; wait for the parent's word. */
	if (write(((int *)ready)[1], &byte, 1) != 1 || read(((int *)ready)[2], &byte, 1) < 0)
		_exit(1);
	_exit(0);
}

static bool wait_for_zombie(pid_t pid)
{
	char path[64], stat[256], *close_paren;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	for (int i = 0; i < 1000; i++) {
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t got = fd < 0 ? -1 : read(fd, stat, sizeof(stat) - 1);

		if (fd >= 0)
			close(fd);
		stat[got > 0 ? got : 0] = '\0';
		close_paren = strrchr(stat, ')');
		if (close_paren && close_paren[2] == 'Z')
			return true;
		poll(NULL, 0, 5);
	}
	return false;
}

static void test_gone(void)
{
	pid_t pid = fork();
	int up[2], down[2];

	if (!pid)
		_exit(0);
	if (wait_for_zombie(pid)) {
		call.pid = pid;
		blames("a zombie", ESRCH, "pid", CSINK_CAUSE_TARGET);
		ok(!!strstr(found[0].text, "zombie"), "which is called one");
	}
	waitpid(pid, NULL, 0);
	call.pid = pid;
	blames("a process that is gone", ESRCH, "pid", CSINK_CAUSE_TARGET);
	if (pipe2(up, O_CLOEXEC) || pipe2(down, O_CLOEXEC))
		return;
	pid = fork();
	if (!pid) {
		int ends[3] = {up[0], up[1], down[0]};
		pthread_t thread;
		static int kept[3];

		close(down[1]);
		memcpy(kept, ends, sizeof(kept));
		pthread_create(&thread, NULL, main_thread_gone, kept);
		pthread_detach(thread);
		syscall(SYS_exit, 0);
	}
	if (wait_for_zombie(pid)) {
		call.pid = pid;
		blames("a process without its main thread", ESRCH, "pid", CSINK_CAUSE_TARGET);
		ok(!!strstr(found[0].text, "main thread"), "which is told from a zombie");
	}
	close(down[1]);
	waitpid(pid, NULL, 0);
	close(up[0]);
	close(up[1]);
	close(down[0]);
}

static void test_target(void)
{
	call.flags = 1UL << 20;
	blames("unknown flags", EINVAL, "flags", CSINK_CAUSE_BAD_VALUE);
	call.pid = -1;
	blames("every process on every CPU", EINVAL, "cpu", CSINK_CAUSE_BAD_VALUE);
	call.cpu = 1 << 20;
	blames("a CPU that is not there", EINVAL, "cpu", CSINK_CAUSE_TARGET);
	call.flags |= PERF_FLAG_PID_CGROUP;
	call.pid = 0;
	blames("a control group on every CPU", EINVAL, "cpu", CSINK_CAUSE_BAD_VALUE);
	call.flags |= PERF_FLAG_PID_CGROUP;
	call.pid = 9999;
	call.cpu = 0;
	blames("a control group that is not open", EBADF, "pid", CSINK_CAUSE_TARGET);
	test_gone();
}

/* ---- groups ------------------------------------------------------------------------------------------------------ */

static int open_leader(void)
{
	int fd = csink_perf_open(&attr, call.pid, call.cpu, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		ok(0, "a leader opens");
	return fd;
}

static void test_group(void)
{
	int leader = open_leader(), member, pipes[2], status;
	pid_t pid;

	call.group_fd = 9999;
	blames("a group_fd that is not open", EBADF, "group_fd", CSINK_CAUSE_CALLER);
	call.group_fd = STDOUT_FILENO;
	blames("a group_fd that is no event", EBADF, "group_fd", CSINK_CAUSE_CALLER);
	call.group_fd = leader;
	attr.pinned = 1;
	blames("a pinned member", EINVAL, "pinned", CSINK_CAUSE_GROUP);
	call.group_fd = leader;
	attr.exclusive = 1;
	blames("an exclusive member", EINVAL, "exclusive", CSINK_CAUSE_GROUP);
	call.group_fd = leader;
	attr.inherit = 1;
	blames("a member that is inherited, its leader not", EINVAL, "inherit", CSINK_CAUSE_GROUP);
	call.group_fd = leader;
	attr.use_clockid = 1;
	attr.clockid = CLOCK_MONOTONIC;
	blames("a member with another clock", EINVAL, "clockid", CSINK_CAUSE_GROUP);
	call.group_fd = leader;
	call.pid = getppid();
	if (may_kernel)
		blames("a member of another task", EINVAL, "group_fd", CSINK_CAUSE_GROUP);
	plain();
	member = csink_perf_open(&attr, 0, -1, leader, PERF_FLAG_FD_CLOEXEC);
	call.group_fd = member;
	blames("a member as leader", EINVAL, "group_fd", CSINK_CAUSE_GROUP);
	close(member);
	close(leader);

	if (pipe2(pipes, O_CLOEXEC))
		return;
	pid = fork();
	if (!pid) {
		char byte;

		close(pipes[1]);
		_exit(read(pipes[0], &byte, 1) != 0);
	}
	call.pid = pid;
	leader = open_leader();
	close(pipes[1]);
	waitpid(pid, &status, 0);
	close(pipes[0]);
	plain();
	call.group_fd = leader;
	blames("a leader whose task has ended", ENODEV, "group_fd", CSINK_CAUSE_GROUP);
	close(leader);
}

/* Members until their common read() takes more than 16 KiB. */
static void test_large_group(void)
{
	enum { MOST = 900 };
	struct rlimit limit, raised;
	static int fds[MOST];
	int nr = 0, last = 0;

	getrlimit(RLIMIT_NOFILE, &limit);
	raised = limit;
	raised.rlim_cur = CSINK_MIN(limit.rlim_max, (rlim_t)4096);
	setrlimit(RLIMIT_NOFILE, &raised);
	attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID | PERF_FORMAT_LOST;
	attr.sample_period = 0;
	for (; nr < MOST; nr++) {
		last = csink_perf_open(&attr, 0, -1, nr ? fds[0] : -1, PERF_FLAG_FD_CLOEXEC);
		if (last < 0)
			break;
		fds[nr] = last;
	}
	if (nr > 1 && nr < MOST && last == -E2BIG) {
		printf("# %d events in one group\n", nr);
		call.group_fd = fds[0];
		blames("a group too large to be read", E2BIG, "group_fd", CSINK_CAUSE_GROUP);
	} else {
		skip("a group too large to be read", "the file descriptors end first");
	}
	while (nr)
		close(fds[--nr]);
	setrlimit(RLIMIT_NOFILE, &limit);
	plain();
}

/* ---- probes in functions, tracepoints ---------------------------------------------------------------------------- */

static void test_uprobe(void)
{
	static char path[8192];
	int64_t type;
	char text[16] = "";
	int fd = open("/sys/bus/event_source/devices/uprobe/type", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0) {
		skip("a uprobe's path", "this kernel has no uprobe PMU");
		return;
	}
	close(fd);
	type = atoi(text);
	memset(path, 'x', sizeof(path) - 1);
	attr.type = (uint32_t)type;
	attr.config = 0;
	attr.config1 = (uintptr_t)path;
	if (!may_kernel) {
		blames("a uprobe without privilege", EACCES, "config", CSINK_CAUSE_PARANOID);
		return;
	}
	blames("a uprobe's path too long", E2BIG, "config1", CSINK_CAUSE_CALLER);
	attr.type = (uint32_t)type;
	attr.config = 0;
	attr.config1 = 8;
	blames("a uprobe's path that cannot be read", EFAULT, "config1", CSINK_CAUSE_CALLER);
}

static void test_pointer(void)
{
	char line[640];

	call.attr = NULL;
	is_num(csink_explain_open(&call, EFAULT, found, CSINK_EXPLAIN_MAX), 1, "a NULL attr is explained");
	ok(found[0].cause == CSINK_CAUSE_CALLER && !strcmp(found[0].field, "attr"), "%s",
	   csink_explain_print(&found[0], line, sizeof(line)));
	call.attr = (void *)8;
	csink_explain_open(&call, EFAULT, found, CSINK_EXPLAIN_MAX);
	ok(found[0].cause == CSINK_CAUSE_CALLER, "%s", csink_explain_print(&found[0], line, sizeof(line)));
	plain();
	is_num(csink_explain_open(&call, EINVAL, found, CSINK_EXPLAIN_MAX), 1, "a call that works is explained");
	is_num(found[0].cause, CSINK_CAUSE_NONE, "as one that works");
	csink_explain_open(&call, EINTR, found, CSINK_EXPLAIN_MAX);
	is_num(found[0].cause, CSINK_CAUSE_RETRY, "and after EINTR as one to be repeated");
}

static void test_stacked(void)
{
	attr.sample_type = 1ULL << 40;
	attr.sample_max_stack = 60000;
	attr.read_format = 1ULL << 30;
	blames_two("two values of one errno", EINVAL, "sample_type: bit 40", CSINK_CAUSE_NEW_FIELD,
		   "read_format: bit 30");
	attr.sigtrap = 1;
	attr.freq = 1;
	attr.sample_freq = 1ULL << 40;
	blames_two("a flag and a frequency", EINVAL, "sigtrap", CSINK_CAUSE_BAD_VALUE, "sample_freq");
	attr.type = 4000000;
	call.pid = 0x3ffffffe;
	blames_two("no such process, and no such PMU", ESRCH, "pid", CSINK_CAUSE_TARGET, "type");
	call.cpu = 1 << 20;
	attr.sample_type = PERF_SAMPLE_CALLCHAIN;
	attr.sample_max_stack = 60000;
	blames_two("a bad CPU and a deep call chain", EINVAL, "cpu", CSINK_CAUSE_TARGET, "sample_max_stack");
}

/* ---- rings ------------------------------------------------------------------------------------------------------- */

static void ring_blames(const char *what, size_t bytes, int flags, int err, const char *field, enum csink_cause cause)
{
	int fd = csink_perf_open(&attr, call.pid, call.cpu, -1, PERF_FLAG_FD_CLOEXEC), got;
	void *ring = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
	char line[640];

	got = ring == MAP_FAILED ? errno : 0;
	csink_explain_mmap(&attr, fd, bytes, PROT_READ | PROT_WRITE, flags, got, &found[0]);
	if (!ok(got == err && found[0].cause == cause && !strcmp(found[0].field, field), "%s: %s, %s", what,
		csink_errno_name(err), field))
		printf("#   got %s, cause %d, field '%s'\n", csink_errno_name(got), found[0].cause, found[0].field);
	printf("# %s\n", csink_explain_print(&found[0], line, sizeof(line)));
	if (ring != MAP_FAILED)
		munmap(ring, bytes);
	close(fd);
	plain();
}

static void test_rings(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	ring_blames("a ring of 1 + 3 pages", 4 * page, MAP_SHARED, EINVAL, "length", CSINK_CAUSE_BAD_VALUE);
	ring_blames("a private ring", 2 * page, MAP_PRIVATE, EINVAL, "flags", CSINK_CAUSE_BAD_VALUE);
	attr.inherit = 1;
	ring_blames("the ring of an inherited event", 2 * page, MAP_SHARED, EINVAL, "inherit", CSINK_CAUSE_BAD_VALUE);
}

/* ---- those who may do less --------------------------------------------------------------------------------------- */

static void test_everyone(void)
{
	plain();
	test_size();
	test_tail();
	test_values();
	test_flags();
	test_events();
	test_breakpoints();
	test_target();
	test_group();
	test_large_group();
	test_uprobe();
	test_pointer();
	test_stacked();
	test_rings();
}

static void test_refused_user(void)
{
	int ends[2];
	char byte;
	pid_t pid;

	attr.exclude_kernel = 0;
	blames("the kernel", EACCES, "exclude_kernel", CSINK_CAUSE_PARANOID);
	ok(!!strstr(found[0].remedy, ":u"), "the remedy is at hand");
	call.pid = -1;
	call.cpu = 0;
	blames("a whole CPU", EACCES, "pid", CSINK_CAUSE_PARANOID);
	attr.exclude_kernel = 0;
	call.pid = -1;
	call.cpu = 0;
	blames_two("the kernel on a whole CPU", EACCES, "exclude_kernel", CSINK_CAUSE_PARANOID, "pid");
	call.pid = 1;
	blames("another user's process", EACCES, "pid", CSINK_CAUSE_TARGET);
	ok(!!strstr(found[0].text, "uid 0"), "whose user is named");
	attr.namespaces = 1;
	blames("records of namespaces", EACCES, "namespaces", CSINK_CAUSE_PARANOID);
	attr.sample_type = PERF_SAMPLE_PHYS_ADDR;
	blames("physical addresses", EACCES, "sample_type: PHYS_ADDR", CSINK_CAUSE_PARANOID);
	attr.sample_type = PERF_SAMPLE_BRANCH_STACK;
	attr.branch_sample_type = PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_KERNEL;
	blames("the kernel's branches", EACCES, "branch_sample_type", CSINK_CAUSE_PARANOID);
	if (pipe2(ends, O_CLOEXEC))
		return;
	pid = fork();
	if (!pid) {
		prctl(PR_SET_DUMPABLE, 0);
		close(ends[0]);
		if (write(ends[1], "", 1) == 1)
			pause();
		_exit(0);
	}
	if (read(ends[0], &byte, 1) == 1) {
		call.pid = pid;
		blames("a process that cannot be dumped", EACCES, "pid", CSINK_CAUSE_TARGET);
		ok(!!strstr(found[0].text, "setuid"), "for reasons that are named");
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(ends[0]);
	close(ends[1]);
}

static void as_nobody(void)
{
	struct csink_perf_system system;

	/* A change of uid makes a process one that cannot be dumped, and so one that its own children cannot look at.
	 */
	if (geteuid() == 0 && (setgid(NOBODY) || setuid(NOBODY) || prctl(PR_SET_DUMPABLE, 1))) {
		skip("an unprivileged user", "setuid is refused");
		return;
	}
	csink_perf_system_read(&system);
	if (system.paranoid != 2 || system.has_perfmon) {
		skip("an unprivileged user at paranoid 2",
		     "kernel.perf_event_paranoid differs, or CAP_PERFMON is held");
		return;
	}
	may_kernel = false;
	printf("# an unprivileged user at paranoid 2\n");
	test_everyone();
	test_refused_user();
}

/* ---- tracefs, mounted for this test alone ------------------------------------------------------------------------ */

static bool put_line(const char *path, const char *line)
{
	int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC), written = -1;

	if (fd >= 0) {
		written = (int)write(fd, line, strlen(line));
		close(fd);
	}
	return written == (int)strlen(line);
}

static uint64_t tracepoint_id(const char *tracefs, const char *name)
{
	struct csink_event_roots roots = {NULL, tracefs};
	struct csink_event_error err;
	struct csink_event_spec spec;

	if (csink_events_parse_at(&roots, name, &spec, 1, &err) != 1) {
		printf("# %s\n", err.line);
		return 0;
	}
	return spec.attr.config;
}

static void is_tracepoint(uint64_t id)
{
	attr.type = PERF_TYPE_TRACEPOINT;
	attr.config = id;
	attr.sample_period = 1;
}

/* A uprobe that ftrace has switched on is closed to perf. */
static void test_uprobe_in_ftrace(const char *tracefs)
{
	char path[128], line[64], name[64];

	snprintf(name, sizeof(name), "csink%d:probe", getpid());
	snprintf(line, sizeof(line), "p:csink%d/probe /proc/self/exe:0x1000\n", getpid());
	snprintf(path, sizeof(path), "%s/uprobe_events", tracefs);
	if (!put_line(path, line)) {
		skip("a uprobe in use by ftrace", "this kernel has no uprobe_events");
		return;
	}
	snprintf(path, sizeof(path), "%s/events/csink%d/probe/enable", tracefs, getpid());
	if (put_line(path, "1")) {
		is_tracepoint(tracepoint_id(tracefs, name));
		blames("a uprobe in use by ftrace", EINTR, "config", CSINK_CAUSE_RESOURCE);
		put_line(path, "0");
	}
	snprintf(line, sizeof(line), "-:csink%d/probe\n", getpid());
	snprintf(path, sizeof(path), "%s/uprobe_events", tracefs);
	ok(put_line(path, line), "the uprobe is removed again");
}

static void with_tracefs(void)
{
	char tracefs[] = "/tmp/csink-tracefs-XXXXXX";
	uint64_t id;

	if (geteuid() || !mkdtemp(tracefs)) {
		skip("tracepoints", "this is not root");
		return;
	}
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tracefs", tracefs, "tracefs", 0, NULL)) {
		skip("tracepoints", "tracefs cannot be mounted here");
		rmdir(tracefs);
		return;
	}
	plain();
	is_tracepoint(999999);
	blames("a tracepoint that is not there", EINVAL, "config", CSINK_CAUSE_NO_EVENT);
	test_uprobe_in_ftrace(tracefs);
	id = tracepoint_id(tracefs, "sched:sched_switch");
	umount2(tracefs, MNT_DETACH);
	rmdir(tracefs);
	if (setgid(NOBODY) || setuid(NOBODY))
		return;
	may_kernel = false;
	plain();
	is_tracepoint(id);
	attr.sample_type = PERF_SAMPLE_RAW;
	blames("raw data of a tracepoint, by an unprivileged user", EPERM, "sample_type: RAW", CSINK_CAUSE_PARANOID);
}

/* CAP_PERFMON and nothing else: enough for the kernel, not for a breakpoint in it. */
static void with_perfmon_only(void)
{
#ifdef __x86_64__
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[2] = {{0, 0, 0}, {1 << (CAP_PERFMON - 32), 1 << (CAP_PERFMON - 32), 0}};

	if (geteuid() || syscall(SYS_capset, &header, data)) {
		skip("CAP_PERFMON alone", "this is not root");
		return;
	}
	may_kernel = true;
	plain();
	breakpoint_at(UINT64_MAX - 4095, 8, HW_BREAKPOINT_RW);
	attr.exclude_kernel = 0;
	blames("a breakpoint in the kernel", EPERM, "bp_addr", CSINK_CAUSE_PARANOID);
#endif
}

static void in_user_namespace(void)
{
	struct csink_perf_system system;
	int fd;

	if (geteuid() == 0 && (setgid(NOBODY) || setuid(NOBODY) || prctl(PR_SET_DUMPABLE, 1)))
		return;
	if (unshare(CLONE_NEWUSER)) {
		skip("root of a user namespace", "user namespaces are not for unprivileged users here");
		return;
	}
	fd = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
	if (fd < 0 || dprintf(fd, "0 %d 1\n", NOBODY) < 0) {
		skip("root of a user namespace", "its uid map cannot be written");
		return;
	}
	close(fd);
	csink_perf_system_read(&system);
	ok(system.in_user_ns && system.has_perfmon && !csink_perf_system_allows(&system, 1),
	   "root of a user namespace shows CAP_PERFMON, which is worth nothing");
	may_kernel = false;
	plain();
	attr.exclude_kernel = 0;
	blames("the kernel, by root of a user namespace", EACCES, "exclude_kernel", CSINK_CAUSE_USER_NS);
}

static void under_filter(int err)
{
	char text[160], want[64];

	if (refuse_perf_event_open(err)) {
		skip("a seccomp filter", "this kernel has none");
		return;
	}
	plain();
	snprintf(want, sizeof(want), "a filter that says %s", csink_errno_name(err));
	blames(want, err, "", CSINK_CAUSE_SECCOMP);
	is_str(csink_explain_brief(err, text, sizeof(text)), "a seccomp filter refuses perf_event_open", "in brief");
	attr.sample_type = 1ULL << 40;
	blames("whatever is asked", err, "", CSINK_CAUSE_SECCOMP);
}

static void under_eperm(void)
{
	under_filter(EPERM);
}

static void under_enosys(void)
{
	under_filter(ENOSYS);
}

static void under_eacces(void)
{
	under_filter(EACCES);
}

static void without_fds(void)
{
	struct rlimit limit = {(rlim_t)lowest_fd(), 4096};
	char text[160];

	plain();
	setrlimit(RLIMIT_NOFILE, &limit);
	/* lowest_fd() is -1 now, before and after. */
	blames("no fd left", EMFILE, "RLIMIT_NOFILE", CSINK_CAUSE_LIMIT);
	attr.sample_type = 1ULL << 40;
	blames("what is checked before an fd is needed", EINVAL, "sample_type: bit 40", CSINK_CAUSE_NEW_FIELD);
	ok(!!strstr(csink_explain_brief(EMFILE, text, sizeof(text)), "file descriptors"), "in brief: %s", text);
}

static void without_locked_memory(void)
{
	struct rlimit none = {0, 0};
	size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = page;
	void *ring = MAP_FAILED;
	int fd, nr = 0;

	setrlimit(RLIMIT_MEMLOCK, &none);
	if (geteuid() == 0 && (setgid(NOBODY) || setuid(NOBODY)))
		return;
	may_kernel = false;
	plain();
	/* Rings until the user's budget is gone; they live as long as this process. */
	do {
		fd = csink_perf_open(&attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
		if (fd < 0)
			break;
		ring = mmap(NULL, bytes + 128 * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		close(fd);
	} while (ring != MAP_FAILED && ++nr < 1000);
	printf("# %d rings of 516 KiB\n", nr);
	ring_blames("a ring over the budget", 129 * page, MAP_SHARED, EPERM, "RLIMIT_MEMLOCK", CSINK_CAUSE_LIMIT);
}

/* ---- running them ------------------------------------------------------------------------------------------------ */

static void in_child(void (*test)(void))
{
	int *counts = mmap(NULL, sizeof(int[2]), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status = 0;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		test();
		fflush(stdout);
		counts[0] = tap_nr;
		counts[1] = tap_failed;
		_exit(0);
	}
	waitpid(pid, &status, 0);
	if (WIFEXITED(status) && counts[0]) {
		tap_nr = counts[0];
		tap_failed = counts[1];
	} else {
		ok(0, "a child of the test ended well (status 0x%x)", status);
	}
	munmap(counts, sizeof(int[2]));
}

int main(void)
{
	struct csink_perf_system system;
	struct csink_explanation refusal;

	csink_perf_system_read(&system);
	if (csink_explain_refusal(NULL, &system, &refusal)) {
		skip("explanations", refusal.text);
		return done();
	}
	may_kernel = csink_perf_system_allows(&system, -1);
	if (may_kernel) {
		printf("# a privileged user\n");
		test_everyone();
	}
	in_child(as_nobody);
	in_child(with_tracefs);
	in_child(with_perfmon_only);
	in_child(in_user_namespace);
	in_child(under_eperm);
	in_child(under_enosys);
	in_child(under_eacces);
	in_child(without_fds);
	in_child(without_locked_memory);
	return done();
}
