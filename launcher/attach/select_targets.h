/* Which processes the user means: by number, by name, by control group. */
#ifndef CSINK_SELECT_TARGETS_H
#define CSINK_SELECT_TARGETS_H

#include <stddef.h>
#include <stdint.h>

#include "preload/api/pmc/targets.h"

/**
 * Numbers, separated by commas. Those that are no process are left out where others are there.
 * @why  on failure, one line: the error's name, what is wrong, what to do.
 * Returns 0, -EINVAL (no number), -ESRCH (none of them is there) or -ENOMEM.
 */
int csink_attach_choose_pids(const char *text, struct csink_pids *choice, char *why, size_t why_size);

/**
 * The processes whose name (the kernel's, or the file name of their first argument) matches an extended regular
 * expression; never ourselves, nor kernel threads.
 * Returns 0, -EINVAL (no expression), -ESRCH (none) or -ENOMEM.
 */
int csink_attach_choose_pattern(const char *pattern, struct csink_pids *choice, char *why, size_t why_size);

/** The process of a thread, or -ESRCH and why. */
int32_t csink_attach_process_of(int32_t tid, char *why, size_t why_size);

/**
 * Open a control group: a directory, or a path below where control groups are mounted (perf_event's, or version 2's).
 * Returns the fd, or -errno and why.
 */
int csink_attach_open_cgroup(const char *path, char *why, size_t why_size);

/** The processes that are in a control group, and in those below it, now. Returns 0 or -errno. */
int csink_attach_choose_cgroup(int cgroup_fd, struct csink_pids *choice);

#endif
