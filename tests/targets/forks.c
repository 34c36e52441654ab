/*
 * Every usual way to start a process; each child burns CPU in a function named after its way and leaves with a status
 * of its own, which the parent prints.
 *   forks [MS a child]       all ways, one after the other (60)
 *   forks work WAY MS        what the exec'ed children run
 */
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "work.h"

extern char **environ;

static const char *self;
static char ms_text[24];

#define WAYS(X) X(fork, 11) X(exec, 12) X(spawn, 13) X(vfork, 14) X(system, 15) X(popen, 16) X(daemon, 17)

#define X(way, status)                                                                                                 \
	static __attribute__((noinline, noclone)) uint64_t work_##way(uint64_t ms)                                     \
	{                                                                                                              \
		return spin(status, ms * ROUNDS_MS);                                                                   \
	}
WAYS(X)
#undef X

/* Burns in the way's function and gives the status that the child leaves with. */
static int work(const char *way, uint64_t ms)
{
	volatile uint64_t sink;

#define X(name, status)                                                                                                \
	if (!strcmp(way, #name)) {                                                                                     \
		sink = work_##name(ms);                                                                                \
		(void)sink;                                                                                            \
		return status;                                                                                         \
	}
	WAYS(X)
#undef X
	return 1;
}

static void say(const char *way, int status)
{
	printf("%s: %s %d\n", way, WIFEXITED(status) ? "exited" : "killed by",
	       WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
	fflush(stdout);
}

static int wait_for(pid_t pid)
{
	int status = -1;

	waitpid(pid, &status, 0);
	return status;
}

static void by_fork(uint64_t ms)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(work("fork", ms));
	say("fork", wait_for(pid));
}

static void by_exec(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		execl(self, self, "work", "exec", ms_text, NULL);
		_exit(127);
	}
	say("exec", wait_for(pid));
}

static void by_spawn(void)
{
	char *argv[] = {(char *)self, "work", "spawn", ms_text, NULL};
	pid_t pid = -1;

	if (posix_spawn(&pid, self, NULL, NULL, argv, environ))
		puts("spawn: failed");
	say("spawn", wait_for(pid));
}

static void by_vfork(void)
{
	pid_t pid = vfork();

	if (pid == 0) {
		execl(self, self, "work", "vfork", ms_text, NULL);
		_exit(127);
	}
	say("vfork", wait_for(pid));
}

static void by_system(void)
{
	char command[4200];

	snprintf(command, sizeof(command), "'%s' work system %s", self, ms_text);
	say("system", system(command));
}

static void by_popen(void)
{
	char command[4200], line[64] = "";
	FILE *pipe;

	snprintf(command, sizeof(command), "'%s' work popen %s; status=$?; echo said $status; exit $status", self,
		 ms_text);
	pipe = popen(command, "r");
	if (!pipe || !fgets(line, sizeof(line), pipe))
		puts("popen: failed");
	fputs(line, stdout);
	say("popen", pclose(pipe));
}

/* As a daemon leaves its parent: two forks, a session of its own. The end of the pipe's data shows that it is gone. */
static void by_daemon(uint64_t ms)
{
	int fds[2];
	char status = 0;
	pid_t pid;

	if (pipe(fds))
		return;
	pid = fork();
	if (pid == 0) {
		setsid();
		if (fork())
			_exit(0);
		if (chdir("/"))
			_exit(1);
		status = (char)work("daemon", ms);
		_exit(write(fds[1], &status, 1) != 1);
	}
	close(fds[1]);
	say("daemon's parent", wait_for(pid));
	while (read(fds[0], &pid, 1) == 1)
		status = *(char *)&pid;
	printf("daemon: said %d\n", status);
}

int main(int argc, char **argv)
{
	static char path[4096];
	uint64_t ms;

	if (argc == 4 && !strcmp(argv[1], "work"))
		return work(argv[2], strtoull(argv[3], NULL, 10));
	if (readlink("/proc/self/exe", path, sizeof(path) - 1) < 0)
		return 1;
	self = path;
	ms = arg_num(argc, argv, 1, 60);
	snprintf(ms_text, sizeof(ms_text), "%llu", (unsigned long long)ms);
	by_fork(ms);
	by_exec();
	by_spawn();
	by_vfork();
	by_system();
	by_popen();
	by_daemon(ms);
	return 0;
}
