/* See send_profile.h. Runs in the launcher's one thread. */
#include "launcher/commands/run/send_profile.h"

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
#include "launcher/base/send_url.h"
#include "launcher/commands/run/run_options.h"
#include "launcher/session/spawn.h"

#define PROGRAM "countersink-send"

extern char **environ;

int csink_send_check(const struct csink_options *o)
{
	const char *url = csink_options_text(o, CSINK_OPT_SEND);
	char where[64], why[CSINK_WHY_BYTES];
	struct csink_send_url to;

	if (!*url || !csink_send_url_read(url, &to, why, sizeof(why)))
		return 0;
	csink_options_where(o, CSINK_OPT_SEND, where, sizeof(where));
	return csink_fail(-EINVAL, "%s: %s", where, why);
}

/* Beside this program. */
static bool find_program(char path[PATH_MAX])
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
	char *texts[6];
	uint32_t nr;
};

static void release(struct arguments *a)
{
	for (uint32_t i = 0; i < a->nr; i++)
		free(a->texts[i]);
}

/* What comes from the environment, or is a default, the program finds for itself. */
static int add_option(struct arguments *a, const struct csink_options *o, uint32_t row, const char *name)
{
	if (o->values[row].source != CSINK_FROM_OPTION)
		return 0;
	if (asprintf(&a->texts[a->nr], "--%s=%s", name, csink_options_text(o, row)) < 0)
		return -ENOMEM;
	a->nr++;
	return 0;
}

static int send_file(const struct csink_options *o, char *program, const char *path,
		     const struct csink_inherited *inherited, bool is_quiet)
{
	static char quiet[] = "--quiet", end[] = "--";
	CSINK_AUTO(release) struct arguments a = {.nr = 0};
	char *argv[12] = {program};
	uint32_t nr = 1;

	if (add_option(&a, o, CSINK_OPT_SEND, "to") || add_option(&a, o, CSINK_OPT_SEND_TIMEOUT, "send-timeout") ||
	    add_option(&a, o, CSINK_OPT_SEND_HEADERS, "send-headers") ||
	    add_option(&a, o, CSINK_OPT_SEND_CA, "send-ca") || add_option(&a, o, CSINK_OPT_SPOOL, "spool") ||
	    add_option(&a, o, CSINK_OPT_SPOOL_BYTES, "spool-bytes"))
		return -ENOMEM;
	for (uint32_t i = 0; i < a.nr; i++)
		argv[nr++] = a.texts[i];
	if (is_quiet)
		argv[nr++] = quiet;
	argv[nr++] = end;
	argv[nr] = (char *)path;
	return run_program(argv, inherited);
}

void csink_send_profile(const struct csink_options *o, const char *path, const struct csink_inherited *inherited,
			bool is_quiet)
{
	char program[PATH_MAX] = PROGRAM;
	struct stat st;
	int status;

	if (!*csink_options_text(o, CSINK_OPT_SEND))
		return;
	if (!*path) {
		csink_say("nothing was sent: the profile is in no file");
		return;
	}
	/* What went into a FIFO is gone, and to read it again would wait for ever. */
	if (!stat(path, &st) && !S_ISREG(st.st_mode)) {
		csink_say("%s was not sent: it is not a regular file", path);
		return;
	}
	status = find_program(program) ? send_file(o, program, path, inherited, is_quiet) : -ENOENT;
	if (status < 0)
		csink_say("%s was not sent: %s: %s", path, program, strerror(-status));
	else if (WIFSIGNALED(status))
		csink_say("%s was not sent: " PROGRAM " was ended by signal %d", path, WTERMSIG(status));
}
