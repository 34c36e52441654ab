/*
 * A service that root starts, and that gives up its rights: works as root, drops them in the way that is asked for,
 * works, and ends. Usage: drops_rights HOW END [DIRECTORY]; END: exit, _exit or kill. Its status is 3, or 9 if it saw a
 * child that it did not start.
 */
#include <errno.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define USER 65534

static void spin(long ms)
{
	struct timespec now;
	clock_t until = clock() + ms * (CLOCKS_PER_SEC / 1000);

	while (clock() < until)
		clock_gettime(CLOCK_MONOTONIC, &now);
}

__attribute__((noinline)) static void before_drop(void)
{
	spin(15);
	__asm__ volatile("");
}

__attribute__((noinline)) static void after_drop(void)
{
	spin(30);
	__asm__ volatile("");
}

__attribute__((noinline)) static void worker(void)
{
	spin(20);
	__asm__ volatile("");
}

static void need(int result, const char *what)
{
	if (result) {
		perror(what);
		exit(1);
	}
}

static void drop(void)
{
	need(setgroups(0, NULL), "setgroups");
	need(setgid(USER), "setgid");
	need(setuid(USER), "setuid");
}

/* setuid() is refused: the program goes on as root. */
static void refuse_setuid(void)
{
	struct sock_filter rows[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_setuid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {sizeof(rows) / sizeof(rows[0]), rows};

	need(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter), "PR_SET_SECCOMP");
	if (!setuid(USER) || errno != EPERM)
		exit(1);
}

static void start_worker(int drops)
{
	pid_t pid = fork();

	if (pid)
		return;
	if (drops)
		drop();
	worker();
	exit(0);
}

/* A child that stays root, and lives longer than its parent: until the file "stop" is there. */
static void start_root_child(void)
{
	FILE *ready;

	if (fork())
		return;
	worker();
	ready = fopen("ready", "w");
	if (ready)
		fclose(ready);
	while (access("stop", F_OK))
		usleep(10000);
	exit(0);
}

static void await_ready(void)
{
	while (access("ready", F_OK))
		usleep(10000);
}

static void give_up(const char *how, const char *directory)
{
	if (!strcmp(how, "setuid") || !strcmp(how, "early")) {
		drop();
	} else if (!strcmp(how, "setreuid")) {
		need(setreuid(USER, USER), how);
	} else if (!strcmp(how, "setresuid")) {
		need(setresuid(USER, USER, USER), how);
	} else if (!strcmp(how, "for-a-while")) {
		need(seteuid(USER), how);
	} else if (!strcmp(how, "undumpable")) {
		drop();
		need(prctl(PR_SET_DUMPABLE, 0), how);
	} else if (!strcmp(how, "chroot")) {
		need(chroot(directory) || chdir("/"), how);
		drop();
	} else if (!strcmp(how, "refused")) {
		refuse_setuid();
	} else if (!strcmp(how, "workers")) {
		start_worker(1);
		start_worker(1);
		while (wait(NULL) > 0)
			;
	} else if (!strcmp(how, "ended-child")) {
		start_worker(0);
		wait(NULL);
		drop();
	} else if (!strcmp(how, "root-child")) {
		start_root_child();
		await_ready();
		drop();
	}
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "", *end = argc > 2 ? argv[2] : "";
	pid_t child;

	if (strcmp(how, "early"))
		before_drop();
	give_up(how, argc > 3 ? argv[3] : "/");
	after_drop();
	child = waitpid(-1, NULL, WNOHANG | __WALL);
	if (child > 0 || (child < 0 ? errno != ECHILD : strcmp(how, "root-child")))
		return 9;
	if (!strcmp(end, "kill"))
		raise(SIGKILL);
	if (!strcmp(end, "_exit"))
		_exit(3);
	return 3;
}
