/*
 * A process without launcher that makes the profile of its run at its end, and gives up its rights before: what it has
 * recorded goes to a run directory of the user that it becomes.
 */
#ifndef CSINK_HANDOVER_H
#define CSINK_HANDOVER_H

#include <stdbool.h>
#include <sys/types.h>

/**
 * Is it this process that makes the profile? Context: any.
 */
bool csink_handover_is_owner(void);

/**
 * Make a run directory for @uid and move to it what this process may give away: its own recording, and those of
 * processes that have ended. A recording that a process with more rights still writes stays where it is: no process
 * with fewer rights may change it while it is written. The configuration and the environment then name the new
 * directory. Returns 0 or -errno; then nothing was changed. Context: thread, with the right to chown.
 */
int csink_handover_begin(uid_t uid);

/** The process did not become that user: take the new directory back. Context: thread. */
void csink_handover_undo(void);

/** Either way: have the slices go on, if the run has some, which stopped at csink_handover_begin(). Context: thread. */
void csink_handover_end(void);

/** True if recordings stayed behind. @dir: set to the directory that they are in. Context: any. */
bool csink_handover_left(const char **dir);

#endif
