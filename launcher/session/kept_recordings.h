/*
 * Recordings beside the output, while a profile is made of them: for a launcher that may be killed meanwhile. Launchers
 * of parallel jobs send SIGTERM, and SIGKILL a second later; the run directory is in a memory that may end with the
 * job.
 */
#ifndef CSINK_KEPT_RECORDINGS_H
#define CSINK_KEPT_RECORDINGS_H

#include <limits.h>

struct csink_kept_recordings {
	char path[PATH_MAX + 32]; /* of the directory, OUTPUT.recordings-XXXXXX; "": there is none */
};

/**
 * Copy the recordings of a run directory, as far as they are written; 64 MiB at most, or none. What fails leaves
 * nothing.
 * @output  of the profile.
 * Context: thread.
 */
void csink_recordings_keep(struct csink_kept_recordings *kept, const char *directory, const char *output);

/** Remove them: the profile is written. Context: thread. */
void csink_recordings_drop(struct csink_kept_recordings *kept);

#endif
