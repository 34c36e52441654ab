/*
 * The run folder: private (0700, ours, a name that cannot be guessed), on a memory file system where there is one. The
 * library writes its recordings there; the launcher makes it, reads it and removes it.
 */
#ifndef CSINK_LAUNCHER_RUN_FOLDER_H
#define CSINK_LAUNCHER_RUN_FOLDER_H

#include <limits.h>
#include <stdint.h>

struct csink_folder {
	char path[PATH_MAX];
	int fd;
};

/**
 * Make a run folder in the first of $XDG_RUNTIME_DIR (if private and in memory), /dev/shm, $TMPDIR, /tmp that takes it
 * and has room; for want of room, in the one with the most.
 * Returns 0, or -errno of the last place.
 */
int csink_folder_create(struct csink_folder *folder);

/**
 * How many processes still write recordings there.
 * @pids  the first max of them.
 */
uint32_t csink_folder_writers(const struct csink_folder *folder, int32_t *pids, uint32_t max);

/** Remove it and all that is in it. Safe against anything put there meanwhile: follows no link. Context: any thread. */
void csink_folder_remove(struct csink_folder *folder);

#endif
