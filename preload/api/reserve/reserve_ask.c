/*
 * Asking PCP's daemon, by its own program pmprobe(1).
 *
 * libpcp, loaded with dlopen, could do it in a tenth of the time, and is not for us: the first call writes three dozen
 * PCP_ variables into the environment of this process (which the command then inherits), reads are not to be bounded
 * from outside (its own timeouts are seconds, to connect and to read, and a thread that waits in it cannot be called
 * back), it complains on stderr by itself, and the layout of its results is a matter of the version. pmprobe's output
 * is documented and old, and a process can be killed when its time is over.
 *
 * In the calling process a child would be visible: as SIGCHLD, and in its wait(2) for any. So pmprobe is a grandchild.
 * The child in between is made with no signal to send at its end, and the kernel leaves such children out of wait(2)
 * unless asked for them; it never execs, which would undo that. It owns pmprobe, and ends it when the pipe `alive`
 * ends: when we close it, or die. Between clone and exec nothing of libc is called that has state: other threads may
 * have been anywhere.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/rawcall.h"
#include "include/internal/shared_options.h"
#include "preload/api/reserve/reserve_impl.h"
#include "preload/core/program_file.h"

extern char **environ;

#define PROGRAM "pmprobe"
/* Of PCP, as printed: pmcd or its agent did not answer in time; the agent is there and knows no such metric. */
#define PM_ERR_TIMEOUT (-12353)
#define PM_ERR_PMID (-12358)

/* Find it as a shell would, else where distributions have it. */
static bool find_program(char *path, size_t size)
{
	if (csink_program_in_path(PROGRAM, path, size))
		return true;
	snprintf(path, size, "/usr/bin/" PROGRAM);
	return !access(path, X_OK);
}

/* Our environment without what would profile pmprobe. */
static char **make_environment(void)
{
	size_t nr = 0, n = 0;
	char **env;

	while (environ && environ[nr])
		nr++;
	env = calloc(nr + 1, sizeof(*env));
	for (size_t i = 0; env && i < nr; i++) {
		if (strncmp(environ[i], "LD_PRELOAD=", 11) &&
		    strncmp(environ[i], CSINK_ENV_PREFIX, sizeof(CSINK_ENV_PREFIX) - 1))
			env[n++] = environ[i];
	}
	return env;
}

struct child {
	const char *path;
	char **argv, **env;
	int out, alive[2]; /* alive[1] is ours, and closed in the child */
};

static __attribute__((noreturn)) void become_program(const struct child *child)
{
	int null = (int)csink_rawcall(SYS_openat, AT_FDCWD, "/dev/null", O_RDONLY, 0);

	/* Duplicates are open after exec; but not one onto itself, where a standard stream was closed. */
	for (int fd = 0; fd <= 2; fd++) {
		int from = fd ? child->out : null;

		if (from == fd)
			csink_rawcall(SYS_fcntl, fd, F_SETFD, 0);
		else
			csink_rawcall(SYS_dup3, from, fd, 0);
	}
	csink_rawcall(SYS_execve, child->path, child->argv, child->env);
	csink_raw_exit(127);
}

/* The child in between. Signals stay blocked, here and in pmprobe: what comes is the host's, and SIGKILL works. */
static __attribute__((noreturn)) void own_program(const struct child *child)
{
	uint64_t no_action[8] = {0}; /* the kernel's struct sigaction: SIG_DFL; ignored, it would reap before us */
	long pid;
	char byte;

	csink_rawcall(SYS_close, child->alive[1]);
	csink_rawcall(SYS_rt_sigaction, SIGCHLD, no_action, NULL, 8);
	pid = csink_rawcall(SYS_clone, (unsigned long)SIGCHLD, 0, NULL, NULL, 0);
	if (!pid)
		become_program(child);
	csink_rawcall(SYS_close, child->out);
	while (csink_rawcall(SYS_read, child->alive[0], &byte, (size_t)1) == -EINTR)
		;
	if (pid > 0) {
		/* Not reaped yet, so the number is its own. */
		csink_rawcall(SYS_kill, (pid_t)pid, SIGKILL);
		csink_rawcall(SYS_wait4, (pid_t)pid, NULL, 0, NULL);
	}
	csink_raw_exit(0);
}

/* Returns the child's pid or -errno. */
static pid_t start(const struct child *child)
{
	sigset_t all, old;
	long pid;

	sigfillset(&all);
	/* Not libc's: the wrapper may be interposed, and leaves out signals that libc uses itself. */
	csink_rawcall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &old, 8);
	pid = csink_rawcall(SYS_clone, 0UL, 0, NULL, NULL, 0);
	if (!pid)
		own_program(child);
	csink_rawcall(SYS_rt_sigprocmask, SIG_SETMASK, &old, NULL, 8);
	return (pid_t)pid;
}

struct answer {
	char text[2048]; /* what pmprobe printed, on both its streams; what does not fit is left out */
};

/* Read until pmprobe ends its output. */
static int collect(int fd, uint64_t deadline_ns, int cancel_fd, struct answer *answer)
{
	struct pollfd fds[] = {{.fd = fd, .events = POLLIN}, {.fd = cancel_fd, .events = POLLIN}};
	size_t used = 0;
	char rest[256];

	for (;;) {
		size_t room = sizeof(answer->text) - 1 - used;
		int nr = poll(fds, 2, csink_reserve_poll_ms(deadline_ns));
		ssize_t got;

		if (nr < 0 && errno != EINTR)
			return -errno;
		/* One that writes without end is late as well. */
		if (!nr || csink_monotonic_ns() >= deadline_ns)
			return -ETIMEDOUT;
		if (nr < 0)
			continue;
		if (fds[1].revents)
			return -ECANCELED;
		got = room ? read(fd, answer->text + used, room) : read(fd, rest, sizeof(rest));
		if (got < 0 && errno != EINTR)
			return -errno;
		if (!got)
			return 0;
		if (got > 0 && room)
			used += (size_t)got;
		answer->text[used] = '\0';
	}
}

static int run(struct child *child, uint64_t deadline_ns, int cancel_fd, struct answer *answer)
{
	int out[2], err;
	pid_t pid;

	if (pipe2(out, O_CLOEXEC))
		return -errno;
	if (pipe2(child->alive, O_CLOEXEC)) {
		err = -errno;
		close(out[0]);
		close(out[1]);
		return err;
	}
	child->out = out[1];
	pid = start(child);
	close(out[1]);
	close(child->alive[0]);
	err = pid < 0 ? pid : collect(out[0], deadline_ns, cancel_fd, answer);
	close(child->alive[1]);
	close(out[0]);
	while (pid > 0 && csink_rawcall(SYS_wait4, pid, NULL, __WALL, NULL) == -EINTR)
		;
	return err;
}

/*
 * Run pmprobe with one option (NULL: none) and one name of metrics.
 * Returns 0, -ENOENT (no pmprobe), -ETIMEDOUT, -ECANCELED, or -errno of pipe or clone.
 */
static int probe(const char *option, const char *name, uint64_t deadline_ns, int cancel_fd, struct answer *answer)
{
	CSINK_KEEP_ERRNO;
	char path[PATH_MAX], program[] = PROGRAM;
	char *argv[] = {program, (char *)(option ? option : name), (char *)(option ? name : NULL), NULL};
	struct child child = {.path = path, .argv = argv};
	int err = -ENOMEM;

	answer->text[0] = '\0';
	if (!find_program(path, sizeof(path)))
		return -ENOENT;
	child.env = make_environment();
	if (child.env)
		err = run(&child, deadline_ns, cancel_fd, answer);
	free(child.env);
	return err;
}

/* The rest of the first line that begins with name and a blank; NULL: there is none. */
static const char *line_of(const char *text, const char *name)
{
	size_t len = strlen(name);

	for (; text; text = strchr(text, '\n')) {
		text += *text == '\n';
		if (!strncmp(text, name, len) && text[len] == ' ')
			return text + len + 1;
	}
	return NULL;
}

static void first_line(const char *text, char *out, size_t size)
{
	snprintf(out, size, "%.*s", (int)strcspn(text, "\n"), text);
}

int csink_pcp_active(uint64_t deadline_ns, int cancel_fd, char *words, size_t size)
{
	struct answer answer;
	const char *line;
	int err = probe("-v", "perfevent.active", deadline_ns, cancel_fd, &answer);
	int status, value;

	words[0] = '\0';
	if (err)
		return err;
	line = line_of(answer.text, "perfevent.active");
	if (!line) {
		/* "pmprobe: Cannot connect to PMCD on host ..." */
		first_line(answer.text, words, size);
		return -ENOTCONN;
	}
	/* "1 6" is one value, 6; "-12357 Unknown metric name" an error. */
	if (sscanf(line, "%d %d", &status, &value) == 2 && status == 1 && value >= 0)
		return value;
	first_line(line, words, size);
	switch (strtol(line, NULL, 10)) {
	case PM_ERR_TIMEOUT:
		return -ETIMEDOUT;
	case PM_ERR_PMID:
		return -ENODATA;
	default:
		return -ESRCH;
	}
}

int csink_pcp_has_events(uint64_t deadline_ns, int cancel_fd)
{
	struct answer answer;
	int err = probe(NULL, "perfevent.hwcounters", deadline_ns, cancel_fd, &answer);

	/* Each event has a name of its own below; without any, pmprobe complains about the one asked for. */
	return err ? err : strstr(answer.text, "perfevent.hwcounters.") != NULL;
}
