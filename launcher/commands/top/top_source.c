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
#include "launcher/commands/top/top_attach.h"
#include "launcher/profile/profile.h"
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
				 "process %d cannot be looked at (%s): ask as its user, or as root", source->pid,
				 strerror(errno));
	if (!directory)
		return csink_top_attach_open(&source->attach, source->pid, NULL, why, why_len);
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

int csink_top_source_open(struct csink_top_source *source, const char *path, int32_t pid, const char *cgroup, char *why,
			  size_t why_len)
{
	struct csink_moment *moment;
	int err;

	*source = (struct csink_top_source){.pid = pid};
	if (cgroup) {
		snprintf(source->name, sizeof(source->name), "%s", cgroup);
		return csink_top_attach_open(&source->attach, 0, cgroup, why, why_len);
	}
	err = path ? find_directory(source, path, why, why_len) : find_by_process(source, why, why_len);
	if (err || source->attach)
		return err;
	err = csink_moment_take(source->path, source->own_pid, &moment);
	if (err)
		return say_none(source, err, why, why_len);
	csink_moment_free(moment);
	if (!source->pid && !csink_run_is_live(source->path))
		return say_none(source, -ESTALE, why, why_len);
	return 0;
}

void csink_top_source_close(struct csink_top_source *source)
{
	csink_top_attach_close(source->attach);
	csink_moment_free(source->moment);
	source->attach = NULL;
	source->moment = NULL;
}

/* ---- while it runs ---- */

static int take_moment(const struct csink_top_source *source, struct csink_moment **out)
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

static int read_moment(const struct csink_moment *before, const struct csink_moment *now, struct csink_top_sight *sight)
{
	uint64_t now_ns = csink_moment_ns(now), first_ns = csink_moment_first_ns(now);
	int err = csink_collect_between(NULL, now, NULL, &sight->all);

	if (!err && before)
		err = csink_collect_between(before, now, NULL, &sight->last);
	sight->nr_unread = csink_moment_nr_unread(now);
	sight->ns[0] = before ? now_ns - csink_moment_ns(before) : 0;
	sight->ns[1] = now_ns - CSINK_MIN(first_ns, now_ns);
	return err;
}

int csink_top_source_take(struct csink_top_source *source, struct csink_top_sight *sight)
{
	struct csink_moment *now;
	int err;

	*sight = (struct csink_top_sight){0};
	if (source->attach)
		return csink_top_attach_take(source->attach, sight);
	err = take_moment(source, &now);
	if (err)
		return err;
	err = read_moment(source->moment, now, sight);
	if (err) {
		csink_top_sight_free(sight);
		csink_moment_free(now);
		return err;
	}
	csink_moment_free(source->moment);
	source->moment = now;
	return 0;
}

void csink_top_sight_free(struct csink_top_sight *sight)
{
	csink_profile_free(sight->last);
	csink_profile_free(sight->all);
	*sight = (struct csink_top_sight){0};
}

int csink_top_source_fd(const struct csink_top_source *source)
{
	return source->attach ? csink_top_attach_fd(source->attach) : -1;
}

bool csink_top_source_drain(struct csink_top_source *source)
{
	return !source->attach || csink_top_attach_drain(source->attach);
}
