/*
 * Programs that confine themselves at work: by seccomp's strict mode, or by filters that punish calls which they do not
 * make, and a profiler may. What they do in there is confined_work().
 *   guest_seccomp WAY
 */
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "guest.h"

static __attribute__((noinline)) uint64_t confined_work(uint64_t ms)
{
	__asm__ volatile("");
	return spin(ms, ms * ROUNDS_MS);
}

/* stdio may ask for memory, or look at a file: not in there. */
static void say(const char *text)
{
	if (write(STDOUT_FILENO, text, strlen(text)) < 0)
		_exit(3);
}

static int install(const struct sock_filter *filter, size_t nr, bool by_prctl)
{
	struct sock_fprog prog = {(unsigned short)nr, (struct sock_filter *)filter};

	if (by_prctl)
		return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog);
}

#define NUMBER BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))
#define IF(nr, action) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1), BPF_STMT(BPF_RET | BPF_K, action)
#define ELSE(action) BPF_STMT(BPF_RET | BPF_K, action)
#define NR(array) (sizeof(array) / sizeof((array)[0]))

static const struct sock_filter least[] = {NUMBER,
					   IF(SYS_read, SECCOMP_RET_ALLOW),
					   IF(SYS_write, SECCOMP_RET_ALLOW),
					   IF(SYS_exit, SECCOMP_RET_ALLOW),
					   IF(SYS_exit_group, SECCOMP_RET_ALLOW),
					   IF(SYS_rt_sigreturn, SECCOMP_RET_ALLOW),
					   ELSE(SECCOMP_RET_KILL_PROCESS)};
static const struct sock_filter refuse_all[] = {NUMBER,
						IF(SYS_read, SECCOMP_RET_ALLOW),
						IF(SYS_write, SECCOMP_RET_ALLOW),
						IF(SYS_exit, SECCOMP_RET_ALLOW),
						IF(SYS_exit_group, SECCOMP_RET_ALLOW),
						IF(SYS_rt_sigreturn, SECCOMP_RET_ALLOW),
						ELSE(SECCOMP_RET_ERRNO | 1)};
/* As a sandbox of a real program: what a profiler alone would call is deadly. */
static const struct sock_filter no_profiler[] = {NUMBER,
						 IF(SYS_perf_event_open, SECCOMP_RET_KILL_PROCESS),
						 IF(SYS_prctl, SECCOMP_RET_KILL_PROCESS),
						 IF(SYS_process_vm_readv, SECCOMP_RET_KILL_PROCESS),
						 IF(SYS_timer_create, SECCOMP_RET_KILL_PROCESS),
						 ELSE(SECCOMP_RET_ALLOW)};
static const struct sock_filter no_perf[] = {NUMBER, IF(SYS_perf_event_open, SECCOMP_RET_KILL_PROCESS),
					     ELSE(SECCOMP_RET_ALLOW)};
static const struct sock_filter no_return[] = {NUMBER, IF(SYS_rt_sigreturn, SECCOMP_RET_KILL_PROCESS),
					       ELSE(SECCOMP_RET_ALLOW)};
static const struct sock_filter invalid[] = {NUMBER, IF(SYS_perf_event_open, SECCOMP_RET_KILL_PROCESS)};
static const struct sock_filter refuse_ours[] = {NUMBER, IF(SYS_perf_event_open, SECCOMP_RET_ERRNO | 1),
						 IF(SYS_timer_create, SECCOMP_RET_ERRNO | 1), ELSE(SECCOMP_RET_ALLOW)};

static void *in_thread(void *arg)
{
	return (void *)(uintptr_t)confined_work((uintptr_t)arg);
}

static int enter(const struct sock_filter *filter, size_t nr, bool by_prctl)
{
	guest_burn(30);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || install(filter, nr, by_prctl)) {
		perror("seccomp");
		return 1;
	}
	guest_sink = confined_work(60);
	say("still there\n");
	return 0;
}

static int strict(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	guest_burn(30);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
		return 1;
	guest_sink = confined_work(60);
	say("still there\n");
	syscall(SYS_exit, 7);
	return 2;
}

/* The end that such a program cannot have: exit_group() is not among the calls. */
static int strict_return(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	guest_burn(30);
	printf("the kernel kills");
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
		return 1;
	guest_sink = confined_work(60);
	return 0;
}

static int kill_others(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return enter(least, NR(least), true) ? 1 : 6;
}

static int refuse(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return enter(refuse_all, NR(refuse_all), false) ? 1 : 6;
}

static pid_t exec_bare(void)
{
	char *const none[] = {NULL}, *const argv[] = {"sh", "-c", "exit 5", NULL};
	pid_t pid = fork();

	if (pid == 0) {
		execve("/bin/sh", argv, none);
		_exit(127);
	}
	return pid;
}

/* A thread and a child that work. */
static void multiply(void)
{
	pthread_t thread;
	pid_t pid;

	pthread_create(&thread, NULL, in_thread, (void *)20);
	pthread_join(thread, NULL);
	pid = fork();
	if (pid == 0) {
		guest_sink = confined_work(20);
		exit(4);
	}
	guest_print_status("fork", guest_wait(pid));
}

static int live_on(int argc, char **argv)
{
	pid_t pid;

	(void)argc;
	(void)argv;
	if (enter(no_profiler, NR(no_profiler), false))
		return 1;
	multiply();
	pid = fork();
	if (pid == 0) {
		execl("/bin/sh", "sh", "-c", "exit 5", NULL);
		_exit(127);
	}
	guest_print_status("exec", guest_wait(pid));
	guest_print_status("exec without environment", guest_wait(exec_bare()));
	guest_print_status("system", system("exit 3"));
	guest_print_signals("end");
	return 8;
}

static int no_handlers(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return enter(no_return, NR(no_return), false) ? 1 : 6;
}

static int mild(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	if (enter(refuse_ours, NR(refuse_ours), false))
		return 1;
	multiply();
	return 6;
}

static __attribute__((noinline)) uint64_t work_after_exec(uint64_t ms)
{
	__asm__ volatile("nop");
	return spin(ms, ms * ROUNDS_MS);
}

/* Execs that fail: samples were held back for them, and come again. */
static int fail_to_exec(int argc, char **argv)
{
	char *const none[] = {NULL};

	(void)argc;
	if (enter(no_perf, NR(no_perf), false))
		return 1;
	execve("/nowhere/at/all", argv, none);
	printf("execve: %s\n", strerror(errno));
	syscall(SYS_execve, "/nowhere/at/all", argv, none);
	printf("by number: %s\n", strerror(errno));
	execvp("no-such-program-at-all", argv);
	printf("execvp: %s\n", strerror(errno));
	guest_sink = work_after_exec(100);
	return 6;
}

/* What the kernel does not take changes nothing. */
static int fails(int argc, char **argv)
{
	struct sock_fprog *nowhere = (struct sock_fprog *)16;
	pthread_t thread;

	(void)argc;
	(void)argv;
	guest_burn(30);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	for (int i = 0; i < 3; i++) {
		errno = 0;
		printf("%d", install(invalid, NR(invalid), i == 0));
		printf(" %s\n", strerror(errno));
		printf("%d", prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, nowhere));
		printf(" %s\n", strerror(errno));
	}
	guest_sink = confined_work(30);
	pthread_create(&thread, NULL, in_thread, (void *)30);
	pthread_join(thread, NULL);
	return 0;
}

/* Not seccomp, but as hard: the time stamp counter, which clocks are read from, raises SIGSEGV. */
static int no_tsc(int argc, char **argv)
{
	pthread_t thread;

	(void)argc;
	(void)argv;
	guest_burn(30);
	printf("no counter: %d\n", prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0));
	guest_sink = confined_work(40);
	pthread_create(&thread, NULL, in_thread, (void *)30);
	pthread_join(thread, NULL);
	printf("a counter: %d\n", prctl(PR_SET_TSC, PR_TSC_ENABLE, 0, 0, 0));
	return 6;
}

/* Nor this: system calls raise SIGSYS while the selector says so, as emulators use it. */
#define SET_DISPATCH 59 /* PR_SET_SYSCALL_USER_DISPATCH, which older headers lack */

static volatile unsigned char dispatched;
static volatile sig_atomic_t nr_dispatched;

static void on_dispatched(int signo)
{
	(void)signo;
	dispatched = 0;
	nr_dispatched++;
}

static int dispatch(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	signal(SIGSYS, on_dispatched);
	guest_burn(30);
	printf("dispatched: %d\n", prctl(SET_DISPATCH, 1, 0, 0, &dispatched));
	dispatched = 1;
	guest_sink = confined_work(60);
	dispatched = 0;
	printf("signals: %d\n", (int)nr_dispatched);
	return 6;
}

int main(int argc, char **argv)
{
	static const struct guest_way ways[] = {
		{"strict", strict},   {"strict_return", strict_return}, {"kill", kill_others},  {"refuse", refuse},
		{"live_on", live_on}, {"no_handlers", no_handlers},     {"mild", mild},         {"fails", fails},
		{"no_tsc", no_tsc},   {"fail_to_exec", fail_to_exec},   {"dispatch", dispatch}, {NULL, NULL}};

	return guest_main(ways, argc, argv);
}
