/* Reading a run directory: see run_reading.h. */
#include "launcher/collect/run_reading.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "include/internal/cleanup.h"
#include "include/internal/recording_format.h"
#include "include/internal/shared_options.h"
#include "launcher/base/proc.h"
#include "launcher/collect/run_directory.h"
#include "preload/core/record/run_dir.h"

enum { PATIENCE_MS = 5000, POLL_MS = 5 };

static int is_recording(const struct dirent *entry)
{
	return csink_run_dir_is_recording(entry->d_name);
}

static void free_entries(struct dirent **entries, int nr)
{
	while (nr > 0)
		free(entries[--nr]);
	free(entries);
}

/*
 * Pairs with csink_reading_claim() of another reader: wait until it has removed what it had begun to. Not for ever:
 * the directory may be another user's, who can hold a lock for any time.
 */
static bool share(int fd)
{
	for (int ms = 0; ms < PATIENCE_MS; ms += POLL_MS) {
		if (!flock(fd, LOCK_SH | LOCK_NB))
			return true;
		if (errno != EWOULDBLOCK && errno != EINTR)
			return true; /* a file system without locks: other readers are not noticed */
		poll(NULL, 0, POLL_MS);
	}
	return false;
}

int csink_reading_open(struct csink_reading *reading, const char *path)
{
	*reading = (struct csink_reading){.fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
	if (reading->fd < 0)
		return -errno;
	if (!share(reading->fd))
		return -EBUSY;
	reading->nr = scandirat(reading->fd, ".", &reading->entries, is_recording, alphasort);
	return reading->nr < 0 ? -errno : 0;
}

bool csink_reading_is_whole(const struct csink_reading *reading)
{
	struct dirent **entries;
	int found = 0, nr = scandirat(reading->fd, ".", &entries, is_recording, alphasort);

	for (int i = 0; i < nr && found < reading->nr; i++)
		found += !strcmp(entries[i]->d_name, reading->entries[found]->d_name);
	if (nr >= 0)
		free_entries(entries, nr);
	return found == reading->nr;
}

/* If the kernel does not list its open files, the recording's header names the process. */
static bool is_written(int dir_fd, const char *name)
{
	int written = csink_run_dir_is_written(dir_fd, name);
	struct csink_rec_header head;

	if (written >= 0)
		return written;
	return csink_run_directory_read_head(dir_fd, name, &head) && csink_proc_is_running(head.pid, 0);
}

/* Between an exec and the constructor of the next image no process has a recording open. */
static bool is_in_exec(int dir_fd, const char *name)
{
	struct csink_rec_header head;

	return csink_run_directory_read_head(dir_fd, name, &head) && head.state == CSINK_REC_EXECED &&
	       !csink_run_directory_has_next(dir_fd, name, &head) && csink_proc_is_running(head.pid, 0);
}

/* By its header, no process writes there any more. */
static bool is_finished(int dir_fd, const char *name)
{
	struct csink_rec_header head;

	if (!csink_run_directory_read_head(dir_fd, name, &head))
		return false;
	return head.state == CSINK_REC_EXITED
		       ? !csink_proc_is_running(head.pid, 0)
		       : head.state == CSINK_REC_EXECED && csink_run_directory_has_next(dir_fd, name, &head);
}

/*
 * @path          of a run directory; NULL: of the one beside it that belongs to another user.
 * @trusts_heads  a recording that is finished by its header is not asked for: as long as that takes, no other process
 *                could open it for writing.
 */
static bool has_writers(int dir_fd, const char *path, bool trusts_heads)
{
	char beside_path[CSINK_RUN_DIRECTORY_PATH + 16];
	struct dirent **entries;
	bool found = false;
	int nr = scandirat(dir_fd, ".", &entries, NULL, NULL);

	for (int i = 0; i < nr && !found; i++) {
		CSINK_AUTO_CLOSE int beside = -1;

		if (csink_run_dir_is_recording(entries[i]->d_name)) {
			found = !(trusts_heads && is_finished(dir_fd, entries[i]->d_name)) &&
				(is_written(dir_fd, entries[i]->d_name) || is_in_exec(dir_fd, entries[i]->d_name));
			continue;
		}
		if (path)
			beside = csink_run_directory_beside(path, entries[i]->d_name, beside_path, sizeof(beside_path));
		if (beside >= 0)
			found = has_writers(beside, NULL, trusts_heads);
	}
	if (nr >= 0)
		free_entries(entries, nr);
	return found;
}

int csink_reading_take(struct csink_reading *reading, const char *path)
{
	struct stat st;

	*reading = (struct csink_reading){.fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
	if (reading->fd < 0 || fstat(reading->fd, &st))
		return -errno;
	if (st.st_uid != geteuid() || st.st_mode & 077)
		return -EPERM;
	if (flock(reading->fd, LOCK_EX | LOCK_NB) || fstat(reading->fd, &st))
		return -errno;
	/* Another process has removed it before the lock was ours. */
	if (!st.st_nlink)
		return -ENOENT;
	reading->nr = scandirat(reading->fd, ".", &reading->entries, is_recording, alphasort);
	if (reading->nr < 0)
		return -errno;
	/* Where the kernel does not know who writes (some network file systems), PIDs may be those of another host. */
	for (int i = 0; i < reading->nr; i++)
		if (csink_run_dir_is_written(reading->fd, reading->entries[i]->d_name) ||
		    is_in_exec(reading->fd, reading->entries[i]->d_name))
			return -EBUSY;
	return has_writers(reading->fd, path, false) ? -EBUSY : 0;
}

bool csink_reading_is_live(const struct csink_reading *reading, const char *path)
{
	return has_writers(reading->fd, path, false);
}

bool csink_run_is_live(const char *path)
{
	CSINK_AUTO_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd >= 0 && has_writers(fd, path, true);
}

int csink_reading_claim(struct csink_reading *reading, const char *path)
{
	/* The library starts us when the run's first process has ended: its recordings may be removed. Processes of the
	 * run that still live make profiles of their own when they end. */
	bool is_ended = getenv(CSINK_ENV_RUN_ENDED);

	/* Until the directory is gone, other readers wait in csink_reading_open(). */
	if (flock(reading->fd, LOCK_EX | LOCK_NB) && !is_ended && errno == EWOULDBLOCK)
		return -EWOULDBLOCK;
	if (!is_ended && has_writers(reading->fd, path, false))
		return -EBUSY;
	return 0;
}

int csink_reading_remove(struct csink_reading *reading, const char *path)
{
	int err = csink_reading_claim(reading, path);

	if (!err)
		csink_run_directory_clear(path);
	return err;
}

void csink_reading_close(struct csink_reading *reading)
{
	if (reading->fd >= 0)
		close(reading->fd);
	if (reading->nr >= 0)
		free_entries(reading->entries, reading->nr);
	*reading = (struct csink_reading){.fd = -1};
}
