/* The run directory: see run_directory.h. */
#include "launcher/collect/run_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/boundary.h"
#include "include/internal/cleanup.h"
#include "include/internal/recording_format.h"
#include "launcher/base/proc.h"
#include "launcher/collect/recording_cut.h"
#include "preload/core/opendir_at.h"
#include "preload/core/record/run_dir.h"

#define MAX_LEVELS 4

/* Have some small recordings room there? A file system that cannot answer has. */
static bool has_room(int dir_fd)
{
	enum { ROOM = 64 * 1024 };
	CSINK_AUTO_CLOSE int fd = openat(dir_fd, "room", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int err;

	if (fd < 0)
		return errno != ENOSPC && errno != EDQUOT;
	err = posix_fallocate(fd, 0, ROOM);
	unlinkat(dir_fd, "room", 0);
	return err != ENOSPC && err != EDQUOT;
}

static int create_in(struct csink_run_directory *directory, unsigned int *place)
{
	int err = csink_run_dir_create(place, directory->path, sizeof(directory->path));

	directory->fd = -1;
	if (err)
		return err;
	/* A umask may have taken our own rights away. */
	if (!chmod(directory->path, 0700))
		directory->fd = open(directory->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	/* As long as this is held, it is no leftover (leftovers.c). */
	if (directory->fd >= 0 && !flock(directory->fd, LOCK_SH)) {
		if (has_room(directory->fd))
			return 0;
		errno = ENOSPC;
	}
	err = -errno;
	if (directory->fd >= 0)
		close(directory->fd);
	directory->fd = -1;
	rmdir(directory->path);
	return err;
}

int csink_run_directory_create(struct csink_run_directory *directory)
{
	unsigned int place = 0;
	int err, full = 0;

	while ((err = create_in(directory, &place)) == -ENOSPC && place < CSINK_RUN_DIR_PLACES)
		full = err;
	return err && full ? full : err;
}

bool csink_run_directory_read_head(int dir_fd, const char *name, struct csink_rec_header *head)
{
	CSINK_AUTO_CLOSE int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);

	return fd >= 0 && pread(fd, head, sizeof(*head), 0) == (ssize_t)sizeof(*head) &&
	       head->magic == CSINK_REC_MAGIC && head->pid > 0;
}

bool csink_run_directory_has_next(int dir_fd, const char *name, const struct csink_rec_header *head)
{
	const char *slash = strrchr(name, '/');
	char next[CSINK_RUN_DIRECTORY_PATH + 64];

	snprintf(next, sizeof(next), "%.*s%d.%u" CSINK_REC_SUFFIX, slash ? (int)(slash + 1 - name) : 0, name,
		 (int)head->pid, head->seq + 1);
	return !faccessat(dir_fd, next, F_OK, 0);
}

/* Is the recording of that name written by a process that lives? */
static int32_t living_writer(int dir_fd, const char *name)
{
	struct csink_rec_header head;

	if (!csink_run_directory_read_head(dir_fd, name, &head) || head.state != CSINK_REC_LIVE)
		return 0;
	return csink_proc_is_running(head.pid, 0) ? head.pid : 0;
}

int csink_run_directory_beside(const char *directory, const char *word, char *path, size_t size)
{
	unsigned int uid;
	struct stat st;
	int end = 0, fd;

	if (sscanf(word, "%u" CSINK_RUN_DIR_USER "%n", &uid, &end) != 1 || !end || word[end])
		return -ENOENT;
	if (csink_run_dir_beside(directory, uid, path, size))
		return -ENAMETOOLONG;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (!fstat(fd, &st) && st.st_uid == uid && !(st.st_mode & 077))
		return fd;
	close(fd);
	return -EPERM;
}

static uint32_t count_writers(int dir_fd, const char *directory, int32_t *pids, uint32_t max)
{
	CSINK_AUTO_CLOSEDIR DIR *dir = csink_opendir_at(dir_fd, ".");
	char path[CSINK_RUN_DIRECTORY_PATH + 16];
	struct dirent *entry;
	uint32_t nr = 0;

	while (dir && (entry = readdir(dir))) {
		int32_t pid = csink_run_dir_is_recording(entry->d_name) ? living_writer(dir_fd, entry->d_name) : 0;
		CSINK_AUTO_CLOSE int beside = -1;

		if (pid && nr < max)
			pids[nr] = pid;
		nr += pid != 0;
		if (directory)
			beside = csink_run_directory_beside(directory, entry->d_name, path, sizeof(path));
		if (beside >= 0)
			nr += count_writers(beside, NULL, pids + CSINK_MIN(nr, max), max - CSINK_MIN(nr, max));
	}
	return nr;
}

uint32_t csink_run_directory_writers(const struct csink_run_directory *directory, int32_t *pids, uint32_t max)
{
	return count_writers(directory->fd, directory->path, pids, max);
}

static void read_head(int fd, struct csink_rec_header *head)
{
	if (pread(fd, head, sizeof(*head), 0) != (ssize_t)sizeof(*head))
		memset(head, 0, sizeof(*head));
	/* Another version has other things there: of a library that was replaced on disk while its process ran. */
	if (head->version != CSINK_REC_VERSION)
		memset(&head->cut, 0, sizeof(head->cut));
}

/*
 * @cuts  the recording is to be read as it is now: see struct csink_rec_cut.
 * A process that goes on keeps what it adds, once it knows that its file is gone. Of one that has ended, a child may
 * just begin to run. A file without a header was made just now.
 */
static void mark_collected(int dir_fd, const char *name, bool cuts)
{
	struct csink_rec_header head = {0};
	CSINK_AUTO_CLOSE int fd = openat(dir_fd, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	uint32_t word = CSINK_REC_COLLECTED;

	if (fd < 0)
		return;
	read_head(fd, &head);
	/* A mark that the process has seen at its end stays: the process may be making its profile now. */
	if (head.magic == CSINK_REC_MAGIC && (head.collected == CSINK_REC_COLLECTED || head.cut.is_continued))
		return;
	if (cuts && head.magic == CSINK_REC_MAGIC && head.state != CSINK_REC_EXITED) {
		if (csink_recording_cut(fd))
			errno = 0; /* its profile will have all that it did, and a note */
		read_head(fd, &head);
	}
	if (head.magic == CSINK_REC_MAGIC && head.state == CSINK_REC_EXITED) {
		word = CSINK_REC_COLLECTED_WHOLE;
		if (head.cut.bytes)
			csink_recording_uncut(fd);
	}
	if ((!head.magic || head.magic == CSINK_REC_MAGIC) &&
	    pwrite(fd, &word, sizeof(word), offsetof(struct csink_rec_header, collected)) < 0)
		errno = 0; /* it will look for its file */
}

static void mark_all_collected(int dir_fd, bool cuts)
{
	CSINK_AUTO_CLOSEDIR DIR *dir = csink_opendir_at(dir_fd, ".");
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (csink_run_dir_is_recording(entry->d_name))
			mark_collected(dir_fd, entry->d_name, cuts);
}

void csink_run_directory_mark(int dir_fd, const char *directory)
{
	CSINK_AUTO_CLOSEDIR DIR *dir = csink_opendir_at(dir_fd, ".");
	char path[CSINK_RUN_DIRECTORY_PATH + 16];
	struct dirent *entry;

	mark_all_collected(dir_fd, true);
	while (dir && (entry = readdir(dir))) {
		CSINK_AUTO_CLOSE int beside = csink_run_directory_beside(directory, entry->d_name, path, sizeof(path));

		if (beside >= 0)
			mark_all_collected(beside, true);
	}
}

static void empty(int dir_fd, int level);

/* Returns 0 if the directory that a word speaks of is gone, or -errno. */
static int remove_beside(const char *directory, const char *word)
{
	char path[CSINK_RUN_DIRECTORY_PATH + 16];
	CSINK_AUTO_CLOSE int fd = csink_run_directory_beside(directory, word, path, sizeof(path));

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	empty(fd, 0);
	return rmdir(path) ? -errno : 0;
}

/* What a run leaves beside its recordings. */
static bool is_of_run(const char *name)
{
	static const char *const names[] = {CSINK_BOUNDARY_FILE, CSINK_BOUNDARY_SOCKET, CSINK_RUN_DIR_SLICES,
					    CSINK_RUN_DIRECTORY_SLICES_NEW, CSINK_RUN_DIRECTORY_SLICES_LOCK};

	for (uint32_t i = 0; i < CSINK_ARRAY_SIZE(names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

/* A word whose directory could not be removed stays, so that the next try finds the directory. Returns 0, or the
 * -errno of such a directory. */
static int empty_of_recordings(int dir_fd, const char *directory)
{
	CSINK_AUTO_CLOSEDIR DIR *dir = csink_opendir_at(dir_fd, ".");
	struct dirent *entry;
	int err = 0;

	while (dir && (entry = readdir(dir))) {
		int kept = 0;

		if (csink_run_dir_is_recording(entry->d_name))
			mark_collected(dir_fd, entry->d_name, false);
		else if (strstr(entry->d_name, CSINK_RUN_DIR_USER))
			kept = remove_beside(directory, entry->d_name);
		else if (!is_of_run(entry->d_name))
			continue;
		err = kept ? kept : err;
		if (!kept)
			unlinkat(dir_fd, entry->d_name, 0);
	}
	return err;
}

void csink_run_directory_clear(const char *path)
{
	CSINK_AUTO_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return;
	empty_of_recordings(fd, path);
	rmdir(path);
}

static void empty(int dir_fd, int level)
{
	CSINK_AUTO_CLOSEDIR DIR *dir = csink_opendir_at(dir_fd, ".");
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		CSINK_AUTO_CLOSE int sub = -1;

		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (csink_run_dir_is_recording(entry->d_name))
			mark_collected(dir_fd, entry->d_name, false);
		if (!unlinkat(dir_fd, entry->d_name, 0) || level == MAX_LEVELS)
			continue;
		sub = openat(dir_fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (sub < 0)
			continue;
		empty(sub, level + 1);
		unlinkat(dir_fd, entry->d_name, AT_REMOVEDIR);
	}
}

/*
 * Children of processes that still run look for the directory. A child that found it half removed would lose its
 * recording without notice. So all recordings are marked first; then the directory is renamed, so that no child finds
 * it; then recordings that were added in between are marked and removed.
 */
void csink_run_directory_remove(struct csink_run_directory *directory)
{
	enum { ROUNDS = 100 };
	char gone[sizeof(directory->path) + 8];
	const char *path = directory->path;

	if (directory->fd < 0)
		return;
	mark_all_collected(directory->fd, false);
	snprintf(gone, sizeof(gone), "%s-gone", directory->path);
	if (!rename(directory->path, gone))
		path = gone;
	for (int i = 0; i < ROUNDS; i++) {
		/* A process of the other user may just have added a recording: the next round removes it. */
		if (empty_of_recordings(directory->fd, directory->path) == -ENOTEMPTY && i < ROUNDS - 1)
			continue;
		empty(directory->fd, 0);
		if (!rmdir(path) || (errno != ENOTEMPTY && errno != EEXIST))
			break;
	}
	close(directory->fd);
	directory->fd = -1;
}
