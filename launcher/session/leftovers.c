/* Run directories without a collector: see leftovers.h. */
#include "launcher/session/leftovers.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "include/internal/clock.h"
#include "launcher/base/proc.h"
#include "launcher/collect/recording_read.h"
#include "launcher/collect/run_reading.h"
#include "preload/core/opendir_at.h"
#include "preload/core/record/run_dir.h"

/* A process that has ended its recording waits for its profile to be made, which takes seconds at most. */
#define FINISHING_NS (60 * CSINK_NS_PER_S)

/* Is its process still there, and not done with it long ago? A pid that was given out again is no proof. */
static bool is_written(const struct csink_rec_header *header)
{
	if (header->pid <= 0 || !csink_proc_is_running(header->pid, 0))
		return false;
	return header->state == CSINK_REC_LIVE || csink_monotonic_ns() - header->end_monotonic_ns < FINISHING_NS;
}

/* Returns false if some process still writes there. */
static bool take_recordings(int dir_fd, struct csink_leftover *out)
{
	CSINK_AUTO_CLOSEDIR DIR *dir = csink_opendir_at(dir_fd, ".");
	struct csink_rec_header header;
	struct dirent *entry;
	bool written = false;
	char path[600];
	struct stat st;

	while (dir && (entry = readdir(dir))) {
		if (!csink_run_dir_is_recording(entry->d_name) ||
		    fstatat(dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW))
			continue;
		snprintf(path, sizeof(path), "%s/%s", out->path, entry->d_name);
		if (csink_recorded_read_header(path, &header, NULL, 0))
			continue;
		written |= is_written(&header);
		out->nr_processes += header.seq == 0;
		out->data_bytes += (uint64_t)st.st_blocks * 512;
		if (out->start_realtime_ns && header.start_realtime_ns >= out->start_realtime_ns)
			continue;
		out->start_realtime_ns = header.start_realtime_ns;
		memcpy(out->comm, header.comm, sizeof(out->comm));
	}
	return !written;
}

/* A run of root's, or one that began as root's: the directory of a process that changed its credentials belongs to its
 * new user. */
static bool is_ours(const char *path)
{
	struct stat st;

	return csink_run_dir_is_of(path, geteuid()) ||
	       (!geteuid() && !lstat(path, &st) && csink_run_dir_is_of(path, st.st_uid));
}

/* @is_live: of a run that goes on, which is not locked; else of one that has ended. */
static bool look(const char *place, const char *name, bool is_live, struct csink_leftover *out)
{
	CSINK_AUTO_CLOSE int fd = -1;

	memset(out, 0, sizeof(*out));
	if (snprintf(out->path, sizeof(out->path), "%s/%s", place, name) >= (int)sizeof(out->path) ||
	    !is_ours(out->path))
		return false;
	fd = open(out->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (is_live) {
		take_recordings(fd, out);
		return out->start_realtime_ns && csink_run_is_live(out->path);
	}
	/* A launcher holds the lock as long as it lives. */
	return !flock(fd, LOCK_EX | LOCK_NB) && take_recordings(fd, out) && out->start_realtime_ns;
}

static int compare(const void *a, const void *b)
{
	const struct csink_leftover *left = a, *right = b;

	return left->start_realtime_ns > right->start_realtime_ns ? -1
								  : left->start_realtime_ns < right->start_realtime_ns;
}

static uint32_t find(bool is_live, struct csink_leftover *out, uint32_t max)
{
	const char *places[CSINK_RUN_DIR_PLACES];
	struct csink_leftover one;
	uint32_t nr = 0;

	csink_run_dir_places(places);
	for (uint32_t i = 0; i < CSINK_RUN_DIR_PLACES; i++) {
		CSINK_AUTO_CLOSEDIR DIR *dir = NULL;
		bool again = false;
		struct dirent *entry;

		for (uint32_t k = 0; k < i && places[i]; k++)
			again |= places[k] && !strcmp(places[i], places[k]);
		dir = places[i] && !again ? opendir(places[i]) : NULL;
		while (dir && (entry = readdir(dir))) {
			if (strncmp(entry->d_name, CSINK_RUN_DIR_PREFIX, strlen(CSINK_RUN_DIR_PREFIX)) ||
			    strchr(entry->d_name, '.') || !look(places[i], entry->d_name, is_live, &one))
				continue;
			if (nr < max)
				out[nr] = one;
			nr++;
		}
	}
	qsort(out, CSINK_MIN(nr, max), sizeof(*out), compare);
	return nr;
}

uint32_t csink_leftovers_find(struct csink_leftover *out, uint32_t max)
{
	return find(false, out, max);
}

uint32_t csink_live_runs_find(struct csink_leftover *out, uint32_t max)
{
	return find(true, out, max);
}
