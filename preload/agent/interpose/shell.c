/*
 * system(3) and popen(3) start their shell from within libc, with `environ` as it is, and with the signals as the
 * kernel has them. If the program has cleared its environment (a service manager, a daemon), the children would not be
 * profiled. If it ignores or blocks one of our signals, that signal would be neither ignored nor blocked in the
 * children. In these cases the agent starts the shell itself; else libc does it.
 *
 * Neither call is async-signal-safe: malloc(3) may be called here, and the interposed calls, as libc would
 * (CSINK_ALLOW).
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/rawcall.h"
#include "preload/agent/interpose/exec.h"
#include "preload/agent/lifecycle/arm_thread.h"
#include "preload/agent/lifecycle/config.h"
#include "preload/agent/lifecycle/hidden_signals.h"
#include "preload/agent/lifecycle/real.h"
#include "preload/agent/sampler/process.h"
#include "preload/core/calls_off.h"

static bool may_help(void)
{
	return atomic_load(&csink_process.active) && !csink_calls_are_off(CSINK_CALLS_LIFE);
}

/* The environment with ours in it, and with what is @ignored, if anything is; in *room, which is malloc'ed. `environ`
 * where that will do. */
static char *const *completed(uint64_t ignored, void **room)
{
	size_t bytes = csink_env_room(__environ); /* of the first array; the second one is longer by an entry */
	char *const *env = __environ;

	*room = NULL;
	if (csink_env_is_complete(env) && !ignored)
		return env;
	*room = CSINK_ALLOW(malloc)(2 * bytes + CSINK_IGNORED_BYTES);
	if (!*room)
		return env;
	env = csink_env_for_exec(env, true, *room, bytes);
	if (ignored)
		env = csink_exec_with_ignored(env, ignored, (char **)((char *)*room + bytes),
					      (char *)*room + 2 * bytes);
	return env;
}

/* ---- system -------------------------------------------------------------------------------------------------------
 */

/* INT and QUIT are ignored as long as any shell runs: see system(3). */
static pthread_mutex_t shells_lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t nr_shells;
static struct sigaction before_int, before_quit;

static void shell_starts(sigset_t *defaults)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};

	pthread_mutex_lock(&shells_lock);
	if (nr_shells++ == 0) {
		CSINK_ALLOW(sigaction)(SIGINT, &ignore, &before_int);
		CSINK_ALLOW(sigaction)(SIGQUIT, &ignore, &before_quit);
	}
	if (before_int.sa_handler != SIG_IGN)
		*csink_set_word(defaults) |= CSINK_SIGNAL_BIT(SIGINT);
	if (before_quit.sa_handler != SIG_IGN)
		*csink_set_word(defaults) |= CSINK_SIGNAL_BIT(SIGQUIT);
	pthread_mutex_unlock(&shells_lock);
}

static void shell_ended(void)
{
	pthread_mutex_lock(&shells_lock);
	if (--nr_shells == 0) {
		CSINK_ALLOW(sigaction)(SIGINT, &before_int, NULL);
		CSINK_ALLOW(sigaction)(SIGQUIT, &before_quit, NULL);
	}
	pthread_mutex_unlock(&shells_lock);
}

static void cancelled(void *arg)
{
	pid_t pid = *(pid_t *)arg;

	csink_rawcall(SYS_kill, pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	shell_ended();
}

static int wait_for(pid_t pid)
{
	int status = -1;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return status;
}

static int wait_for_cancellable(pid_t pid)
{
	int status;

	if (!CSINK_HAS_LIBPTHREAD)
		return wait_for(pid);
	pthread_cleanup_push(cancelled, &pid);
	status = wait_for(pid);
	pthread_cleanup_pop(0);
	return status;
}

static int run_shell(const char *command, char *const *env)
{
	char *const argv[] = {"sh", "-c", (char *)command, NULL};
	sigset_t child = {0}, before, defaults = {0};
	posix_spawnattr_t attr;
	int status = -1, err;
	pid_t pid;

	*csink_set_word(&child) = CSINK_SIGNAL_BIT(SIGCHLD);
	shell_starts(&defaults);
	CSINK_ALLOW(pthread_sigmask)(SIG_BLOCK, &child, &before);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, &before);
	posix_spawnattr_setsigdefault(&attr, &defaults);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
	err = CSINK_ALLOW(posix_spawn)(&pid, "/bin/sh", NULL, &attr, argv, env);
	posix_spawnattr_destroy(&attr);
	if (!err)
		status = wait_for_cancellable(pid);
	else
		status = W_EXITCODE(127, 0);
	shell_ended();
	CSINK_ALLOW(pthread_sigmask)(SIG_SETMASK, &before, NULL);
	if (err)
		errno = err;
	return status;
}

CSINK_EXPORT int system(const char *command)
{
	bool help = command && may_help();
	/* posix_spawn, which is our own, sees to them. */
	bool by_signals = help && (csink_signals_ignored() || csink_masks_own_blocked());
	int status, saved;
	char *const *env;
	void *room;

	if (help && csink_config.shell_is_outside)
		csink_arm_for_children();
	if (!by_signals && (!help || csink_env_is_complete(__environ)))
		return REAL(system)(command);
	env = completed(0, &room);
	status = run_shell(command, env);
	saved = errno;
	CSINK_ALLOW(free)(room);
	errno = saved;
	return status;
}

/* ---- popen --------------------------------------------------------------------------------------------------------
 */

/*
 * Its stream is libc's own, so libc must make it, with `environ` completed and signals blocked for the moment. The copy
 * stays where a thread that called setenv() meanwhile has taken over its entries.
 */
static FILE *open_with(const char *command, const char *mode, uint64_t ignored, uint64_t blocked)
{
	char **was = __environ;
	void *room;
	char *const *env = completed(ignored, &room);
	FILE *stream;
	int saved;

	__environ = (char **)env;
	if (blocked)
		csink_raw_mask(SIG_BLOCK, blocked, NULL);
	stream = REAL(popen)(command, mode);
	saved = errno;
	if (blocked)
		csink_raw_mask(SIG_UNBLOCK, blocked, NULL);
	if (__environ == (char **)env) {
		__environ = was;
		CSINK_ALLOW(free)(room);
	}
	errno = saved;
	return stream;
}

CSINK_EXPORT FILE *popen(const char *command, const char *mode)
{
	uint64_t ignored, blocked;

	if (!may_help())
		return REAL(popen)(command, mode);
	if (csink_config.shell_is_outside)
		csink_arm_for_children();
	ignored = csink_signals_ignored();
	blocked = csink_masks_own_blocked();
	if (!ignored && !blocked && csink_env_is_complete(__environ))
		return REAL(popen)(command, mode);
	return open_with(command, mode, ignored, blocked);
}
