/*
 * Persistent events: starting the keeper. It is the countersink program itself (`persist keep`), since what a process
 * would be without an exec is a copy of the calling program. It becomes init's child: in between is a child that ends
 * at once and was made without a signal to send then, so that neither SIGCHLD nor a wait(2) for any sees it. Between
 * clone and exec nothing of libc is called that has state: other threads may have been anywhere.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "include/internal/cleanup.h"
#include "include/internal/rawcall.h"
#include "preload/api/persist/persist_wire.h"
#include "preload/core/preload_entry.h"
#include "preload/core/program_file.h"

extern char **environ;

#define PROGRAM "countersink"
#define PATIENCE_S 10

/* This program, the one beside our library, or else the one that a shell would find. */
static bool find_program(char path[PATH_MAX])
{
	char *slash, *end;
	ssize_t len = readlink("/proc/self/exe", path, PATH_MAX - 1);
	Dl_info info;

	path[len > 0 ? len : 0] = '\0';
	slash = strrchr(path, '/');
	if (slash && !strcmp(slash + 1, PROGRAM))
		return true;
	if (dladdr((void *)csink_persist_start, &info) && strstr(info.dli_fname, ".so") &&
	    realpath(info.dli_fname, path)) {
		*strrchr(path, '/') = '\0';
		end = csink_libdir_end(path);
		if (end || (end = strrchr(path, '/')))
			*end = '\0';
		if (strlen(path) + sizeof("/bin/" PROGRAM) <= PATH_MAX) {
			strcat(path, "/bin/" PROGRAM);
			if (!access(path, X_OK))
				return true;
		}
	}
	return csink_program_in_path(PROGRAM, path, PATH_MAX);
}

struct keeper_exec {
	const char *program;
	char *const *argv, *const *env;
	int socket;
};

static __attribute__((noreturn)) void exec_keeper(const struct keeper_exec *keeper)
{
	uint64_t none = 0;
	int null = (int)csink_rawcall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR, 0);

	csink_rawcall(SYS_setsid);
	csink_rawcall(SYS_chdir, "/");
	/* The keeper's fd 0 is the connection to us; duplicates are open after exec, but not one onto itself. */
	if (keeper->socket)
		csink_rawcall(SYS_dup3, keeper->socket, 0, 0);
	else
		csink_rawcall(SYS_fcntl, 0, F_SETFD, 0);
	csink_rawcall(SYS_dup3, null, 1, 0);
	csink_rawcall(SYS_dup3, null, 2, 0);
	csink_rawcall(__NR_close_range, 3U, ~0U, 0);
	csink_rawcall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, sizeof(none));
	csink_rawcall(SYS_execve, keeper->program, keeper->argv, keeper->env);
	csink_raw_exit(127);
}

/* Returns 0 or -errno. The keeper confirms its start on the socket. */
static int start_keeper(const struct keeper_exec *keeper)
{
	uint64_t all = ~0ULL, old;
	long pid;

	csink_rawcall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &old, sizeof(old));
	pid = csink_rawcall(SYS_clone, 0UL, 0, NULL, NULL, 0);
	if (!pid) {
		if (!csink_rawcall(SYS_clone, 0UL, 0, NULL, NULL, 0))
			exec_keeper(keeper);
		csink_raw_exit(0);
	}
	csink_rawcall(SYS_rt_sigprocmask, SIG_SETMASK, &old, NULL, sizeof(old));
	while (pid > 0 && csink_rawcall(SYS_wait4, (pid_t)pid, NULL, __WALL, NULL) == -EINTR)
		;
	return pid < 0 ? (int)pid : 0;
}

/* Returns the socket or -errno. */
static int start(int directory_fd)
{
	struct timeval patience = {PATIENCE_S, 0};
	char program[PATH_MAX], directory[PATH_MAX], name[] = PROGRAM, persist[] = "persist", keep[] = "keep";
	char *argv[] = {name, persist, keep, directory, NULL}, *env[] = {NULL};
	struct keeper_exec keeper = {program, argv, env, -1};
	struct csink_persist_reply hello;
	int pair[2], err;

	if (getauxval(AT_SECURE))
		return -EPERM;
	if (!find_program(program))
		return -ENOEXEC;
	if (!csink_program_fd_path(directory_fd, directory, sizeof(directory)))
		return -EBADF;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(pair[0], SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	keeper.socket = pair[1];
	err = start_keeper(&keeper);
	close(pair[1]);
	if (!err)
		err = csink_persist_receive(pair[0], &hello, sizeof(hello), NULL);
	if (!err)
		err = hello.err;
	if (!err)
		return pair[0];
	close(pair[0]);
	return err == -EPIPE ? -ENOEXEC : err; /* it ended without a confirmation */
}

int csink_persist_start(int directory_fd)
{
	CSINK_AUTO_CLOSE int lock =
		openat(directory_fd, CSINK_PERSIST_START, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	int fd;

	if (lock < 0)
		return -errno;
	/* Held by a process that starts one, for a moment; the kernel releases it if that process dies meanwhile. */
	while (flock(lock, LOCK_EX)) {
		if (errno != EINTR)
			return -errno;
	}
	fd = csink_persist_connect(directory_fd);
	return fd == -ECONNREFUSED ? start(directory_fd) : fd;
}
