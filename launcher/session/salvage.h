/*
 * Profiles of runs without launcher whose first process was killed, so that no process made one. Any number of
 * processes may do this at once, and each may be killed at any moment: every run gets exactly one profile.
 */
#ifndef CSINK_SALVAGE_H
#define CSINK_SALVAGE_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

enum csink_salvaged {
	CSINK_SALVAGED_NONE,    /* it goes on, another process has it, or it is of no killed run */
	CSINK_SALVAGED_EMPTY,   /* nothing was recorded: it is removed */
	CSINK_SALVAGED_PROFILE, /* the profile is written, by this call or one that was killed; it is removed */
	CSINK_SALVAGED_UNNAMED, /* its recordings name no output: it is kept */
};

/**
 * Make the profile of a run directory whose processes have all ended, and remove it.
 * @to   receives the profile's path: the output that the run had, with ".killed-START-PID-NAME" before its ending, of
 *       the run's first process and directory.
 * @why  receives a line for people on error; everything is kept then.
 * Returns an enum csink_salvaged or -errno. Context: thread.
 */
int csink_salvage(const char *directory, char to[PATH_MAX], char *why, size_t why_size);

/**
 * Call @use for each run directory of this user in a place. Links and other users' directories are left out.
 * Context: thread.
 */
void csink_salvage_each(const char *place, void (*use)(const char *directory, void *context), void *context);

/**
 * Where the recordings of killed runs without launcher take more than @max_bytes in a place, remove the oldest runs
 * until they do not, and count them (launcher/collect/lost_runs.h). Context: thread.
 * Returns how many were removed.
 */
uint32_t csink_salvage_bound(const char *place, uint64_t max_bytes);

/**
 * Let programs that start know that they need not start a process to salvage @directory for @seconds from now, and at
 * least for one. Context: thread.
 */
void csink_salvage_announce(const char *directory, int seconds);

#endif
