/* Where the pictures of `countersink top` come from: the recordings of a run that goes on. Nothing of it is changed. */
#ifndef CSINK_TOP_SOURCE_H
#define CSINK_TOP_SOURCE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct csink_moment;

struct csink_top_source {
	char path[PATH_MAX]; /* the run directory, as it is reached */
	char name[PATH_MAX]; /* what was asked for, for people */
	int32_t pid;         /* of the one process that is watched; 0: all of the run */
	int32_t own_pid;     /* as it calls itself */
};

/**
 * Find what is asked for.
 * @path  a run directory; NULL: by pid.
 * @why   on failure, one line.
 * Returns 0, -ENOTDIR or -ENOENT (no run directory), -ESRCH (no process, or one that is not profiled), -EACCES (another
 * user's), -ESTALE (a run that has ended). Context: thread.
 */
int csink_top_source_open(struct csink_top_source *source, const char *path, int32_t pid, char *why, size_t why_len);

/**
 * Take what there is now. Returns 0 and *out (csink_moment_free it), -ESTALE (the run, or the process, has ended), or
 * another -errno.
 */
int csink_top_source_take(const struct csink_top_source *source, struct csink_moment **out);

#endif
