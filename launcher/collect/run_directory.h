/*
 * The run directory: private (0700, ours, a name that cannot be guessed), on a memory file system where there is one.
 * The library writes its recordings there; the launcher makes it, reads it and removes it.
 */
#ifndef CSINK_RUN_DIRECTORY_H
#define CSINK_RUN_DIRECTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CSINK_RUN_DIRECTORY_PATH 256 /* what the library has room for */

/* Beside CSINK_RUN_DIR_SLICES: what becomes that once a slice is written, and the lock of the process that writes them,
 * with its pid. */
#define CSINK_RUN_DIRECTORY_SLICES_NEW "slices.new"
#define CSINK_RUN_DIRECTORY_SLICES_LOCK "slices.lock"

struct csink_rec_header;

struct csink_run_directory {
	char path[CSINK_RUN_DIRECTORY_PATH];
	int fd; /* < 0: there is none */
};

/** Make the run directory, in the first place of csink_run_dir_create that has room for recordings. Returns 0 or
 * -errno. */
int csink_run_directory_create(struct csink_run_directory *directory);

/** Read the header of a recording there. Returns false if it is none, or names no process. */
bool csink_run_directory_read_head(int dir_fd, const char *name, struct csink_rec_header *head);

/**
 * Mark the recordings there, which are to be read now: those of processes that go on are read as they are at this
 * moment, and at its end each of them makes a profile of its own of what came after it. What they start from then on is
 * not profiled.
 * @dir_fd     of the directory.
 * @directory  its path.
 */
void csink_run_directory_mark(int dir_fd, const char *directory);

/**
 * How many processes still write recordings there.
 * @pids  the first max of them.
 */
uint32_t csink_run_directory_writers(const struct csink_run_directory *directory, int32_t *pids, uint32_t max);

/**
 * The directory beside a run directory that a word in it speaks of (preload/core/record/run_dir.h).
 * @word  a name in the run directory.
 * @path  its path, of CSINK_RUN_DIRECTORY_PATH + 16.
 * Returns an fd of it, proved to be that user's alone; -ENOENT if @word is no such word, or -errno. Context: any.
 */
int csink_run_directory_beside(const char *directory, const char *word, char *path, size_t size);

/**
 * Has the process of a recording run another program since, by the recording of that one?
 * @dir_fd, @name  of the recording, as for openat(2). Context: any thread.
 */
bool csink_run_directory_has_next(int dir_fd, const char *name, const struct csink_rec_header *head);

/**
 * Remove the recordings of a run directory that have been collected, and the directory if nothing else is in it.
 * Context: thread.
 */
void csink_run_directory_clear(const char *path);

/**
 * Remove it and all that is in it. Processes that still write there keep what they have mapped, and make a profile of
 * their own of it at their end. Safe against anything put there meanwhile: follows no link. Context: any thread.
 */
void csink_run_directory_remove(struct csink_run_directory *directory);

#endif
