/* The private directory that the recordings of one run go to. Used by the launcher, and by the library without one. */
#ifndef CSINK_RUN_DIR_H
#define CSINK_RUN_DIR_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define CSINK_RUN_DIR_PREFIX "countersink-"
#define CSINK_RUN_DIR_PLACES 5

/* Of a run without launcher: how far its slices are (launcher/session/slice_state.h). */
#define CSINK_RUN_DIR_SLICES "slices"

/** Where run directories are made, in order of preference; NULL for a place that the environment does not name.
 * Context: any. */
void csink_run_dir_places(const char *places[CSINK_RUN_DIR_PLACES]);

/**
 * Make a directory, mode 0700, with a name that cannot be guessed: in $COUNTERSINK_PLACE, $XDG_RUNTIME_DIR, /dev/shm,
 * $TMPDIR or /tmp, the first that takes it (of root's, that others may pass through). Memory-backed places come first:
 * recordings are written by page faults in other people's programs.
 * @place  which one to try first, from 0; becomes the number of the one after that of the directory. So a caller that
 *         finds no room there goes on.
 * Returns 0, or -errno of the last place tried; @dir is set. Context: init.
 */
int csink_run_dir_create(unsigned int *place, char *dir, size_t size);

/** The same in the directory that the first @len bytes of @place name. Context: thread. */
int csink_run_dir_create_in(const char *place, size_t len, char *dir, size_t size);

/** Whether a name in a run directory is a recording's. Context: any. */
bool csink_run_dir_is_recording(const char *name);

/**
 * Does a process write a recording? The kernel grants a read lease only on a file that no process has open, or mapped,
 * for writing, whatever pid that process has here. Returns 1, 0 or -errno: not known. Context: thread.
 */
int csink_run_dir_is_written(int dir_fd, const char *name);

/*
 * A process that changes its user ID and starts others cannot enter the run directory any more. Before it does, it
 * makes another directory beside it, which that user owns (0700), and creates a file UID.user in the run directory. A
 * directory beside it without such a file is not ours.
 */
#define CSINK_RUN_DIR_USER ".user"

/** The directory beside @dir for another user. Returns 0 or -ENAMETOOLONG. Context: any. */
int csink_run_dir_beside(const char *dir, uid_t uid, char *out, size_t size);

/** Make it. Returns 0 (also if it is there) or -errno. Context: thread. */
int csink_run_dir_share(const char *dir, uid_t uid);

#define CSINK_RUN_DIR_PLACE 80

/**
 * Say where a run directory is, for processes that inherit its name: on which boot of which machine, in which pid
 * namespace, and whether it is in memory, so that no other machine can have it.
 * Returns false if that cannot be determined, or @only_shared is set and it is in memory. Context: init; a few system
 * calls.
 */
bool csink_run_dir_describe(const char *dir, bool only_shared, char text[CSINK_RUN_DIR_PLACE]);

/** Is @place, a description, of this boot and this pid namespace? True if that cannot be determined. Context: init. */
bool csink_run_dir_is_here(const char *place);

/**
 * Can this process record in an inherited directory? One system call, mostly.
 * @place  its description; NULL: none was given.
 * Returns NULL, or why not, in words: it is not there, is of another boot or machine, is no directory of this user's
 * alone. What is another user's and has a directory for this one beside it (csink_run_dir_share) can be used. Context:
 * init.
 */
const char *csink_run_dir_refuse(const char *dir, const char *place);

/** True if @dir is a directory (no link to one) of @uid's that no other user may enter. Context: any. */
bool csink_run_dir_is_of(const char *dir, uid_t uid);

#endif
