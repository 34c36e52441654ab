/*
 * Programs that are run for each reservation: a directory of hooks, each run with the word "reserve" before the
 * counters are used and with "release" after, so that any daemon can be asked to back off. Bounded in time: one that
 * does not end is killed, with its process group. Used by launcher/session/reservation.c.
 *
 * A hook is an executable file whose name has letters, digits, '-' and '_' only (as run-parts(8) has it), which belongs
 * to root or to this user and which no other user may write. The same holds for its directory and for every directory
 * on the way to it, also through links (a sticky one may be written by all): so no other user can replace the file.
 * Hooks run one after the other in the order of their names, and in the opposite order for release.
 * COUNTERSINK_RESERVE_PID is the process that holds the reservation: it ends with that process, also when that is
 * killed and no "release" comes. Where that variable is set already, in a hook that uses countersink itself, no hook is
 * run.
 */
#ifndef CSINK_HOOKS_H
#define CSINK_HOOKS_H

#include <limits.h>
#include <stdint.h>

#include "include/internal/base.h"

#define CSINK_MAX_HOOKS 32
#define CSINK_HOOK_NAME 64
#define CSINK_MAX_HOOK_ERRORS 8

struct csink_hooks {
	char directory[PATH_MAX];
	uint32_t nr; /* hooks that were started with "reserve", and get "release" */
	char names[CSINK_MAX_HOOKS][CSINK_HOOK_NAME];
	uint32_t nr_errors; /* what went wrong since the last call; lines beyond the maximum are counted only */
	char errors[CSINK_MAX_HOOK_ERRORS][320];
};

/** How many of the errors are there as lines. */
static inline uint32_t csink_hooks_nr_lines(const struct csink_hooks *hooks)
{
	return CSINK_MIN(hooks->nr_errors, (uint32_t)CSINK_MAX_HOOK_ERRORS);
}

/**
 * Run them all with "reserve".
 * @directory      where they are; one that is not there has none, in a few microseconds.
 * @timeout_ns  for all of them together.
 * @cancel_fd   when it becomes readable the running one is killed, and the rest is not started; -1: none.
 * Returns the number of errors, whose messages are in hooks->errors, or -ECANCELED.
 */
int csink_hooks_reserve(struct csink_hooks *hooks, const char *directory, uint64_t timeout_ns, int cancel_fd);

/** Run those that were started with "release". Returns the number of errors. */
int csink_hooks_release(struct csink_hooks *hooks, uint64_t timeout_ns);

#endif
