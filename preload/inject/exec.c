/*
 * Every way to start another program. Two things are done on the way: our variables are put into an environment that
 * lacks them, and a process that is about to replace itself stops its counters first: an overflow that is pending at
 * exec would kill the new image, which has no handler.
 */
#include "preload/inject/exec.h"

#include <alloca.h>
#include <errno.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "preload/inject/config.h"
#include "preload/inject/image.h"
#include "preload/inject/real.h"
#include "preload/inject/signals.h"
#include "preload/sample/process.h"
#include "preload/sample/thread.h"

enum { LARGEST_ENVIRONMENT = 512 * 1024 };

/* The environment with ours in it, on the caller's stack: a vfork child must not touch the parent's heap. */
#define ENV_WITH_OURS(envp)                                                                                            \
	({                                                                                                             \
		size_t room_bytes = atomic_load(&csink_process.active) ? csink_env_room(envp) : 0;                     \
		room_bytes &&room_bytes < LARGEST_ENVIRONMENT                                                          \
			? csink_env_for_exec(envp, alloca(room_bytes), room_bytes)                                     \
			: (envp);                                                                                      \
	})

/* True where this process itself is going to be replaced, and not a vfork child that borrows its memory. */
bool csink_exec_prepare(void)
{
	if (!atomic_load(&csink_process.active))
		return false;
	if (csink_signals_borrowed()) {
		csink_signals_before_exec(); /* touches the child's own dispositions and mask alone */
		return false;
	}
	csink_image_before_exec();
	return true;
}

int csink_exec_failed(bool prepared, int result)
{
	int saved = errno;

	if (prepared)
		csink_image_exec_failed();
	errno = saved;
	return result;
}

CSINK_EXPORT int execve(const char *path, char *const argv[], char *const envp[])
{
	char *const *env = ENV_WITH_OURS(envp);
	bool prepared = csink_exec_prepare();

	return csink_exec_failed(prepared, REAL(execve)(path, argv, env));
}

CSINK_EXPORT int execvpe(const char *file, char *const argv[], char *const envp[])
{
	char *const *env = ENV_WITH_OURS(envp);
	bool prepared = csink_exec_prepare();

	return csink_exec_failed(prepared, REAL(execvpe)(file, argv, env));
}

CSINK_EXPORT int fexecve(int fd, char *const argv[], char *const envp[])
{
	char *const *env = ENV_WITH_OURS(envp);
	bool prepared = csink_exec_prepare();

	return csink_exec_failed(prepared, REAL(fexecve)(fd, argv, env));
}

CSINK_EXPORT int execveat(int fd, const char *path, char *const argv[], char *const envp[], int flags)
{
	char *const *env = ENV_WITH_OURS(envp);
	bool prepared = csink_exec_prepare();

	return csink_exec_failed(prepared, REAL(execveat)(fd, path, argv, env, flags));
}

CSINK_EXPORT int execv(const char *path, char *const argv[])
{
	return execve(path, argv, environ);
}

CSINK_EXPORT int execvp(const char *file, char *const argv[])
{
	return execvpe(file, argv, environ);
}

/* execl and its kin: the arguments as an array on the stack, ended by the null pointer that ends the list. */
#define LIST_TO_ARGV(argv, ap, first)                                                                                  \
	do {                                                                                                           \
		va_list count;                                                                                         \
		size_t n = 1;                                                                                          \
		va_copy(count, ap);                                                                                    \
		while (va_arg(count, char *))                                                                          \
			n++;                                                                                           \
		va_end(count);                                                                                         \
		(argv) = alloca((n + 1) * sizeof(char *));                                                             \
		(argv)[0] = (char *)(first);                                                                           \
		for (size_t i = 1; i <= n; i++)                                                                        \
			(argv)[i] = va_arg(ap, char *);                                                                \
	} while (0)

CSINK_EXPORT int execl(const char *path, const char *arg, ...)
{
	char **argv;
	va_list ap;

	va_start(ap, arg);
	LIST_TO_ARGV(argv, ap, arg);
	va_end(ap);
	return execve(path, argv, environ);
}

CSINK_EXPORT int execlp(const char *file, const char *arg, ...)
{
	char **argv;
	va_list ap;

	va_start(ap, arg);
	LIST_TO_ARGV(argv, ap, arg);
	va_end(ap);
	return execvpe(file, argv, environ);
}

CSINK_EXPORT int execle(const char *path, const char *arg, ...)
{
	char **argv, **envp;
	va_list ap;

	va_start(ap, arg);
	LIST_TO_ARGV(argv, ap, arg);
	envp = va_arg(ap, char **);
	va_end(ap);
	return execve(path, argv, envp);
}

/* Called with what the kernel must block in the child: it inherits the mask of the thread that calls. */
static int spawn(__typeof__(&posix_spawn) real, pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
		 const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
	uint64_t blocked = atomic_load(&csink_process.active) ? csink_masks_own_blocked() : 0;
	int err;

	if (blocked)
		csink_raw_mask(SIG_BLOCK, blocked, NULL);
	err = real(pid, path, actions, attr, argv, ENV_WITH_OURS(envp));
	if (blocked)
		csink_raw_mask(SIG_UNBLOCK, blocked, NULL);
	return err;
}

CSINK_EXPORT int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
			     const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
	return spawn(REAL(posix_spawn), pid, path, actions, attr, argv, envp);
}

CSINK_EXPORT int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
			      const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
	return spawn(REAL(posix_spawnp), pid, file, actions, attr, argv, envp);
}
