/*
 * chain SECONDS [HOW COMMAND...]: use CPU for that long, three parts of it in leaf() and one in other(), append the
 * program's name and how much it was to the file $CHAIN_LOG, and start the command. HOW is exec, or a way after which
 * this process waits for its child, and ends with its status: fork, vfork, spawn, popen, system, at (execveat), thread
 * (exec from a second thread), fail (an exec that fails, the same work once more, and exec), confine (a seccomp filter
 * that kills for socket(2), then fork).
 */
#include <errno.h>
#include <fcntl.h>
#if __has_include(<linux/filter.h>) /* not for another C library */
#include <linux/filter.h>
#include <linux/seccomp.h>
#endif
#include <pthread.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static volatile unsigned long sink;

/* In registers: what a loop in memory takes depends on where processors see its address, by a factor of four. */
__attribute__((noinline)) static void leaf(long n)
{
	unsigned long s = sink;

	for (long i = 0; i < n; i++)
		s = s * 5 + (unsigned long)i;
	sink = s;
}

__attribute__((noinline)) static void other(long n)
{
	unsigned long s = sink;

	for (long i = 0; i < n; i++)
		s = s * 5 - (unsigned long)i;
	sink = s;
}

static double cpu_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/*
 * A quarter of the time, in one piece, is in other(): of rounds, samples at their own rate may see the same part again
 * and again. It begins anywhere, so that programs of some samples are not all seen at the same places.
 */
static void work(const char *name, double seconds)
{
	double from = cpu_s(), begin = getpid() % 16 / 15. * 0.75, at;
	const char *path = getenv("CHAIN_LOG");
	int fd = path ? open(path, O_WRONLY | O_APPEND) : -1;

	while ((at = (cpu_s() - from) / seconds) < 1)
		(at >= begin && at < begin + 0.25 ? other : leaf)(400000);
	if (fd < 0)
		return;
	dprintf(fd, "%s %.6f\n", name, cpu_s() - from);
	close(fd);
}

static int status_of(pid_t pid)
{
	int status = -1;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int run_line(const char *how, char **argv)
{
	char line[4096] = "exec";
	FILE *stream;
	int status;

	for (; *argv; argv++) {
		strcat(line, " ");
		strcat(line, *argv);
	}
	if (!strcmp(how, "system")) {
		status = system(line);
	} else {
		stream = popen(line, "w");
		status = pclose(stream);
	}
	return WEXITSTATUS(status);
}

static void confine(void)
{
#ifdef SECCOMP_RET_KILL_PROCESS
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(rules) / sizeof(*rules), rules};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		perror("seccomp");
#endif
}

static void *exec_in_thread(void *arg)
{
	char **argv = arg;

	execv(argv[0], argv);
	return NULL;
}

static int exec_from_thread(char **argv)
{
	pthread_t thread;

	pthread_create(&thread, NULL, exec_in_thread, argv);
	pthread_join(thread, NULL);
	return 127;
}

/* The environment is too large, so that the kernel refuses a program that is there. */
static void exec_too_large(char **argv)
{
	size_t bytes = 4 << 20;
	char *text = malloc(bytes), *env[2] = {text, NULL};

	memset(text, 'x', bytes - 1);
	text[bytes - 1] = 0;
	execve(argv[0], argv, env);
	free(text);
}

static int start(const char *how, char **argv)
{
	pid_t pid = 0;

	if (!strcmp(how, "confine"))
		confine();
	if (!strcmp(how, "exec") || !strcmp(how, "fail"))
		execv(argv[0], argv);
	else if (!strcmp(how, "at"))
		syscall(SYS_execveat, AT_FDCWD, argv[0], argv, environ, 0);
	else if (!strcmp(how, "thread"))
		return exec_from_thread(argv);
	else if (!strcmp(how, "popen") || !strcmp(how, "system"))
		return run_line(how, argv);
	else if (!strcmp(how, "spawn"))
		return posix_spawn(&pid, argv[0], NULL, NULL, argv, environ) ? 127 : status_of(pid);
	else
		pid = !strcmp(how, "vfork") ? vfork() : fork();
	if (pid)
		return status_of(pid);
	execv(argv[0], argv);
	_exit(127);
}

int main(int argc, char **argv)
{
	const char *name = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];

	if (argc < 2)
		return 2;
	work(name, atof(argv[1]));
	if (argc < 4)
		return argc == 3 ? atoi(argv[2]) : 0;
	if (!strcmp(argv[2], "fail")) {
		exec_too_large(argv + 3);
		work(name, atof(argv[1]));
	}
	return start(argv[2], argv + 3);
}
