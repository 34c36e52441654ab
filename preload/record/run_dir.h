/* The private folder that the recordings of one run go to. Used by the launcher, and by the library without one. */
#ifndef CSINK_RECORD_RUN_DIR_H
#define CSINK_RECORD_RUN_DIR_H

#include <stddef.h>

/**
 * Make a folder, mode 0700, with a name that cannot be guessed: in $XDG_RUNTIME_DIR, /dev/shm, $TMPDIR or /tmp, the
 * first that takes it. Memory-backed places come first: recordings are written by page faults in other people's
 * programs. Returns 0, or -errno of the last place tried; @dir is set. Context: init.
 */
int csink_run_dir_create(char *dir, size_t size);

#endif
