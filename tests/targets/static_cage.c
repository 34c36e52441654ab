/*
 * A sandbox that the library does not see at work, as a service manager's or a container's: a static program that
 * puts itself under a seccomp filter, and becomes another one.
 *   static_cage kill|trap|refuse CALL[,CALL...] COMMAND [ARGUMENT...]
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MAX_CALLS = 30 };

static const struct {
	const char *name;
	unsigned int number;
} calls[] = {{"perf_event_open", SYS_perf_event_open},
	     {"process_vm_readv", SYS_process_vm_readv},
	     {"timer_create", SYS_timer_create},
	     {"memfd_create", SYS_memfd_create},
	     {"socket", SYS_socket},
	     {"bind", SYS_bind},
	     {"recvmsg", SYS_recvmsg},
	     {"fcntl", SYS_fcntl},
	     {"prctl", SYS_prctl},
	     {"ftruncate", SYS_ftruncate},
	     {"madvise", SYS_madvise},
	     {"munlock", SYS_munlock},
	     {"getdents64", SYS_getdents64},
	     {"fork", SYS_clone}};

static const struct {
	const char *name;
	unsigned int action;
} actions[] = {{"kill", SECCOMP_RET_KILL_PROCESS}, {"trap", SECCOMP_RET_TRAP}, {"refuse", SECCOMP_RET_ERRNO | EPERM}};

static unsigned int action_of(const char *name)
{
	for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++)
		if (!strcmp(name, actions[i].name))
			return actions[i].action;
	return SECCOMP_RET_ALLOW;
}

static long number_of(const char *name)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (!strcmp(name, calls[i].name))
			return calls[i].number;
	return -1;
}

int main(int argc, char **argv)
{
	struct sock_filter rules[2 * MAX_CALLS + 2] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
	struct sock_fprog filter = {1, rules};

	if (argc < 4) {
		fprintf(stderr, "usage: static_cage kill|trap|refuse CALL[,CALL...] COMMAND [ARGUMENT...]\n");
		return 2;
	}
	for (char *name = strtok(argv[2], ","); name && filter.len < 2 * MAX_CALLS; name = strtok(NULL, ",")) {
		long number = number_of(name);

		if (number < 0) {
			fprintf(stderr, "static_cage: no call is known as %s\n", name);
			return 2;
		}
		rules[filter.len++] =
			(struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned int)number, 0, 1);
		rules[filter.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action_of(argv[1]));
	}
	rules[filter.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) {
		perror("static_cage: seccomp");
		return 125;
	}
	execvp(argv[3], argv + 3);
	perror(argv[3]);
	return 127;
}
