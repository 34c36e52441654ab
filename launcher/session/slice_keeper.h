/*
 * Slices of a run without a launcher: a process of countersink's own, the keeper, writes them as long as a process of
 * the run lives, and then the last one. How far they are is stored (slice_state.h), so that another process can take
 * the keeper's place at any moment: where it was killed, or to end the run. Context of everything here: thread.
 */
#ifndef CSINK_SLICE_KEEPER_H
#define CSINK_SLICE_KEEPER_H

#include <stdbool.h>
#include <stdint.h>

#include "launcher/collect/collect.h"
#include "launcher/collect/run_directory.h"
#include "launcher/session/slices.h"

struct csink_slice_keeper {
	struct csink_slices slices; /* on_written and arg are the caller's */
	struct csink_run_directory directory;
	int lock_fd;                  /* -1: it is not held */
	bool is_ended;                /* the last slice is written */
	struct csink_outside outside; /* of the last slice, where something is to be said */
};

/** Has the run of a directory slices of this kind? */
bool csink_slice_keeper_is_of(const char *run_dir);

/**
 * Be the one that writes the slices of a run: the keeper that does so now ends, once it has written what it is at.
 * Returns 0, -EPERM (the directory is not this user's alone), -EBUSY (the keeper does not end), -EALREADY (it
 * is of another version, and goes on), or -errno; release it in any case.
 */
int csink_slice_keeper_take(struct csink_slice_keeper *keeper, const char *run_dir);

/** Go on with the slices that were written until now. Returns 0, or as csink_slice_state_load(). */
int csink_slice_keeper_load(struct csink_slice_keeper *keeper);

/** Begin with them, as slices describe them. Returns 0 or -errno: nothing is stored. */
int csink_slice_keeper_begin(struct csink_slice_keeper *keeper);

/** Does a process of the run go on? One that has done its last work, and waits for this, does not. */
bool csink_slice_keeper_goes_on(const struct csink_slice_keeper *keeper);

/**
 * Write slices until no process of the run lives, then the last one, and remove what is left of the run. Another
 * process may end this one meanwhile. Returns as csink_slice_keeper_end().
 */
int csink_slice_keeper_run(struct csink_slice_keeper *keeper);

/**
 * Go on in a process of its own, in the background of the program whose library started this one.
 * Returns 1 in that process; 0: it has the keeper now; or -errno.
 */
int csink_slice_keeper_detach(struct csink_slice_keeper *keeper);

/** Write the last slice, if that was not done. Returns as csink_slices_finish(). */
int csink_slice_keeper_end(struct csink_slice_keeper *keeper);

/** Remove the run's directory: everything of it is in slices. */
void csink_slice_keeper_remove(struct csink_slice_keeper *keeper);

/** Leave them to a process that has the directory's recordings, and what is stored, in another one. */
void csink_slice_keeper_leave(struct csink_slice_keeper *keeper);

void csink_slice_keeper_release(struct csink_slice_keeper *keeper);

/**
 * Write the last slice of a run that was killed, as was its keeper; the caller has its recordings for itself
 * (launcher/collect/run_reading.h).
 * @to  where that slice is.
 * Returns 0, -ENOENT (the run has no slices) or another -errno, and why.
 */
int csink_slice_keeper_salvage(const char *run_dir, char to[PATH_MAX], char *why, size_t why_size);

#endif
