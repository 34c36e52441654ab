/*
 * Every way to start another program. Two things are done on the way: our variables are put into an environment that
 * lacks them, or taken out of it where the program cannot be preloaded into; and a process that is about to replace
 * itself stops its counters first: an overflow that is pending at exec would kill the new image, which has no handler.
 */
#include "preload/agent/interpose/exec.h"

#include <alloca.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/rawcall.h"
#include "include/internal/shared_options.h"
#include "preload/agent/lifecycle/arm_thread.h"
#include "preload/agent/lifecycle/config.h"
#include "preload/agent/lifecycle/hidden_signals.h"
#include "preload/agent/lifecycle/image.h"
#include "preload/agent/lifecycle/real.h"
#include "preload/agent/lifecycle/started.h"
#include "preload/agent/sampler/process.h"
#include "preload/agent/sampler/thread.h"
#include "preload/core/calls_off.h"

enum { LARGEST_ENVIRONMENT = 512 * 1024 };

/*
 * The environment that suits the program, on the caller's stack: a vfork child must not touch the parent's heap. An
 * empty or huge one stays as it is.
 */
#define ENV_FOR(started, envp)                                                                                         \
	({                                                                                                             \
		size_t room_bytes = csink_env_is_known() ? csink_env_room(envp) : 0;                                   \
		bool preload_us = csink_program_supports_preload(csink_program_reason((started)->kind)) &&             \
				  (started)->reason != CSINK_SPAWN_NO_REACH && !csink_calls_are_off(CSINK_CALLS_LIFE); \
		room_bytes &&room_bytes < LARGEST_ENVIRONMENT                                                          \
			? csink_env_for_exec(envp, preload_us, alloca(room_bytes), room_bytes)                         \
			: (envp);                                                                                      \
	})

/* What an exec that fails must take back. */
struct prepared {
	enum {
		NOTHING, /* in a vfork child, too, which shares its parent's memory */
		PAUSED,  /* the calling thread's samples alone: no other call may be made */
		FLUSHED
	} what;
	uint64_t armed; /* csink_arm_for_exec()'s */
};

/* The image is about to be replaced by @started. */
static struct prepared prepare(struct csink_started *started)
{
	struct prepared prepared = {NOTHING, 0};
	bool in_vfork_child;

	if (!atomic_load(&csink_process.active))
		return prepared;
	if (csink_calls_are_off(CSINK_CALLS_LIFE)) {
		if (csink_calls_are_off(CSINK_CALLS_PAUSE) || !csink_self)
			return prepared;
		csink_thread_pause(csink_self); /* a pending sample would kill the new program */
		prepared.what = PAUSED;
		return prepared;
	}
	in_vfork_child = csink_in_vfork_child();
	if (in_vfork_child)
		csink_signals_before_exec(); /* touches the child's own dispositions and mask alone */
	else
		csink_image_before_exec();
	csink_started_record(started, (pid_t)csink_rawcall(SYS_getpid));
	prepared.armed = csink_arm_for_exec(started);
	prepared.what = in_vfork_child ? NOTHING : FLUSHED;
	return prepared;
}

static int failed(struct csink_started *started, struct prepared prepared, int result)
{
	CSINK_KEEP_ERRNO;

	csink_started_withdraw(started);
	csink_arm_withdraw(prepared.armed);
	if (prepared.what == PAUSED)
		csink_thread_resume(csink_self);
	else if (prepared.what == FLUSHED)
		csink_image_exec_failed();
	return result;
}

/*
 * What each exec does, in this order: @look fills in `started`; `env` is made of @envp; @call is libc's or the
 * kernel's, and if it returns, what was prepared is taken back.
 */
#define EXEC(look, envp, call)                                                                                         \
	({                                                                                                             \
		struct csink_started started;                                                                          \
		struct prepared prepared;                                                                              \
		char *const *env;                                                                                      \
		look;                                                                                                  \
		env = ENV_FOR(&started, envp);                                                                         \
		prepared = prepare(&started);                                                                          \
		failed(&started, prepared, call);                                                                      \
	})

CSINK_EXPORT int execve(const char *path, char *const argv[], char *const envp[])
{
	return EXEC(csink_started_look(&started, AT_FDCWD, path), envp, REAL(execve)(path, argv, env));
}

CSINK_EXPORT int execvpe(const char *file, char *const argv[], char *const envp[])
{
	return EXEC(csink_started_search(&started, file), envp, REAL(execvpe)(file, argv, env));
}

CSINK_EXPORT int fexecve(int fd, char *const argv[], char *const envp[])
{
	return EXEC(csink_started_look_fd(&started, fd), envp, REAL(fexecve)(fd, argv, env));
}

static void look_at(struct csink_started *started, int dirfd, const char *path, int flags)
{
	if (flags & AT_EMPTY_PATH && path && !*path)
		csink_started_look_fd(started, dirfd);
	else
		csink_started_look(started, dirfd, path);
}

CSINK_EXPORT int execveat(int fd, const char *path, char *const argv[], char *const envp[], int flags)
{
	return EXEC(look_at(&started, fd, path, flags), envp, REAL(execveat)(fd, path, argv, env, flags));
}

long csink_exec_by_number(long number, long a, long b, long c, long d, long e)
{
	if (number == SYS_execveat)
		return EXEC(look_at(&started, (int)a, (const char *)b, (int)e), (char *const *)d,
			    (int)csink_raw_to_libc(csink_rawcall(number, a, b, c, env, e)));
	return EXEC(csink_started_look(&started, AT_FDCWD, (const char *)a), (char *const *)c,
		    (int)csink_raw_to_libc(csink_rawcall(number, a, b, env)));
}

/* execv(3) and its variants end in the calls above, by their names: another preloaded library may interpose those, too.
 */
CSINK_EXPORT int execv(const char *path, char *const argv[])
{
	return CSINK_ALLOW(execve)(path, argv, __environ);
}

CSINK_EXPORT int execvp(const char *file, char *const argv[])
{
	return CSINK_ALLOW(execvpe)(file, argv, __environ);
}

/* execl and its variants: the arguments as an array on the stack, ended by the null pointer that ends the list. Behind
 * that is execle's environment. */
static int exec_list(int (*exec)(const char *, char *const[], char *const[]), const char *file, const char *first,
		     va_list ap, bool has_env)
{
	va_list count;
	size_t n = 1;
	char **argv;

	va_copy(count, ap);
	while (va_arg(count, char *))
		n++;
	va_end(count);
	argv = alloca((n + 1) * sizeof(char *));
	argv[0] = (char *)first;
	for (size_t i = 1; i <= n; i++)
		argv[i] = va_arg(ap, char *);
	return exec(file, argv, has_env ? va_arg(ap, char **) : __environ);
}

#define EXEC_LIST(exec, file, first, has_env)                                                                          \
	({                                                                                                             \
		va_list ap;                                                                                            \
		int result;                                                                                            \
		va_start(ap, first);                                                                                   \
		result = exec_list(exec, file, first, ap, has_env);                                                    \
		va_end(ap);                                                                                            \
		result;                                                                                                \
	})

CSINK_EXPORT int execl(const char *path, const char *arg, ...)
{
	return EXEC_LIST(CSINK_ALLOW(execve), path, arg, false);
}

CSINK_EXPORT int execlp(const char *file, const char *arg, ...)
{
	return EXEC_LIST(CSINK_ALLOW(execvpe), file, arg, false);
}

CSINK_EXPORT int execle(const char *path, const char *arg, ...)
{
	return EXEC_LIST(CSINK_ALLOW(execve), path, arg, true);
}

/* Samples are dropped meanwhile: the handler uses the same writer. */
static void record_spawned(struct csink_started *started, pid_t pid)
{
	if (!started->reason || !csink_self)
		return;
	csink_thread_mute(csink_self, true);
	csink_started_record(started, pid);
	csink_thread_mute(csink_self, false);
}

/* Of our signals those that the child is to find ignored. What fork and exec do on the way cannot be done here: the
 * child is libc's own. */
static uint64_t ignored_by(const posix_spawnattr_t *attr)
{
	uint64_t ignored = atomic_load(&csink_process.active) ? csink_signals_ignored() : 0;
	short flags = 0;
	sigset_t set;

	if (CSINK_LIKELY(!ignored) || !attr)
		return ignored;
	if (posix_spawnattr_getflags(attr, &flags) == 0 && flags & POSIX_SPAWN_SETSIGDEF &&
	    posix_spawnattr_getsigdefault(attr, &set) == 0)
		ignored &= ~csink_set_bits(&set);
	return ignored;
}

static size_t count(char *const *envp)
{
	size_t nr = 0;

	while (envp && envp[nr])
		nr++;
	return nr;
}

char *const *csink_exec_with_ignored(char *const *envp, uint64_t ignored, char **room, char *text)
{
	size_t nr = count(envp);

	memcpy(room, envp, nr * sizeof(*room));
	snprintf(text, CSINK_IGNORED_BYTES, CSINK_ENV_IGNORED "=%" PRIx64, ignored);
	room[nr] = text;
	room[nr + 1] = NULL;
	return room;
}

/* Called with what the kernel must block in the child: it inherits the mask of the thread that calls. */
static int spawn(__typeof__(&posix_spawn) real, struct csink_started *started, pid_t *pid, const char *path,
		 const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attr, char *const argv[],
		 char *const envp[])
{
	uint64_t blocked = atomic_load(&csink_process.active) ? csink_masks_own_blocked() : 0;
	uint64_t ignored = ignored_by(attr);
	char *const *env = ENV_FOR(started, envp);
	char text[CSINK_IGNORED_BYTES];
	pid_t child = 0;
	int err;

	if (CSINK_UNLIKELY(ignored && !started->reason))
		env = csink_exec_with_ignored(env, ignored, alloca((count(env) + 2) * sizeof(*env)), text);
	if (csink_arm_is_for(started))
		csink_arm_for_children();
	if (blocked)
		csink_raw_mask(SIG_BLOCK, blocked, NULL);
	err = real(&child, path, actions, attr, argv, env);
	if (blocked)
		csink_raw_mask(SIG_UNBLOCK, blocked, NULL);
	if (err)
		return err;
	if (pid)
		*pid = child;
	record_spawned(started, child);
	return 0;
}

CSINK_EXPORT int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
			     const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
	struct csink_started started;

	csink_started_look(&started, AT_FDCWD, path);
	return spawn(REAL(posix_spawn), &started, pid, path, actions, attr, argv, envp);
}

CSINK_EXPORT int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
			      const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
	struct csink_started started;

	csink_started_search(&started, file);
	return spawn(REAL(posix_spawnp), &started, pid, file, actions, attr, argv, envp);
}
