/*
 * Running a command to see what it prints: lists of cases, and first runs of each. See suite.h. What it started and
 * left behind when its time is up is killed with it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "include/internal/clock.h"
#include "launcher/gate/reported.h"
#include "launcher/gate/suite/suite.h"
#include "launcher/session/spawn.h"

#define TICK_MS 50
#define MAX_PRINTED (64 << 20) /* more is printed without end */
#define MAX_CHILDREN 512

/* ---- directory and environment ---- */

/* What the variables of the job that was entered were before: "NAME=VALUE". One is entered at a time. */
static struct csink_suite_words before_;

/* Returns false if it has no name. */
static bool name_of(const char *variable, char *name, size_t size)
{
	const char *equals = strchr(variable, '=');

	if (!equals || equals == variable || (size_t)(equals - variable) >= size)
		return false;
	snprintf(name, size, "%.*s", (int)(equals - variable), variable);
	return true;
}

static int set_variables(const struct csink_suite_job *job)
{
	char name[256];

	for (uint32_t i = 0; i < job->env.nr; i++) {
		const char *was;

		if (!name_of(job->env.all[i], name, sizeof(name)))
			continue;
		was = getenv(name);
		if (was)
			csink_suite_put(&before_, "%s=%s", name, was);
		setenv(name, strchr(job->env.all[i], '=') + 1, 1);
	}
	return before_.lacked_memory ? -ENOMEM : 0;
}

/* Backwards: of a variable that was set twice, the first value was its own. */
static void restore_variables(const struct csink_suite_job *job)
{
	char name[256];

	for (uint32_t i = 0; i < job->env.nr; i++) {
		if (name_of(job->env.all[i], name, sizeof(name)))
			unsetenv(name);
	}
	for (uint32_t i = before_.nr; i-- > 0;) {
		if (name_of(before_.all[i], name, sizeof(name)))
			setenv(name, strchr(before_.all[i], '=') + 1, 1);
	}
	csink_suite_words_free(&before_);
}

int csink_suite_enter(const struct csink_suite_job *job)
{
	int here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC), err;

	if (here < 0)
		return -errno;
	if (job->dir && chdir(job->dir)) {
		err = -errno;
		close(here);
		return err;
	}
	err = set_variables(job);
	if (!err)
		return here;
	csink_suite_leave(job, here);
	return err;
}

void csink_suite_leave(const struct csink_suite_job *job, int entered)
{
	restore_variables(job);
	if (fchdir(entered))
		fprintf(stderr, "countersink: the directory that the gate was started in is gone\n");
	close(entered);
}

void csink_suite_job_free(struct csink_suite_job *job)
{
	csink_suite_words_free(&job->argv);
	csink_suite_words_free(&job->env);
	free(job->dir);
	free(job->prepare);
	job->dir = job->prepare = NULL;
}

/* ---- killing ---- */

static void kill_listed(const char *path, int except)
{
	int children[MAX_CHILDREN], nr = 0;
	CSINK_AUTO_FCLOSE FILE *file = fopen(path, "re");

	while (file && nr < MAX_CHILDREN && fscanf(file, "%d", &children[nr]) == 1)
		nr++;
	for (int i = 0; i < nr; i++) {
		if (children[i] == except)
			continue;
		csink_suite_kill_children(children[i], 0);
		kill(children[i], SIGKILL);
	}
}

/* Each thread has children of its own. Source: proc(5), /proc/PID/task/TID/children. */
void csink_suite_kill_children(int pid, int except)
{
	char path[NAME_MAX + 64];
	CSINK_AUTO_CLOSEDIR DIR *threads = NULL;
	const struct dirent *thread;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	threads = opendir(path);
	while (threads && (thread = readdir(threads))) {
		if (*thread->d_name == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%s/children", pid, thread->d_name);
		kill_listed(path, except);
	}
}

/* ---- asking ---- */

struct asking {
	struct csink_child child;
	int fds[3];
	uint64_t start_ns, limit_ns;
};

static bool prints_without_end(const struct asking *asking)
{
	struct stat st;

	return (!fstat(asking->fds[1], &st) && st.st_size > MAX_PRINTED) ||
	       (!fstat(asking->fds[2], &st) && st.st_size > MAX_PRINTED);
}

static bool has_ended(int pid)
{
	siginfo_t info = {0};

	return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT | WNOHANG) || info.si_pid == pid;
}

/* Until it ends, its time is up, or a signal ends the gate. */
static int wait_for(struct csink_suite *suite, struct asking *asking, struct csink_suite_answer *answer)
{
	CSINK_AUTO_CLOSE int fd = (int)syscall(SYS_pidfd_open, asking->child.pid, 0);
	struct pollfd ended = {.fd = fd, .events = POLLIN};
	struct rusage usage = {0};
	int signo = 0;

	while (poll(&ended, 1, TICK_MS) <= 0) {
		signo = csink_gate_interrupted(suite->series->runner, NULL);
		answer->is_endless = prints_without_end(asking);
		answer->timed_out = csink_monotonic_ns() - asking->start_ns > asking->limit_ns || answer->is_endless;
		/* Without a pidfd (Linux 5.3), ask the kernel. */
		if (fd < 0 && has_ended(asking->child.pid))
			break;
		if (!signo && !answer->timed_out)
			continue;
		csink_suite_kill_children(asking->child.pid, 0);
		kill(asking->child.pid, SIGKILL);
		break;
	}
	while (wait4(asking->child.pid, &answer->status, 0, &usage) < 0 && errno == EINTR)
		;
	answer->seconds = (double)(csink_monotonic_ns() - asking->start_ns) / 1e9;
	answer->cpu_seconds = (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
			      ((double)usage.ru_utime.tv_usec + (double)usage.ru_stime.tv_usec) / 1e6;
	suite->series->signal = signo;
	return signo ? -EINTR : 0;
}

/* What a stream has, ended by a NUL. */
static char *take_stream(int fd, size_t *bytes)
{
	off_t end = lseek(fd, 0, SEEK_END);
	size_t room = end > 0 ? CSINK_MIN((size_t)end, (size_t)MAX_PRINTED) : 0;
	char *text = malloc(room + 1);
	ssize_t got = text ? pread(fd, text, room, 0) : 0;

	*bytes = got > 0 ? (size_t)got : 0;
	if (text)
		text[*bytes] = '\0';
	return text;
}

static int start(struct csink_suite *suite, const struct csink_suite_job *job, struct asking *asking,
		 struct csink_suite_answer *answer)
{
	int entered = csink_suite_enter(job), err;

	if (entered < 0)
		return entered;
	err = csink_spawn_with(job->argv.all, environ, &suite->series->runner->inherited, asking->fds, &asking->child);
	csink_suite_leave(job, entered);
	if (err)
		return err;
	if (read(asking->child.exec_fd, &answer->exec_errno, sizeof(int)) != sizeof(int))
		answer->exec_errno = 0;
	close(asking->child.exec_fd);
	return 0;
}

int csink_suite_ask(struct csink_suite *suite, const struct csink_suite_job *job, double limit_seconds,
		    struct csink_suite_answer *answer)
{
	double left = fmax(csink_suite_left(suite), 0);
	struct asking asking = {.limit_ns = (uint64_t)(fmin(limit_seconds, left) * 1e9)};
	int figures, err = 0;

	memset(answer, 0, sizeof(*answer));
	if (job->argv.lacked_memory || !job->argv.nr)
		return -ENOMEM;
	asking.fds[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	asking.fds[1] = memfd_create("stdout", MFD_CLOEXEC);
	asking.fds[2] = memfd_create("stderr", MFD_CLOEXEC);
	for (int i = 0; i < 3; i++)
		err = asking.fds[i] < 0 ? -EMFILE : err;
	/* A command that reports figures has a place for them, as in the runs that are judged. */
	figures = csink_gate_reported_begin();
	asking.start_ns = csink_monotonic_ns();
	answer->is_late = left < limit_seconds;
	err = err ? err : start(suite, job, &asking, answer);
	err = err ? err : wait_for(suite, &asking, answer);
	csink_gate_reported_end(figures);
	answer->out = take_stream(asking.fds[1], &answer->out_bytes);
	answer->err = take_stream(asking.fds[2], &answer->err_bytes);
	for (int i = 0; i < 3; i++) {
		if (asking.fds[i] >= 0)
			close(asking.fds[i]);
	}
	if (!err && (!answer->out || !answer->err))
		err = -ENOMEM;
	if (err)
		csink_suite_answer_free(answer);
	return err;
}

void csink_suite_answer_free(struct csink_suite_answer *answer)
{
	free(answer->out);
	free(answer->err);
	answer->out = answer->err = NULL;
}

const char *csink_suite_answer_error(const struct csink_suite_answer *answer, char *out, size_t size)
{
	size_t len = answer->err_bytes, from;
	char ended[96];

	while (len && strchr("\n ", answer->err[len - 1]))
		len--;
	from = len > 600 ? len - 600 : 0;
	if (csink_suite_answer_is_ok(answer))
		return NULL;
	if (answer->exec_errno)
		snprintf(ended, sizeof(ended), "it cannot be executed: %s", strerror(answer->exec_errno));
	else if (answer->is_endless)
		snprintf(ended, sizeof(ended), "it printed more than %d MiB, and was killed", MAX_PRINTED >> 20);
	else if (answer->timed_out)
		snprintf(ended, sizeof(ended), "it did not end within %.0f s, and was killed", answer->seconds);
	else if (WIFSIGNALED(answer->status))
		snprintf(ended, sizeof(ended), "signal %d (%s)", WTERMSIG(answer->status),
			 strsignal(WTERMSIG(answer->status)));
	else
		snprintf(ended, sizeof(ended), "status %d", WEXITSTATUS(answer->status));
	snprintf(out, size, "%s%s%.*s", ended, len ? "; its standard error: " : "", (int)(len - from),
		 answer->err + from);
	return out;
}
