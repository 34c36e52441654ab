/*
 * Explanations of calls whose target or group is at fault: processes that are gone, CPUs that are not there, groups
 * that a member cannot be in.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "tests/unit/explain_try.h"
#include "tests/unit/kernel.h"

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
	for (int i = 0; i < 6000; i++) {
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
	ok(0, "process %d has become a zombie", pid);
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
		ok(!!strstr(found[0].text, "zombie"), "the text names the zombie");
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
		ok(!!strstr(found[0].text, "main thread"), "the text names the ended main thread");
	}
	close(down[1]);
	waitpid(pid, NULL, 0);
	close(up[0]);
	close(up[1]);
	close(down[0]);
}

/* As where one of cgroup v1 has the perf_event controller. */
static void test_other_hierarchy(void)
{
	char directory[] = "/tmp/csink-cgroup.XXXXXX";
	int fd, opened = -1;

	if (!mkdtemp(directory))
		exit(1);
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", directory, "cgroup2", 0, NULL)) {
		rmdir(directory);
		skip("a control group without perf_event", "no control groups of version 2 can be mounted");
		return;
	}
	fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	call.flags |= PERF_FLAG_PID_CGROUP;
	call.pid = fd;
	call.cpu = 0;
	opened = csink_perf_open(&attr, fd, 0, -1, PERF_FLAG_FD_CLOEXEC | PERF_FLAG_PID_CGROUP);
	if (opened == -ENOENT)
		blames("a control group without perf_event", ENOENT, "pid", CSINK_CAUSE_TARGET);
	else
		skip("a control group without perf_event", "the hierarchy of version 2 has it");
	call.flags &= ~PERF_FLAG_PID_CGROUP;
	if (opened >= 0)
		close(opened);
	close(fd);
	umount(directory);
	rmdir(directory);
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
	test_other_hierarchy();
	test_gone();
}

/* ---- groups ------------------------------------------------------------------------------------------------------ */

static int open_leader(void)
{
	int fd = csink_perf_open(&attr, call.pid, call.cpu, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		ok(0, "the group's leader opens");
	return fd;
}

static void test_group(void)
{
	int leader = open_leader(), member, pipes[2], status, err;
	struct perf_event_attr as_passed;
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
	/* 5.10, 6.1 and the first of 6.12 say EINVAL, 6.12.117 and 6.18 ENODEV. */
	as_passed = attr;
	err = csink_perf_open(&as_passed, call.pid, call.cpu, call.group_fd, call.flags);
	blames("a leader whose task has ended", err == -EINVAL ? EINVAL : ENODEV, "group_fd", CSINK_CAUSE_GROUP);
	plain();
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

static void test_all(void)
{
	test_target();
	test_group();
	test_large_group();
}

int main(void)
{
	return explain_as_both(test_all);
}
