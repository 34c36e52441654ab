/*
 * What the next slices of a run need, in the run's directory: so that another process can go on with them where the one
 * that wrote them was killed. It is stored together with the file and the path of the slice that comes next, and counts
 * from the moment on at which that file has its name: whenever a process is killed, each slice is written once. Context
 * of everything here: thread.
 */
#ifndef CSINK_SLICE_STATE_H
#define CSINK_SLICE_STATE_H

#include <stdbool.h>
#include <stdint.h>

struct csink_moment;
struct csink_slices;

/* The slice that is about to be written, and what follows it. */
struct csink_slice_next {
	const struct csink_moment *to; /* up to where it reaches; NULL: unknown */
	const char *path;
	uint64_t number; /* next_number after it */
	bool is_last;
};

/** Store it. @fd  its file, which gets its name next. Returns 0 or -errno: then it must not get it. */
int csink_slice_state_prepare(const struct csink_slices *slices, const struct csink_slice_next *next, int fd);

/** The slice is written: from now on what was stored counts. */
void csink_slice_state_commit(const struct csink_slices *slices);

/** The slice could not be written. */
void csink_slice_state_discard(const struct csink_slices *slices);

/** Store how far the slices are. Returns 0 or -errno; then what was stored before counts. */
int csink_slice_state_store(const struct csink_slices *slices);

/** Can it be read? Returns 0, or as csink_slice_state_load(). Changes nothing. */
int csink_slice_state_check(const char *run_dir);

/**
 * Go on with the slices of a run: names, clock, bounds, how far they are.
 * @run_dir   its directory.
 * @is_ended  the last one is written already.
 * Returns 0; -ENOENT: the run has no slices; -ENODATA: how far they are cannot be read, so that the next one has the
 * whole run; -EBADMSG: damaged, or of another version; or -errno.
 */
int csink_slice_state_load(struct csink_slices *slices, const char *run_dir, bool *is_ended);

#endif
