/* The run folder: see folder.h. */
#include "launcher/run/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "include/internal/recording.h"
#include "launcher/run/proc.h"
#include "preload/record/run_dir.h"

#define MAX_LEVELS 4

int csink_folder_create(struct csink_folder *folder)
{
	int err = csink_run_dir_create(folder->path, sizeof(folder->path));

	folder->fd = -1;
	if (err)
		return err;
	/* A umask may have taken our own rights away. */
	if (!chmod(folder->path, 0700))
		folder->fd = open(folder->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (folder->fd >= 0)
		return 0;
	err = -errno;
	rmdir(folder->path);
	return err;
}

/* Is the recording of that name written by a process that lives? */
static int32_t living_writer(int dir_fd, const char *name)
{
	struct csink_rec_header head;
	int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	ssize_t len;

	if (fd < 0)
		return 0;
	len = pread(fd, &head, sizeof(head), 0);
	close(fd);
	if (len != (ssize_t)sizeof(head) || head.magic != CSINK_REC_MAGIC || head.state != CSINK_REC_LIVE ||
	    head.pid <= 0)
		return 0;
	return csink_proc_is_running(head.pid, 0) ? head.pid : 0;
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
