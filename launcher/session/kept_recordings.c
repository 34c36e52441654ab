/* See kept_recordings.h. Runs in the launcher's one thread. */
#include "launcher/session/kept_recordings.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "include/internal/recording_format.h"
#include "launcher/collect/run_directory.h"
#include "preload/core/opendir_at.h"
#include "preload/core/record/output_path.h"
#include "preload/core/record/run_dir.h"

#define MAX_BYTES (64ULL << 20)

static int copy(int from_dir, int to_dir, const char *name, uint64_t *left)
{
	CSINK_AUTO_CLOSE int from = openat(from_dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK), to = -1;
	struct csink_rec_header header;
	struct stat st;
	uint64_t bytes;
	ssize_t n = 1;

	/* None that could be read later. */
	if (from < 0 || fstat(from, &st) || !S_ISREG(st.st_mode) ||
	    !csink_run_directory_read_head(from_dir, name, &header))
		return 0;
	/* One that was cut is read as far as it goes. */
	bytes = CSINK_MIN((uint64_t)header.nr_blocks * CSINK_REC_BLOCK, (uint64_t)st.st_size);
	if (bytes > *left)
		return -EFBIG;
	*left -= bytes;
	to = openat(to_dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (to < 0)
		return -errno;
	for (; bytes && n; bytes -= (uint64_t)n) {
		n = sendfile(to, from, NULL, bytes);
		if (n < 0)
			return -errno;
	}
	return 0;
}

/* Remove a directory of ours, with the recordings in it. */
static void remove_hidden(const char *path)
{
	CSINK_AUTO_CLOSEDIR DIR *dir = csink_opendir_at(AT_FDCWD, path);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (csink_run_dir_is_recording(entry->d_name))
			unlinkat(dirfd(dir), entry->d_name, 0);
	rmdir(path);
}

static int copy_all(const char *directory, const char *path)
{
	CSINK_AUTO_CLOSEDIR DIR *from = opendir(directory);
	CSINK_AUTO_CLOSE int to = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	uint64_t left = MAX_BYTES;
	struct dirent *entry;
	int err = from && to >= 0 ? 0 : -errno;

	while (!err && (entry = readdir(from)))
		if (csink_run_dir_is_recording(entry->d_name))
			err = copy(dirfd(from), to, entry->d_name, &left);
	return err ?: left == MAX_BYTES ? -ENOENT : 0;
}

/* What is incomplete has a hidden name, so that a pattern of names finds whole ones alone. */
void csink_recordings_keep(struct csink_kept_recordings *kept, const char *directory, const char *output)
{
	const char *name = csink_output_name(output);
	char hidden[sizeof(kept->path)];
	int parent = (int)(name - output);

	kept->path[0] = '\0';
	if (snprintf(hidden, sizeof(hidden), "%.*s.%s.recordings-XXXXXX", parent, output, name) >=
		    (int)sizeof(hidden) ||
	    !mkdtemp(hidden))
		return;
	snprintf(kept->path, sizeof(kept->path), "%.*s%s", parent, output, hidden + parent + 1);
	if (copy_all(directory, hidden) || rename(hidden, kept->path)) {
		remove_hidden(hidden);
		kept->path[0] = '\0';
	}
}

void csink_recordings_drop(struct csink_kept_recordings *kept)
{
	const char *name = csink_output_name(kept->path);
	char hidden[2 * PATH_MAX];

	if (!kept->path[0])
		return;
	snprintf(hidden, sizeof(hidden), "%.*s.%s", (int)(name - kept->path), kept->path, name);
	remove_hidden(rename(kept->path, hidden) ? kept->path : hidden);
	kept->path[0] = '\0';
}
