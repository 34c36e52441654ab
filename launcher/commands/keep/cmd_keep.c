/*
 * `countersink keep`: write slices of a run without launcher while it goes on. The library starts it at the beginning
 * of such a run (COUNTERSINK_ROTATE); started by hand, it goes on with the slices of a run whose keeper was killed.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "launcher/base/message.h"
#include "launcher/collect/moment.h"
#include "launcher/collect/recording_read.h"
#include "launcher/commands/keep/keep_options.h"
#include "launcher/commands/registry.h"
#include "launcher/session/detach.h"
#include "launcher/session/send_profile.h"
#include "launcher/session/slice_keeper.h"

static int send_slice(void *arg, const char *path)
{
	(void)arg;
	return csink_send_by_environment(path, true);
}

/* The library gives its template as it is, which is relative to the directory of the program that starts. */
static int make_absolute(const char *template, char *to, size_t size)
{
	char directory[PATH_MAX];
	size_t n = 0;

	if (*template == '/' || !getcwd(directory, sizeof(directory)))
		return snprintf(to, size, "%s", template) >= (int)size ? -ENAMETOOLONG : 0;
	for (const char *c = directory; *c && n + 2 < size; c++) {
		to[n++] = *c;
		if (*c == '%')
			to[n++] = '%';
	}
	return snprintf(to + n, size - n, "/%s", template) >= (int)(size - n) ? -ENAMETOOLONG : 0;
}

/* Of the run's first process, by its recording. */
static void find_first(const struct csink_run_directory *directory, int32_t *pid, char *command, size_t size)
{
	struct csink_rec_header header;
	char path[CSINK_RUN_DIRECTORY_PATH + 32];
	int32_t first;

	if (!csink_run_directory_writers(directory, &first, 1))
		return;
	if (!*pid)
		*pid = first;
	snprintf(path, sizeof(path), "%s/%d.0.rec", directory->path, (int)*pid);
	if (!*command && !csink_recorded_read_header(path, &header, NULL, 0))
		snprintf(command, size, "%s", header.comm);
}

/* Slices that begin. Returns what to exit with; 0: they have. */
static int begin(struct csink_slice_keeper *k, const struct csink_options *o)
{
	static char template[PATH_MAX];
	struct csink_options named = *o;
	int32_t pid = (int32_t)csink_options_number(o, CSINK_KEEP_OPT_PID);
	char command[32];
	int err;

	snprintf(command, sizeof(command), "%s", csink_options_text(o, CSINK_KEEP_OPT_COMMAND));
	find_first(&k->directory, &pid, command, sizeof(command));
	if (make_absolute(csink_options_text(o, CSINK_KEEP_OPT_OUTPUT), template, sizeof(template)))
		return csink_fail(CSINK_EXIT_USAGE, "%s: the path is too long",
				  csink_options_text(o, CSINK_KEEP_OPT_OUTPUT));
	named.values[CSINK_KEEP_OPT_OUTPUT].text = template;
	err = csink_slices_resolve(&k->slices, &named, CSINK_KEEP_OPT_ROTATE, CSINK_KEEP_OPT_OUTPUT, command, pid);
	if (err < 0)
		return CSINK_EXIT_USAGE;
	if (!err)
		return csink_fail(CSINK_EXIT_USAGE, "%s has no slices to go on with: how long is one? (--rotate=60s)",
				  k->directory.path);
	err = csink_slice_keeper_begin(k);
	return err ? csink_fail(CSINK_EXIT_FAILED, "%s: no slices, but one profile at the end: %s", k->directory.path,
				strerror(-err))
		   : 0;
}

static int open_keeper(struct csink_slice_keeper *k, const struct csink_options *o, const char *run_dir)
{
	int err = csink_slice_keeper_take(k, run_dir);

	if (err)
		return csink_fail(CSINK_EXIT_FAILED, "%s: %s", run_dir,
				  err == -EPERM      ? "not a directory of this user alone"
				  : err == -EBUSY    ? "another command has it"
				  : err == -EALREADY ? "a keeper of another version of countersink writes its slices"
						     : strerror(-err));
	k->slices.on_written = send_slice;
	err = csink_slice_keeper_load(k);
	if (csink_options_bool(o, CSINK_KEEP_OPT_LEAVE)) {
		csink_slice_keeper_leave(k);
		exit(CSINK_EXIT_OK);
	}
	if (err == -ENOENT)
		return begin(k, o);
	return err ? csink_fail(CSINK_EXIT_FAILED, "%s: its slices are of another version of countersink, or damaged",
				run_dir)
		   : 0;
}

static int main_keep(const struct csink_options *o, int nr, char **operands)
{
	static struct csink_slice_keeper k = {.lock_fd = -1, .directory.fd = -1};
	bool detaches = csink_options_bool(o, CSINK_KEEP_OPT_DETACH);
	int status, err;

	if (nr != 1)
		return csink_fail(CSINK_EXIT_USAGE, "keep takes one run directory, not %d (see countersink help keep)",
				  nr);
	status = open_keeper(&k, o, *operands);
	if (status) {
		csink_slice_keeper_release(&k);
		return status;
	}
	if (detaches && csink_slice_keeper_detach(&k) <= 0)
		return CSINK_EXIT_OK; /* without a process for it, the end of the run takes its place */
	err = csink_slice_keeper_run(&k);
	csink_slice_keeper_release(&k);
	if (!csink_options_bool(o, CSINK_KEEP_OPT_QUIET))
		csink_slices_say(&k.slices);
	return err ? CSINK_EXIT_FAILED : CSINK_EXIT_OK;
}

const struct csink_command csink_command_keep = {
	.name = "keep",
	.synopsis = "keep [OPTION]... DIRECTORY",
	.help = "write slices of a run without launcher",
	.main = main_keep,
	CSINK_COMMAND_OPTIONS(CSINK_KEEP_OPTIONS),
};
