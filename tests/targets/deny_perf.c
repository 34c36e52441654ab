/*
 * deny_perf COMMAND...: run a command under a seccomp filter that refuses perf_event_open, as a container's does.
 * With -e ERRNO in front, by that number instead of EPERM (1); then with -t, ptrace is refused instead, as Yama does,
 * with -r, process_vm_readv, with -a, sched_setaffinity, as a cpuset does.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	unsigned int number = SYS_perf_event_open;
	int error = EPERM, at = 1;

	if (argc > 2 && !strcmp(argv[1], "-e")) {
		error = atoi(argv[2]);
		at = 3;
	}
	if (argc > at && !strcmp(argv[at], "-t")) {
		number = SYS_ptrace;
		at++;
	} else if (argc > at && !strcmp(argv[at], "-r")) {
		number = SYS_process_vm_readv;
		at++;
	} else if (argc > at && !strcmp(argv[at], "-a")) {
		number = SYS_sched_setaffinity;
		at++;
	}
	if (at >= argc) {
		fprintf(stderr, "usage: deny_perf [-e ERRNO] [-t|-r|-a] COMMAND...\n");
		return 2;
	}

	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned int)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {.len = sizeof(rules) / sizeof(rules[0]), .filter = rules};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) {
		perror("deny_perf: seccomp");
		return 125;
	}
	execvp(argv[at], argv + at);
	perror(argv[at]);
	return 127;
}
