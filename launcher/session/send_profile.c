/* See send_profile.h. Runs in the launcher's one thread. */
#include "launcher/session/send_profile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "include/internal/cleanup.h"
#include "launcher/base/message.h"
#include "launcher/base/path.h"
#include "launcher/base/send_options.h"
#include "launcher/base/send_url.h"
#include "launcher/session/spawn.h"

#define PROGRAM "countersink-send"

extern char **environ;

int csink_send_check(const struct csink_options *o, uint32_t send)
{
	const char *url = csink_options_text(o, send);
	char where[64], why[CSINK_WHY_BYTES];
	struct csink_send_url to;

	if (!*url || !csink_send_url_read(url, &to, why, sizeof(why)))
		return 0;
	csink_options_where(o, send, where, sizeof(where));
	return csink_fail(-EINVAL, "%s: %s", where, why);
}

bool csink_send_program(char path[PATH_MAX])
{
	char self[PATH_MAX];

	return !csink_path_of_program(self, 1) && snprintf(path, PATH_MAX, "%s/" PROGRAM, self) < PATH_MAX;
}

/* It has nothing to read, and prints on standard error alone. Returns its status as waitpid(2) has it, or -errno. */
static int run_program(char **argv, const struct csink_inherited *inherited)
{
	CSINK_AUTO_CLOSE int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int fds[3] = {null, null, STDERR_FILENO}, err, exec_errno = 0, status;
	struct csink_child child;

	if (null < 0)
		return -errno;
	err = csink_spawn_with(argv, environ, inherited, fds, &child);
	if (err)
		return err;
	if (read(child.exec_fd, &exec_errno, sizeof(exec_errno)) != (ssize_t)sizeof(exec_errno))
		exec_errno = 0;
	close(child.exec_fd);
	while (waitpid(child.pid, &status, 0) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	return exec_errno ? -exec_errno : status;
}

/* Options in their long form, malloc'ed. */
struct arguments {
	char *texts[CSINK_NR_SEND_PROFILE_OPTIONS];
	uint32_t nr;
};

static void release(struct arguments *a)
{
	for (uint32_t i = 0; i < a->nr; i++)
		free(a->texts[i]);
}

/* What comes from the environment, or is a default, the program finds for itself. */
static int add_options(struct arguments *a, const struct csink_options *o, uint32_t send)
{
	char name[CSINK_OPTION_NAME];

	for (uint32_t row = send; row < send + CSINK_NR_SEND_PROFILE_OPTIONS; row++) {
		if (o->values[row].source != CSINK_FROM_OPTION)
			continue;
		csink_option_name(&o->table[row], name);
		if (asprintf(&a->texts[a->nr], "--%s=%s", row == send ? "to" : name, csink_options_text(o, row)) < 0)
			return -ENOMEM;
		a->nr++;
	}
	return 0;
}

static int send_file(const struct arguments *a, char *program, const char *path,
		     const struct csink_inherited *inherited, bool is_quiet)
{
	static char quiet[] = "--quiet", end[] = "--";
	char *argv[CSINK_NR_SEND_PROFILE_OPTIONS + 5] = {program};
	uint32_t nr = 1;

	for (uint32_t i = 0; i < a->nr; i++)
		argv[nr++] = a->texts[i];
	if (is_quiet)
		argv[nr++] = quiet;
	argv[nr++] = end;
	argv[nr] = (char *)path;
	return run_program(argv, inherited);
}

static int send_with(const struct arguments *a, const char *path, const struct csink_inherited *inherited,
		     bool is_quiet)
{
	char program[PATH_MAX] = PROGRAM;
	struct stat st;
	int status;

	if (!*path)
		return csink_fail(-EIO, "nothing was sent: the profile is in no file");
	/* What went into a FIFO is gone, and to read it again would wait for ever. */
	if (!stat(path, &st) && !S_ISREG(st.st_mode))
		return csink_fail(-EIO, "%s was not sent: it is not a regular file", path);
	status = csink_send_program(program) ? send_file(a, program, path, inherited, is_quiet) : -ENOENT;
	if (status < 0)
		csink_say("%s was not sent: %s: %s", path, program, strerror(-status));
	else if (WIFSIGNALED(status))
		csink_say("%s was not sent: " PROGRAM " was ended by signal %d", path, WTERMSIG(status));
	if (status >= 0 && WIFEXITED(status) && WEXITSTATUS(status) == CSINK_SEND_EXIT_UNREACHABLE)
		return -EAGAIN;
	return status ? -EIO : 0;
}

int csink_send_profile(const struct csink_options *o, uint32_t send, const char *path,
		       const struct csink_inherited *inherited, bool is_quiet)
{
	CSINK_AUTO(release) struct arguments a = {.nr = 0};

	if (!*csink_options_text(o, send))
		return 0;
	if (add_options(&a, o, send))
		return csink_fail(-EIO, "%s was not sent: no memory", path);
	return send_with(&a, path, inherited, is_quiet);
}

int csink_send_by_environment(const char *path, bool is_quiet)
{
	const struct arguments none = {.nr = 0};
	struct csink_inherited inherited = {.has_cpus = false};

	if (!csink_send_variable(CSINK_ENV_PREFIX "SEND"))
		return 0;
	csink_inherited_take(&inherited);
	return send_with(&none, path, &inherited, is_quiet);
}
