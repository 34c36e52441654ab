/* The run folder: see folder.h. */
#include "launcher/run/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/recording.h"
#include "launcher/run/proc.h"

/* Enough for some hundred processes; where less is free, another place may be better. */
#define ROOM_BYTES (32ULL << 20)
#define MAX_PLACES 4
#define MAX_LEVELS 4

static bool is_in_memory(const char *path)
{
	struct statfs fs;

	return !statfs(path, &fs) && fs.f_type == TMPFS_MAGIC;
}

static bool is_private(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 077);
}

static uint64_t room_bytes(const char *path)
{
	struct statvfs fs;

	if (access(path, W_OK | X_OK) || statvfs(path, &fs) || fs.f_flag & ST_RDONLY)
		return 0;
	return (uint64_t)fs.f_bavail * fs.f_frsize;
}

/* The places to try, best first. */
static uint32_t list_places(const char **places)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR"), *tmp = getenv("TMPDIR");
	uint32_t nr = 0;

	if (runtime && *runtime == '/' && is_private(runtime) && is_in_memory(runtime))
		places[nr++] = runtime;
	if (is_in_memory("/dev/shm"))
		places[nr++] = "/dev/shm";
	if (tmp && *tmp == '/')
		places[nr++] = tmp;
	places[nr++] = "/tmp";
	return nr;
}

static int create_in(const char *place, struct csink_folder *folder)
{
	unsigned char random[16];
	char name[2 * sizeof(random) + 1];
	struct stat st;
	int err;

	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return -EIO;
	for (size_t i = 0; i < sizeof(random); i++)
		snprintf(name + 2 * i, 3, "%02x", random[i]);
	if (snprintf(folder->path, sizeof(folder->path), "%s/countersink-%s", place, name) >= (int)sizeof(folder->path))
		return -ENAMETOOLONG;
	if (mkdir(folder->path, 0700))
		return -errno;
	folder->fd = open(folder->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	/* A umask may have taken our own rights away. */
	if (folder->fd >= 0 && !fstat(folder->fd, &st) && st.st_uid == geteuid() && !fchmod(folder->fd, 0700))
		return 0;
	err = errno ? -errno : -EACCES;
	if (folder->fd >= 0)
		close(folder->fd);
	rmdir(folder->path);
	return err;
}

int csink_folder_create(struct csink_folder *folder)
{
	const char *places[MAX_PLACES];
	uint32_t nr = list_places(places);
	uint64_t room[MAX_PLACES], most = 0;
	int err = -ENOSPC;

	for (uint32_t i = 0; i < nr; i++) {
		room[i] = room_bytes(places[i]);
		most = CSINK_MAX(most, room[i]);
	}
	for (uint32_t i = 0; i < nr; i++) {
		if (!room[i] || room[i] < CSINK_MIN(most, ROOM_BYTES))
			continue;
		err = create_in(places[i], folder);
		if (!err)
			return 0;
	}
	return err;
}

/* Is the recording of that name written by a process that lives? */
static int32_t living_writer(int dir_fd, const char *name)
{
	struct csink_rec_header head;
	struct csink_proc_stat stat;
	int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	ssize_t len;

	if (fd < 0)
		return 0;
	len = pread(fd, &head, sizeof(head), 0);
	close(fd);
	if (len != (ssize_t)sizeof(head) || head.magic != CSINK_REC_MAGIC || head.state != CSINK_REC_LIVE ||
	    head.pid <= 0)
		return 0;
	if (!csink_proc_is_running(head.pid, 0) || csink_proc_stat(head.pid, &stat))
		return 0;
	return !head.starttime_ticks || head.starttime_ticks == stat.start_ticks ? head.pid : 0;
}

uint32_t csink_folder_writers(const struct csink_folder *folder, int32_t *pids, uint32_t max)
{
	int fd = openat(folder->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	uint32_t nr = 0;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	while ((entry = readdir(dir))) {
		const char *suffix = strstr(entry->d_name, CSINK_REC_SUFFIX);
		int32_t pid;

		if (!suffix || suffix[strlen(CSINK_REC_SUFFIX)])
			continue;
		pid = living_writer(folder->fd, entry->d_name);
		if (!pid)
			continue;
		if (nr < max)
			pids[nr] = pid;
		nr++;
	}
	closedir(dir);
	return nr;
}

static void empty(int dir_fd, int level)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((entry = readdir(dir))) {
		int sub;

		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (!unlinkat(dir_fd, entry->d_name, 0) || level == MAX_LEVELS)
			continue;
		sub = openat(dir_fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (sub < 0)
			continue;
		empty(sub, level + 1);
		close(sub);
		unlinkat(dir_fd, entry->d_name, AT_REMOVEDIR);
	}
	closedir(dir);
}

void csink_folder_remove(struct csink_folder *folder)
{
	if (folder->fd < 0)
		return;
	empty(folder->fd, 0);
	close(folder->fd);
	folder->fd = -1;
	rmdir(folder->path);
}
