/*
 * The cut of a recording whose process goes on: what is read for the run's profile is put aside in the file, and the
 * profile that the process leaves at its end has what came after it. See struct csink_rec_cut.
 */
#ifndef CSINK_RECORDING_CUT_H
#define CSINK_RECORDING_CUT_H

#include "launcher/collect/recording_read.h"

/**
 * Copy what a recording has now behind its end, and note in its header where. Where that fails nothing stays: the
 * process's own profile then has all that it did.
 * @fd  open for reading and writing.
 * Returns 0, -EBADMSG (no recording, or of another version), or what reading and writing gave. Context: thread; the
 * process may be writing.
 */
int csink_recording_cut(int fd);

/** Take the cut back: the process has ended, and is read as a whole. */
void csink_recording_uncut(int fd);

/**
 * Take out of a recording what was in it before.
 * @before   the same recording as it was then.
 * @time_ns  CLOCK_MONOTONIC of that moment.
 */
void csink_recorded_subtract(struct csink_recorded *rec, const struct csink_recorded *before, uint64_t time_ns);

#endif
