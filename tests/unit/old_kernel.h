/*
 * perf_event_open(2) as Linux 5.10 has it, on a newer kernel: a seccomp filter hands each call to a supervisor, which
 * reads the attr in the caller's memory and refuses what came later, with that kernel's errors: inherit_thread,
 * remove_on_exec and sigtrap (5.13), build_id (5.12), and what lies behind the 120 bytes of attr that it knew. uname(2)
 * gives its release. Where old_kernel_paranoid is set, events are refused as Debian's kernels refuse them with
 * kernel.perf_event_paranoid at 3: to all without CAP_SYS_ADMIN. Everything else is as the running kernel has it.
 */
#ifndef CSINK_TESTS_OLD_KERNEL_H
#define CSINK_TESTS_OLD_KERNEL_H

#include <errno.h>
#include <linux/filter.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#define OLD_KERNEL "5.10.0-46-cloud-amd64"
#define OLD_ATTR_SIZE 120 /* PERF_ATTR_SIZE_VER6 */
#define OLD_ATTR_MOST 4096

static bool old_kernel_paranoid;

/* In the child. Returns the listener, or -1. */
static int old_kernel_filter(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_uname, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
}

static bool old_kernel_is_admin(pid_t tid)
{
	char path[64], line[128];
	unsigned long long held = 0;
	struct stat ours, theirs;
	FILE *status;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
	status = fopen(path, "re");
	while (status && fgets(line, sizeof(line), status))
		if (sscanf(line, "CapEff: %llx", &held) == 1)
			break;
	if (status)
		fclose(status);
	snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)tid);
	return held >> 21 & 1 && !stat("/proc/self/ns/user", &ours) && !stat(path, &theirs) &&
	       ours.st_ino == theirs.st_ino;
}

/* The kernel leaves its own size in an attr that it finds too long. */
static int old_kernel_too_big(pid_t tid, uint64_t address)
{
	uint32_t size = OLD_ATTR_SIZE;
	struct iovec from = {&size, sizeof(size)};
	struct iovec to = {(void *)(address + offsetof(struct perf_event_attr, size)), sizeof(size)};

	return process_vm_writev(tid, &from, 1, &to, 1, 0) == sizeof(size) ? -E2BIG : -EFAULT;
}

/* 0: the running kernel decides; or -errno. */
static int old_kernel_judge(pid_t tid, uint64_t address)
{
	static unsigned char bytes[OLD_ATTR_MOST];
	struct perf_event_attr later = {.build_id = 1, .inherit_thread = 1, .remove_on_exec = 1, .sigtrap = 1};
	size_t word = offsetof(struct perf_event_attr, read_format) + sizeof(later.read_format);
	struct iovec to = {bytes, OLD_ATTR_SIZE}, from = {(void *)address, OLD_ATTR_SIZE};
	uint64_t flags, unknown;
	uint32_t size;

	memset(bytes, 0, sizeof(bytes));
	/* A short attr may lie at the end of what is mapped. */
	if (process_vm_readv(tid, &to, 1, &from, 1, 0) < PERF_ATTR_SIZE_VER0)
		return 0;
	if (old_kernel_paranoid && !old_kernel_is_admin(tid))
		return -EACCES;
	memcpy(&size, bytes + offsetof(struct perf_event_attr, size), sizeof(size));
	if (size > OLD_ATTR_SIZE && size <= OLD_ATTR_MOST) {
		to.iov_len = from.iov_len = size;
		if (process_vm_readv(tid, &to, 1, &from, 1, 0) != (ssize_t)size)
			return 0;
		for (uint32_t i = OLD_ATTR_SIZE; i < size; i++)
			if (bytes[i])
				return old_kernel_too_big(tid, address);
	}
	memcpy(&flags, bytes + word, sizeof(flags));
	memcpy(&unknown, (const char *)&later + word, sizeof(unknown));
	return flags & unknown ? -EINVAL : 0;
}

static void old_kernel_answer(int listener)
{
	static struct seccomp_notif asked;
	struct seccomp_notif_resp answer = {0};

	memset(&asked, 0, sizeof(asked));
	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked))
		return;
	answer.id = asked.id;
	if (asked.data.nr == SYS_uname) {
		struct utsname name;
		struct iovec from = {&name, sizeof(name)}, to = {(void *)asked.data.args[0], sizeof(name)};

		uname(&name);
		snprintf(name.release, sizeof(name.release), OLD_KERNEL);
		answer.error = process_vm_writev((pid_t)asked.pid, &from, 1, &to, 1, 0) == sizeof(name) ? 0 : -EFAULT;
	} else {
		answer.error = old_kernel_judge((pid_t)asked.pid, asked.data.args[0]);
		if (!answer.error)
			answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	}
	ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer); /* fails where the caller was interrupted: it asks again */
}

static void old_kernel_send(int socket, int fd)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {.head = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
	struct iovec byte = {"", 1};
	struct msghdr message = {
		.msg_iov = &byte, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};

	memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	sendmsg(socket, &message, 0);
}

static int old_kernel_receive(int socket)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	char got;
	struct iovec byte = {&got, 1};
	struct msghdr message = {
		.msg_iov = &byte, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	int fd = -1;

	if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) == 1 && message.msg_controllen)
		memcpy(&fd, CMSG_DATA(&control.head), sizeof(fd));
	return fd;
}

/**
 * Run part(arg) in a child that has such a kernel, and what it starts. Returns the child's status as waitpid(2) gives
 * it, once none of these is left; -1: it cannot be done here.
 */
static int on_old_kernel(int (*part)(void *arg), void *arg)
{
	int sockets[2], listener, status = -1;
	struct pollfd wait;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets))
		return -1;
	fflush(stdout);
	pid = fork();
	if (!pid) {
		listener = old_kernel_filter();
		if (listener < 0)
			_exit(125);
		old_kernel_send(sockets[1], listener);
		close(listener);
		close(sockets[0]);
		close(sockets[1]);
		_exit(part(arg));
	}
	close(sockets[1]);
	listener = old_kernel_receive(sockets[0]);
	close(sockets[0]);
	wait = (struct pollfd){.fd = listener, .events = POLLIN};
	while (listener >= 0 && (poll(&wait, 1, -1) > 0 || errno == EINTR)) {
		if (wait.revents & POLLIN)
			old_kernel_answer(listener);
		else if (wait.revents & (POLLHUP | POLLERR))
			break;
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return listener < 0 ? -1 : status;
}

#endif
