/* Where the pictures come from: see top_source.h. */
#include "launcher/commands/top/top_source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "launcher/base/message.h"
#include "launcher/base/path.h"
#include "launcher/base/proc.h"
#include "launcher/collect/moment.h"
#include "launcher/collect/run_reading.h"
#include "preload/core/record/run_dir.h"

/* ---- by process ---- */

/* The directory of the recording in a line of /proc/PID/maps; NULL: there is none. In place. */
static const char *recording_directory(char *line)
{
	char *path = strchr(line, '/');

	line[strcspn(line, "\n")] = 0;
	if (!path || !csink_run_dir_is_recording(csink_base_name(path)))
		return NULL;
	*strrchr(path, '/') = 0;
	return path;
}

static int find_by_process(struct csink_top_source *source, char *why, size_t why_len)
{
	CSINK_AUTO_FREE char *line = NULL;
	CSINK_AUTO_FCLOSE FILE *maps = NULL;
	const char *directory = NULL;
	char path[64];
	size_t size = 0;

	snprintf(source->name, sizeof(source->name), "PID %d", source->pid);
	if (!csink_proc_is_running(source->pid, 0))
		return csink_why(-ESRCH, why, why_len, "there is no process %d", source->pid);
	snprintf(path, sizeof(path), "/proc/%d/maps", source->pid);
	maps = fopen(path, "re");
	while (maps && !directory && getline(&line, &size, maps) > 0)
		directory = recording_directory(line);
	if (!maps || (!directory && ferror(maps)))
		return csink_why(-EACCES, why, why_len,
				 "process %d cannot be looked at (%s): it is another user's; ask as that user or root",
				 source->pid, strerror(errno));
	if (!directory)
		return csink_why(-ESRCH, why, why_len,
				 "process %d is not being profiled: start it with `countersink -- COMMAND`, or sample "
				 "it with `countersink attach -p %d`",
				 source->pid, source->pid);
	source->own_pid = csink_proc_own_number(source->pid);
	if (source->own_pid <= 0)
		source->own_pid = source->pid;
	if (snprintf(source->path, sizeof(source->path), "/proc/%d/root%s", source->pid, directory) >=
	    (int)sizeof(source->path))
		return csink_why(-ENAMETOOLONG, why, why_len, "%s: %s", directory, strerror(ENAMETOOLONG));
	return 0;
}

/* ---- by directory ---- */

static int find_directory(struct csink_top_source *source, const char *path, char *why, size_t why_len)
{
	struct stat st;

	if (snprintf(source->path, sizeof(source->path), "%s", path) >= (int)sizeof(source->path))
		return csink_why(-ENAMETOOLONG, why, why_len, "%s: %s", path, strerror(ENAMETOOLONG));
	memcpy(source->name, source->path, sizeof(source->name));
	if (stat(path, &st))
		return csink_why(-errno, why, why_len, "%s: %s", path, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return csink_why(-ENOTDIR, why, why_len,
				 "%s is no run directory; `countersink report %s` prints a profile", path, path);
	return 0;
}

static int say_none(const struct csink_top_source *source, int err, char *why, size_t why_len)
{
	struct stat st;

	if (err == -EACCES && !stat(source->path, &st))
		return csink_why(err, why, why_len, "%s: %s: it belongs to user ID %u; ask as that user or root",
				 source->name, strerror(-err), (unsigned int)st.st_uid);
	if (err == -ENOENT)
		return csink_why(err, why, why_len,
				 "%s: there is no recording in it: no process of the run has started yet, or it is no "
				 "run directory",
				 source->name);
	if (err == -ESTALE)
		return csink_why(err, why, why_len,
				 "%s: the run has ended; `countersink report -o FILE %s` makes its profile",
				 source->name, source->name);
	return csink_why(err, why, why_len, "%s: %s", source->name, strerror(-err));
}

int csink_top_source_open(struct csink_top_source *source, const char *path, int32_t pid, char *why, size_t why_len)
{
	struct csink_moment *moment;
	int err;

	*source = (struct csink_top_source){.pid = pid};
	err = path ? find_directory(source, path, why, why_len) : find_by_process(source, why, why_len);
	if (err)
		return err;
	err = csink_moment_take(source->path, source->own_pid, &moment);
	if (err)
		return say_none(source, err, why, why_len);
	csink_moment_free(moment);
	if (!source->pid && !csink_run_is_live(source->path))
		return say_none(source, -ESTALE, why, why_len);
	return 0;
}

/* ---- while it runs ---- */

int csink_top_source_take(const struct csink_top_source *source, struct csink_moment **out)
{
	int err = csink_moment_take(source->path, source->own_pid, out);
	bool is_live = source->pid ? csink_proc_is_running(source->pid, 0) : csink_run_is_live(source->path);

	/* When the run has ended, recordings are removed one by one: what was read may be a part of them. */
	if (!is_live) {
		if (!err)
			csink_moment_free(*out);
		return -ESTALE;
	}
	return err;
}
