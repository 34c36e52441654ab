/* How far the slices of a run are: see slice_state.h. */
#include "launcher/session/slice_state.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "launcher/base/write_all.h"
#include "launcher/collect/run_directory.h"
#include "launcher/session/slices.h"
#include "preload/core/record/run_dir.h"

#define MAGIC 0x317365636c697363ULL /* "csilces1" */

/* Behind it is the moment, in the form of csink_moment_store(). */
struct stored {
	uint64_t magic;
	char version[16]; /* CSINK_VERSION */
	uint32_t bytes;   /* of this structure */
	bool has_moment, is_last;
	struct csink_slice_names names;
	struct csink_slice_clock clock;
	uint64_t keep, keep_bytes, number, nr_written, nr_removed, nr_taken;
	uint64_t run_start_realtime_ns, start_monotonic_ns, start_realtime_ns, named_ns;
	uint32_t nr_missed;
	char missed_why[200];
	char path[PATH_MAX];    /* of the slice with which this begins to count; "": it counts */
	uint64_t device, inode; /* and its file's */
};

static int path_of(const char *run_dir, const char *name, char *path)
{
	return snprintf(path, PATH_MAX, "%s/%s", run_dir, name) >= PATH_MAX ? -ENAMETOOLONG : 0;
}

/* ---- storing ---- */

static int write_state(const struct csink_slices *s, const struct stored *stored, const struct csink_moment *moment)
{
	CSINK_AUTO_CLOSE int fd = -1;
	char path[PATH_MAX];
	int err = path_of(s->run_dir, CSINK_RUN_DIRECTORY_SLICES_NEW, path);

	if (err)
		return err;
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	err = csink_write_all(fd, stored, sizeof(*stored));
	if (!err && moment)
		err = csink_moment_store(moment, fd, sizeof(*stored));
	if (err)
		unlink(path);
	return err;
}

static struct stored describe(const struct csink_slices *s)
{
	struct stored stored = {.magic = MAGIC,
				.version = CSINK_VERSION,
				.bytes = sizeof(stored),
				.names = s->names,
				.clock = s->clock,
				.keep = s->keep,
				.keep_bytes = s->keep_bytes,
				.number = s->next_number,
				.nr_written = s->answer.nr_written,
				.nr_removed = s->answer.nr_removed,
				.nr_taken = s->answer.nr_taken,
				.run_start_realtime_ns = s->run_start_realtime_ns,
				.start_monotonic_ns = s->start_monotonic_ns,
				.start_realtime_ns = s->start_realtime_ns,
				.named_ns = s->named_ns,
				.nr_missed = s->nr_missed};

	memcpy(stored.missed_why, s->missed_why, sizeof(stored.missed_why));
	return stored;
}

int csink_slice_state_prepare(const struct csink_slices *s, const struct csink_slice_next *next, int fd)
{
	struct stored stored = describe(s);
	struct stat st;

	/* Another file must not be taken for the slice. */
	if (fstat(fd, &st))
		return -errno;
	stored.device = st.st_dev;
	stored.inode = st.st_ino;
	snprintf(stored.path, sizeof(stored.path), "%s", next->path);
	stored.is_last = next->is_last;
	stored.has_moment = next->to != NULL;
	if (!s->names.has_time)
		stored.number = next->number;
	stored.nr_written++;
	stored.nr_missed = 0;
	stored.missed_why[0] = '\0';
	if (next->to)
		stored.start_monotonic_ns = csink_moment_ns(next->to);
	stored.start_realtime_ns = s->next_start_realtime_ns;
	stored.named_ns = s->next_named_ns;
	return write_state(s, &stored, next->to);
}

void csink_slice_state_commit(const struct csink_slices *s)
{
	char from[PATH_MAX], to[PATH_MAX];

	/* If it cannot be renamed, it counts all the same: csink_slice_state_load() looks for the slice. */
	if (!path_of(s->run_dir, CSINK_RUN_DIRECTORY_SLICES_NEW, from) &&
	    !path_of(s->run_dir, CSINK_RUN_DIR_SLICES, to))
		rename(from, to);
}

void csink_slice_state_discard(const struct csink_slices *s)
{
	char path[PATH_MAX];

	if (!path_of(s->run_dir, CSINK_RUN_DIRECTORY_SLICES_NEW, path))
		unlink(path);
}

int csink_slice_state_store(const struct csink_slices *s)
{
	struct stored stored = describe(s);
	int err;

	stored.has_moment = s->base != NULL;
	err = write_state(s, &stored, s->base);
	if (!err)
		csink_slice_state_commit(s);
	return err;
}

/* ---- loading ---- */

/* Returns an fd, or -errno. */
static int open_state(const char *run_dir, const char *name, struct stored *stored)
{
	char path[PATH_MAX];
	int err = path_of(run_dir, name, path), fd;
	ssize_t got;

	if (err)
		return err;
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	got = pread(fd, stored, sizeof(*stored), 0);
	if (got == (ssize_t)sizeof(*stored) && stored->magic == MAGIC && stored->bytes == sizeof(*stored) &&
	    !strncmp(stored->version, CSINK_VERSION, sizeof(stored->version)) &&
	    memchr(stored->names.pattern, 0, sizeof(stored->names.pattern)) &&
	    stored->names.name_at <= strlen(stored->names.pattern) && stored->clock.slice_ns &&
	    memchr(stored->path, 0, sizeof(stored->path)))
		return fd;
	close(fd);
	return -EBADMSG;
}

static bool is_written(const struct stored *stored)
{
	struct stat st;

	return *stored->path && !lstat(stored->path, &st) && st.st_dev == stored->device && st.st_ino == stored->inode;
}

/* Was the process killed after it had written the slice with which a newer state begins to count? */
static void settle(const char *run_dir)
{
	static struct stored stored;
	CSINK_AUTO_CLOSE int fd = open_state(run_dir, CSINK_RUN_DIRECTORY_SLICES_NEW, &stored);
	char from[PATH_MAX], to[PATH_MAX];

	/* What another version has stored is that one's. */
	if (fd < 0 || path_of(run_dir, CSINK_RUN_DIRECTORY_SLICES_NEW, from) ||
	    path_of(run_dir, CSINK_RUN_DIR_SLICES, to))
		return;
	if (is_written(&stored))
		rename(from, to);
	else
		unlink(from);
}

int csink_slice_state_check(const char *run_dir)
{
	static struct stored stored;
	CSINK_AUTO_CLOSE int fd = open_state(run_dir, CSINK_RUN_DIR_SLICES, &stored);

	return CSINK_MIN(fd, 0);
}

int csink_slice_state_load(struct csink_slices *s, const char *run_dir, bool *is_ended)
{
	static struct stored stored;
	CSINK_AUTO_CLOSE int fd = -1;

	settle(run_dir);
	fd = open_state(run_dir, CSINK_RUN_DIR_SLICES, &stored);
	if (fd < 0)
		return fd;
	if (snprintf(s->run_dir, sizeof(s->run_dir), "%s", run_dir) >= (int)sizeof(s->run_dir))
		return -ENAMETOOLONG;
	s->is_stored = true;
	s->names = stored.names;
	s->clock = stored.clock;
	s->keep = stored.keep;
	s->keep_bytes = stored.keep_bytes;
	s->next_number = stored.number;
	s->answer.nr_written = stored.nr_written;
	s->answer.nr_removed = stored.nr_removed;
	s->answer.nr_taken = stored.nr_taken;
	snprintf(s->answer.last_path, sizeof(s->answer.last_path), "%s", stored.path);
	s->run_start_realtime_ns = stored.run_start_realtime_ns;
	s->start_monotonic_ns = stored.start_monotonic_ns;
	s->start_realtime_ns = s->next_start_realtime_ns = stored.start_realtime_ns;
	s->named_ns = s->next_named_ns = stored.named_ns;
	s->nr_missed = stored.nr_missed;
	snprintf(s->missed_why, sizeof(s->missed_why), "%.*s", (int)sizeof(stored.missed_why) - 1, stored.missed_why);
	*is_ended = stored.is_last;
	if (stored.is_last || !stored.has_moment)
		return 0;
	return csink_moment_load(fd, sizeof(stored), &s->base) ? -ENODATA : 0;
}
