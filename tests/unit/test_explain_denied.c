/*
 * Explanations of what is refused to those who have given something up: the uid, tracefs, capabilities, the initial
 * user namespace, system calls without a filter, file descriptors, locked memory.
 */
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "tests/unit/explain_try.h"
#include "tests/unit/kernel.h"
#include "tests/unit/refuse.h"

/* A process without CAP_SYS_ADMIN is; then there is nothing else to explain. */
static bool is_refused_for_level(const char *process)
{
	char what[96];

	if (!level_refuses_all())
		return false;
	plain();
	snprintf(what, sizeof(what), "whatever %s asks for, where perf_event_paranoid is 3", process);
	blames(what, EACCES, "", CSINK_CAUSE_PARANOID);
	ok(!!strstr(found[0].remedy, "CAP_SYS_ADMIN"), "the remedy of %s is the level, or CAP_SYS_ADMIN", process);
	return true;
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
	ok(!!strstr(found[0].text, "uid 0"), "the text names the other process's user");
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
		ok(!!strstr(found[0].text, "setuid"), "the text names setuid as a reason");
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(ends[0]);
	close(ends[1]);
}

static void as_nobody(void)
{
	if (become_nobody())
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
	if (setgid(UNPRIVILEGED_ID) || setuid(UNPRIVILEGED_ID))
		return;
	may_kernel = false;
	if (is_refused_for_level("an unprivileged user"))
		return;
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
	if (is_refused_for_level("a process with CAP_PERFMON alone"))
		return;
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

	if (geteuid() == 0 && (setgid(UNPRIVILEGED_ID) || setuid(UNPRIVILEGED_ID) || prctl(PR_SET_DUMPABLE, 1)))
		return;
	if (unshare(CLONE_NEWUSER)) {
		skip("root of a user namespace", "user namespaces are not for unprivileged users here");
		return;
	}
	fd = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
	if (fd < 0 || dprintf(fd, "0 %d 1\n", UNPRIVILEGED_ID) < 0) {
		skip("root of a user namespace", "its uid map cannot be written");
		return;
	}
	close(fd);
	csink_perf_system_read(&system);
	ok(system.in_user_ns && system.has_perfmon && !csink_perf_system_allows(&system, 1),
	   "root of a user namespace shows CAP_PERFMON, which is worth nothing");
	may_kernel = false;
	if (is_refused_for_level("root of a user namespace"))
		return;
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
	snprintf(want, sizeof(want), "a filter that returns %s", csink_errno_name(err));
	blames(want, err, "", CSINK_CAUSE_SECCOMP);
	is_str(csink_explain_brief(err, text, sizeof(text)), "a seccomp filter refuses perf_event_open",
	       "the brief text names the filter");
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
	blames("an error found before a descriptor is needed", EINVAL, "sample_type: bit 40", CSINK_CAUSE_NEW_FIELD);
	ok(!!strstr(csink_explain_brief(EMFILE, text, sizeof(text)), "file descriptors"),
	   "the brief text names file descriptors: %s", text);
}

static void without_locked_memory(void)
{
	struct rlimit none = {0, 0};
	size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = page;
	void *ring = MAP_FAILED;
	int fd, nr = 0;

	setrlimit(RLIMIT_MEMLOCK, &none);
	if (geteuid() == 0 && (setgid(UNPRIVILEGED_ID) || setuid(UNPRIVILEGED_ID)))
		return;
	may_kernel = false;
	if (is_refused_for_level("a user without locked memory"))
		return;
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

int main(void)
{
	if (!can_explain())
		return done();
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
