/* The programs that are run for each reservation: see hooks.h. */
#include "launcher/session/hooks.h"

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

#include "include/internal/cleanup.h"
#include "include/internal/shared_options.h"
#include "launcher/base/format.h"
#include "launcher/base/move.h"
#include "preload/api/reserve/reserve_impl.h"
#include "preload/core/sysfs.h"

#define HOLDER_VARIABLE CSINK_ENV_PREFIX "RESERVE_PID"
#define MAX_LINKS 40
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

/* Can another user have put it there? Then it is not run with this user's permissions. */
static bool is_trusted(const struct stat *st)
{
	return (!st->st_uid || st->st_uid == geteuid()) && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

/* In a sticky directory the others can change only what is theirs. */
static bool is_trusted_directory(const struct stat *st)
{
	return (!st->st_uid || st->st_uid == geteuid()) &&
	       (!(st->st_mode & (S_IWGRP | S_IWOTH)) || st->st_mode & S_ISVTX);
}

/* A path that is followed from the root: the part that is done and the part that is left. On the heap: stacks may be
 * small. */
struct chain {
	char done[PATH_MAX], rest[PATH_MAX];
	char name[2 * PATH_MAX], target[PATH_MAX]; /* of the component at hand */
	uint32_t nr_links;
};

static int follow_link(struct chain *chain)
{
	size_t rest = strlen(chain->rest);
	ssize_t len = readlink(chain->name, chain->target, sizeof(chain->target));

	if (len < 0)
		return -errno;
	if ((size_t)len + rest >= sizeof(chain->rest) || chain->nr_links++ == MAX_LINKS)
		return -ELOOP;
	csink_move(chain->rest + len, chain->rest, rest + 1);
	memcpy(chain->rest, chain->target, (size_t)len);
	if (*chain->target == '/')
		*chain->done = '\0';
	return 0;
}

/* Go one component further. */
static int take_component(struct chain *chain)
{
	const char *start = chain->rest + strspn(chain->rest, "/");
	int len = (int)strcspn(start, "/");
	struct stat st;
	size_t bytes;
	char *slash;

	snprintf(chain->name, sizeof(chain->name), "%s/%.*s", chain->done, len, start);
	csink_move(chain->rest, start + len, strlen(start + len) + 1);
	slash = strrchr(chain->name, '/');
	if (!strcmp(slash, "/."))
		return 0;
	if (!strcmp(slash, "/..")) {
		slash = strrchr(chain->done, '/');
		if (slash)
			*slash = '\0';
		return 0;
	}
	if (lstat(chain->name, &st))
		return -errno;
	if (S_ISLNK(st.st_mode))
		return follow_link(chain);
	bytes = strlen(chain->name) + 1;
	if (bytes > sizeof(chain->done))
		return -ENAMETOOLONG;
	memcpy(chain->done, chain->name, bytes);
	return 0;
}

static int check_chain(struct chain *chain, const char *path, char *where, size_t size)
{
	struct stat st;
	size_t len = 0;
	int err = 0;

	if (*path != '/' && getcwd(chain->rest, sizeof(chain->rest)))
		len = strlen(chain->rest);
	if (len + strlen(path) + 2 > sizeof(chain->rest))
		return -ENAMETOOLONG;
	snprintf(chain->rest + len, sizeof(chain->rest) - len, "/%s", path);
	while (!err && chain->rest[strspn(chain->rest, "/")]) {
		const char *dir = *chain->done ? chain->done : "/";

		if (stat(dir, &st))
			return -errno;
		if (!is_trusted_directory(&st)) {
			snprintf(where, size, "%.120s", dir);
			return -EPERM;
		}
		err = take_component(chain);
	}
	return err;
}

/*
 * Can only this user and root change where a path leads? Then no other user can change it between the check and the
 * execution. Every directory on the way is looked at, those of links, too.
 * @where  on -EPERM: the directory that others may write, cut where it does not fit.
 * Returns 0, -EPERM, -ENOMEM or -errno.
 */
static int check_path(const char *path, char *where, size_t size)
{
	CSINK_AUTO_FREE struct chain *chain = calloc(1, sizeof(*chain));
	int err = chain ? check_chain(chain, path, where, size) : -ENOMEM;

	if (err != -EPERM)
		snprintf(where, size, "a directory on the way");
	return err;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Fill names with what is to be run, in order. Returns how many. */
static uint32_t list(struct csink_hooks *hooks, char (*names)[CSINK_HOOK_NAME])
{
	char path[PATH_MAX + CSINK_HOOK_NAME], where[128];
	const char *name;
	struct stat st;
	uint32_t nr = 0;
	/* Check the path first: a file that is then opened by it is the one that was checked. */
	int err = check_path(hooks->directory, where, sizeof(where));
	CSINK_SYSFS_DIR(dir, "%.500s", hooks->directory);

	if (dir.fd < 0)
		return 0;
	if (err) {
		complain(hooks, "hooks in %.120s are not run: other users can write %.120s, or own it",
			 hooks->directory, where);
		return 0;
	}
	if (fstat(dir.fd, &st) || !is_trusted(&st)) {
		complain(hooks, "hooks in %.150s are not run: other users can write that directory", hooks->directory);
		return 0;
	}
	while ((name = csink_sysfs_dir_next(&dir))) {
		if (!is_hook_name(name) || fstatat(dir.fd, name, &st, 0) || !S_ISREG(st.st_mode) ||
		    !(st.st_mode & 0111))
			continue;
		if (!is_trusted(&st))
			complain(hooks, "hook %s is not run: other users can write it, or own it", name);
		else if (snprintf(path, sizeof(path), "%s/%s", hooks->directory, name) < 0 ||
			 check_path(path, where, sizeof(where)))
			complain(hooks, "hook %s is not run: other users can write %.120s, or own it", name, where);
		else if (nr == CSINK_MAX_HOOKS)
			complain(hooks, "hook %s is not run: there are more than %d", name, CSINK_MAX_HOOKS);
		else
			strcpy(names[nr++], name);
	}
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
	signal(SIGXFSZ, SIG_DFL);
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
	char output[128] = "";
	size_t len = strcspn(running->text, "\n");

	running->text[len] = '\0';
	if (len) {
		output[0] = ':';
		output[1] = ' ';
		csink_format_text(output + 2, sizeof(output) - 2, running->text, 100);
	}
	if (WIFSIGNALED(status))
		complain(hooks, "hook %s %s was ended by signal %d%s", name, word, WTERMSIG(status), output);
	else if (WEXITSTATUS(status))
		complain(hooks, "hook %s %s failed with status %d%s", name, word, WEXITSTATUS(status), output);
}

static int run(struct csink_hooks *hooks, char *name, char *word, uint64_t deadline_ns, int cancel_fd)
{
	struct running running = {.used = 0};
	char path[PATH_MAX + CSINK_HOOK_NAME];
	int out[2], status = 0, err;

	snprintf(path, sizeof(path), "%s/%s", hooks->directory, name);
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

int csink_hooks_reserve(struct csink_hooks *hooks, const char *directory, uint64_t timeout_ns, int cancel_fd)
{
	static char word[] = "reserve";
	char names[CSINK_MAX_HOOKS][CSINK_HOOK_NAME], pid[16];
	uint64_t now = csink_monotonic_ns(), deadline_ns;
	uint32_t nr;
	int err = 0;

	hooks->nr = hooks->nr_errors = 0;
	snprintf(hooks->directory, sizeof(hooks->directory), "%s", directory);
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
