/*
 * system(3) and popen(3) start their shell from within libc, with `environ` as it is. A program that has cleared it (a
 * service manager, a daemon that trusts nobody) would lose its children there, so then they are started in another way.
 * Where our variables are in place, libc does it.
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
#include "preload/inject/config.h"
#include "preload/inject/real.h"
#include "preload/sample/calls_off.h"
#include "preload/sample/process.h"

/* The environment with ours in it, malloc'ed; NULL where `environ` will do. */
static char *const *completed(void)
{
	char *const *env = environ;
	size_t bytes;
	void *room;

	if (!atomic_load(&csink_process.active) || csink_calls_are_off(CSINK_CALLS_LIFE) || csink_env_is_complete(env))
		return NULL;
	bytes = csink_env_room(env);
	room = malloc(bytes);
	if (!room)
		return NULL;
	env = csink_env_for_exec(environ, true, room, bytes);
	if (env == (char *const *)environ) {
		free(room);
		return NULL;
	}
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
		sigaction(SIGINT, &ignore, &before_int);
		sigaction(SIGQUIT, &ignore, &before_quit);
	}
	sigemptyset(defaults);
	if (before_int.sa_handler != SIG_IGN)
		sigaddset(defaults, SIGINT);
	if (before_quit.sa_handler != SIG_IGN)
		sigaddset(defaults, SIGQUIT);
	pthread_mutex_unlock(&shells_lock);
}

static void shell_ended(void)
{
	pthread_mutex_lock(&shells_lock);
	if (--nr_shells == 0) {
		sigaction(SIGINT, &before_int, NULL);
		sigaction(SIGQUIT, &before_quit, NULL);
	}
	pthread_mutex_unlock(&shells_lock);
}

static void cancelled(void *arg)
{
	pid_t pid = *(pid_t *)arg;

	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	shell_ended();
}

static int wait_for(pid_t pid)
{
	int status = -1;

	pthread_cleanup_push(cancelled, &pid);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR) {
			status = -1;
			break;
		}
	pthread_cleanup_pop(0);
	return status;
}

static int run_shell(const char *command, char *const *env)
{
	char *const argv[] = {"sh", "-c", (char *)command, NULL};
	sigset_t child, before, defaults;
	posix_spawnattr_t attr;
	int status = -1, err;
	pid_t pid;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	shell_starts(&defaults);
	pthread_sigmask(SIG_BLOCK, &child, &before);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, &before);
	posix_spawnattr_setsigdefault(&attr, &defaults);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
	err = posix_spawn(&pid, "/bin/sh", NULL, &attr, argv, env);
	posix_spawnattr_destroy(&attr);
	if (!err)
		status = wait_for(pid);
	else
		status = W_EXITCODE(127, 0);
	shell_ended();
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err)
		errno = err;
	return status;
}

CSINK_EXPORT int system(const char *command)
{
	char *const *env = command ? completed() : NULL;
	int status, saved;

	if (!env)
		return REAL(system)(command);
	status = run_shell(command, env);
	saved = errno;
	free((void *)env);
	errno = saved;
	return status;
}

/* ---- popen --------------------------------------------------------------------------------------------------------
 */

/*
 * Its stream is libc's own, so libc must make it, with `environ` completed for the moment. The copy stays: a thread
 * that called setenv() meanwhile has taken over its entries.
 */
CSINK_EXPORT FILE *popen(const char *command, const char *mode)
{
	char **was = environ;
	char *const *env = completed();
	FILE *stream;
	int saved;

	if (!env)
		return REAL(popen)(command, mode);
	environ = (char **)env;
	stream = REAL(popen)(command, mode);
	saved = errno;
	if (environ == (char **)env) {
		environ = was;
		free((void *)env);
	}
	errno = saved;
	return stream;
}
