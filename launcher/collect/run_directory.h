/*
 * The run folder: private (0700, ours, a name that cannot be guessed), on a memory file system where there is one. The
 * library writes its recordings there; the launcher makes it, reads it and removes it.
 */
#ifndef CSINK_RUN_DIRECTORY_H
#define CSINK_RUN_DIRECTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CSINK_FOLDER_PATH 256 /* what the library has room for */

struct csink_folder {
	char path[CSINK_FOLDER_PATH];
	int fd; /* < 0: there is none */
};

/** Make the run folder where csink_run_dir_create finds a place. Returns 0 or its -errno. */
int csink_folder_create(struct csink_folder *folder);

/**
 * How many processes still write recordings there.
 * @pids  the first max of them.
 */
uint32_t csink_folder_writers(const struct csink_folder *folder, int32_t *pids, uint32_t max);

/** Whether a name in a run folder is a recording's. Context: any. */
bool csink_folder_is_recording(const char *name);

/**
 * The folder beside a run folder that a word in it speaks of (preload/core/record/run_dir.h).
 * @word  a name in the run folder.
 * @path  its path, of CSINK_FOLDER_PATH + 16.
 * Returns an fd of it, proved to be that user's alone; -ENOENT if @word is no such word, or -errno. Context: any.
 */
int csink_folder_beside(const char *folder, const char *word, char *path, size_t size);

/**
 * Remove the recordings of a run folder that have been collected, and the folder if nothing else is in it. Context:
 * thread.
 */
void csink_folder_clear(const char *path);

/**
 * Remove it and all that is in it. Processes that still write there keep what they have mapped, and make a profile of
 * their own of it at their end. Safe against anything put there meanwhile: follows no link. Context: any thread.
 */
void csink_folder_remove(struct csink_folder *folder);

#endif
