/* The programs that are told of a reservation: see hooks.h. */
#include "launcher/reserve/hooks.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "include/internal/options.h"
#include "launcher/output/format.h"
#include "preload/counters/reserve_impl.h"
#include "preload/counters/sysfs.h"

#define HOLDER_VARIABLE CSINK_ENV_PREFIX "RESERVE_PID"
#define POLL_MS 10 /* a hook may end and leave its output open in a daemon: so its end is looked for, too */

extern char **environ;

__attribute__((format(printf, 2, 3))) static void complain(struct csink_hooks *hooks, const char *fmt, ...)
{
	uint32_t at = hooks->nr_errors++;
	va_list ap;

	if (at >= CSINK_MAX_HOOK_ERRORS)
		return;
	va_start(ap, fmt);
	vsnprintf(hooks->errors[at], sizeof(hooks->errors[at]), fmt, ap);
	va_end(ap);
}

/* ---- which ---- */

static bool is_hook_name(const char *name)
{
	size_t len = strlen(name);

	if (!len || len >= CSINK_HOOK_NAME)
		return false;
	for (; *name; name++) {
		if (!isalnum((unsigned char)*name) && *name != '-' && *name != '_')
			return false;
	}
	return true;
}

/* May somebody else have put it there? Then it is not run with our rights. */
static bool is_trusted(const struct stat *st)
{
	return (!st->st_uid || st->st_uid == geteuid()) && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Fill names with what is to be run, in order. Returns how many. */
static uint32_t list(struct csink_hooks *hooks, char (*names)[CSINK_HOOK_NAME])
{
	struct csink_sysfs_dir dir;
	const char *name;
	struct stat st;
	uint32_t nr = 0;

	if (csink_sysfs_dir_open(&dir, "%.500s", hooks->folder))
		return 0;
	if (fstat(dir.fd, &st) || !is_trusted(&st)) {
		complain(hooks, "hooks in %.150s are not run: others may write that folder", hooks->folder);
		csink_sysfs_dir_close(&dir);
		return 0;
	}
	while ((name = csink_sysfs_dir_next(&dir))) {
		if (!is_hook_name(name) || fstatat(dir.fd, name, &st, 0) || !S_ISREG(st.st_mode) ||
		    !(st.st_mode & 0111))
			continue;
		if (!is_trusted(&st))
			complain(hooks, "hook %s is not run: others may write it, or own it", name);
		else if (nr == CSINK_MAX_HOOKS)
			complain(hooks, "hook %s is not run: there are more than %d", name, CSINK_MAX_HOOKS);
		else
			strcpy(names[nr++], name);
	}
	csink_sysfs_dir_close(&dir);
	qsort(names, nr, sizeof(*names), compare_names);
	return nr;
}

/* ---- running one ---- */

static __attribute__((noreturn)) void become_hook(const char *path, char *name, char *word, int out)
{
	char *argv[] = {name, word, NULL};
	sigset_t none;
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC), err;

	setpgid(0, 0);
	for (int fd = 0; fd <= 2; fd++)
		dup2(fd ? out : null, fd);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execve(path, argv, environ);
	err = errno;
	dprintf(STDERR_FILENO, "%s\n", strerror(err));
	_exit(err == ENOENT ? 127 : 126);
}

struct running {
	pid_t pid;
	int out;
	char text[256]; /* the beginning of what it printed */
	size_t used;
};

/* Take what it has printed. Returns false at the end. */
static bool take_output(struct running *running)
{
	char rest[512];
	size_t room = sizeof(running->text) - 1 - running->used;
	ssize_t got =
		room ? read(running->out, running->text + running->used, room) : read(running->out, rest, sizeof(rest));

	if (got > 0 && room)
		running->used += (size_t)got;
	running->text[running->used] = '\0';
	return got > 0 || (got < 0 && errno == EINTR);
}

/* Wait for its end. Returns 0 with its status, or -ETIMEDOUT, -ECANCELED: then it has been killed. */
static int await(struct running *running, uint64_t deadline_ns, int cancel_fd, int *status)
{
	struct pollfd fds[] = {{.fd = running->out, .events = POLLIN}, {.fd = cancel_fd, .events = POLLIN}};
	int err = 0;

	while (waitpid(running->pid, status, WNOHANG) != running->pid) {
		int left = csink_reserve_poll_ms(deadline_ns);

		if (fds[1].revents)
			err = -ECANCELED;
		else if (!left)
			err = -ETIMEDOUT;
		if (err) {
			kill(-running->pid, SIGKILL);
			kill(running->pid, SIGKILL); /* it may not have its own group yet */
			waitpid(running->pid, status, 0);
			return err;
		}
		/* The end of the output is nearly always the end of the hook: then there is no more to poll for. */
		poll(fds, 2, left < 0 ? POLL_MS : CSINK_MIN(left, POLL_MS));
		if (fds[0].revents && !take_output(running))
			fds[0].fd = -1;
	}
	/* What it printed last. */
	while (fds[0].fd >= 0 && poll(fds, 1, 0) > 0 && take_output(running))
		;
	return 0;
}

static void judge(struct csink_hooks *hooks, const char *name, const char *word, int status, struct running *running)
{
	char said[128] = "";
	size_t len = strcspn(running->text, "\n");

	running->text[len] = '\0';
	if (len) {
		said[0] = ':';
		said[1] = ' ';
		csink_format_text(said + 2, sizeof(said) - 2, running->text, 100);
	}
	if (WIFSIGNALED(status))
		complain(hooks, "hook %s %s was ended by signal %d%s", name, word, WTERMSIG(status), said);
	else if (WEXITSTATUS(status))
		complain(hooks, "hook %s %s failed with status %d%s", name, word, WEXITSTATUS(status), said);
}

static int run(struct csink_hooks *hooks, char *name, char *word, uint64_t deadline_ns, int cancel_fd)
{
	struct running running = {.used = 0};
	char path[PATH_MAX + CSINK_HOOK_NAME];
	int out[2], status = 0, err;

	snprintf(path, sizeof(path), "%s/%s", hooks->folder, name);
	if (pipe2(out, O_CLOEXEC)) {
		complain(hooks, "hook %s cannot be run: %s", name, strerror(errno));
		return 0;
	}
	running.pid = fork();
	if (!running.pid)
		become_hook(path, name, word, out[1]);
	close(out[1]);
	running.out = out[0];
	if (running.pid < 0) {
		complain(hooks, "hook %s cannot be run: %s", name, strerror(errno));
		err = 0;
	} else {
		err = await(&running, deadline_ns, cancel_fd, &status);
		if (err == -ETIMEDOUT)
			complain(hooks, "hook %s %s did not end in time, and was killed", name, word);
		else if (!err)
			judge(hooks, name, word, status, &running);
	}
	close(out[0]);
	return err == -ECANCELED ? err : 0;
}

int csink_hooks_reserve(struct csink_hooks *hooks, const char *folder, uint64_t timeout_ns, int cancel_fd)
{
	static char word[] = "reserve";
	char names[CSINK_MAX_HOOKS][CSINK_HOOK_NAME], pid[16];
	uint64_t now = csink_monotonic_ns(), deadline_ns;
	uint32_t nr;
	int err = 0;

	hooks->nr = hooks->nr_errors = 0;
	snprintf(hooks->folder, sizeof(hooks->folder), "%s", folder);
	/* A hook may use countersink itself: then it is its own daemon's business, and no reason to start over. */
	if (getenv(HOLDER_VARIABLE))
		return 0;
	nr = list(hooks, names);
	if (!nr)
		return (int)hooks->nr_errors;
	deadline_ns = timeout_ns > CSINK_NEVER_NS - now ? CSINK_NEVER_NS : now + timeout_ns;
	snprintf(pid, sizeof(pid), "%d", getpid());
	setenv(HOLDER_VARIABLE, pid, 1);
	for (uint32_t i = 0; i < nr && !err; i++) {
		strcpy(hooks->names[hooks->nr++], names[i]);
		err = run(hooks, names[i], word, deadline_ns, cancel_fd);
	}
	unsetenv(HOLDER_VARIABLE);
	return err ? err : (int)hooks->nr_errors;
}

int csink_hooks_release(struct csink_hooks *hooks, uint64_t timeout_ns)
{
	static char word[] = "release";
	uint64_t now = csink_monotonic_ns();
	uint64_t deadline_ns = timeout_ns > CSINK_NEVER_NS - now ? CSINK_NEVER_NS : now + timeout_ns;
	char pid[16];

	hooks->nr_errors = 0;
	if (!hooks->nr)
		return 0;
	snprintf(pid, sizeof(pid), "%d", getpid());
	setenv(HOLDER_VARIABLE, pid, 1);
	while (hooks->nr) {
		hooks->nr--;
		run(hooks, hooks->names[hooks->nr], word, deadline_ns, -1);
	}
	unsetenv(HOLDER_VARIABLE);
	return (int)hooks->nr_errors;
}
