/*
 * Reading a run directory that a run may still use, or that another command may be reading. Reading changes nothing: a
 * shared lock on the directory, which no run waits for, keeps other readers from removing what is being read. It is
 * removed only by the last reader, and only if the run has ended: no launcher holds its lock, and no process has one of
 * the recordings open or mapped for writing.
 */
#ifndef CSINK_RUN_READING_H
#define CSINK_RUN_READING_H

#include <stdbool.h>

struct dirent;

struct csink_reading {
	int fd;                  /* of the directory, with a shared lock; -1: none */
	struct dirent **entries; /* the recordings that were there at first, sorted */
	int nr;                  /* of them; -1: they could not be listed */
};

/**
 * Begin to read @path. Returns 0, -ENOMEM, -EBUSY (another process has had it locked for 5 s) or -errno of opening it;
 * close it in either case. Context: thread.
 */
int csink_reading_open(struct csink_reading *reading, const char *path);

/**
 * Begin to read @path, of a run that has ended, as its only reader.
 * Returns 0, -EBUSY (a process of the run lives), -EWOULDBLOCK (a launcher or another reader has it), -ENOENT (it is
 * gone), -EPERM (it is not this user's alone) or another -errno; close it in either case. Context: thread.
 */
int csink_reading_take(struct csink_reading *reading, const char *path);

/** Are all recordings still there that were there at first? If not, what was read is not all. Context: thread. */
bool csink_reading_is_whole(const struct csink_reading *reading);

/** Does a process still write there? @path as given to csink_reading_open(). Context: thread. */
bool csink_reading_is_live(const struct csink_reading *reading, const char *path);

/** The same of a directory that is not being read otherwise, without a lock on it. Context: thread. */
bool csink_run_is_live(const char *path);

/**
 * Take the recordings of a run for removal: other readers wait until @reading is closed.
 * @path  what was given to csink_reading_open().
 * Returns 0, -EBUSY (a process of the run lives: everything is kept) or -EWOULDBLOCK (kept for its launcher, or for
 * another reader). Context: thread.
 */
int csink_reading_claim(struct csink_reading *reading, const char *path);

/** Claim the recordings of a run that has ended, and remove them with their directory. Returns as above. Context:
 * thread. */
int csink_reading_remove(struct csink_reading *reading, const char *path);

void csink_reading_close(struct csink_reading *reading);

#endif
