/* Where the profile goes: what can be known beforehand about the place. */
#ifndef CSINK_OUTPUT_PLACE_H
#define CSINK_OUTPUT_PLACE_H

#include <stddef.h>
#include <stdint.h>

#include "preload/core/record/output_path.h"

struct csink_profile;

/**
 * Can a profile be written there? Nothing is created. A full disk and a missing, foreign or read-only directory are
 * found.
 * @why  on failure, a phrase for people: "no such directory: /x/y".
 * Returns 0, -errno or a negative csink_outfile_errno.
 */
int csink_output_check(const char *path, char *why, size_t why_size);

/**
 * A place to fall back to, to be written with CSINK_OUTFILE_PRIVATE: the file's name in $TMPDIR, /tmp or this user's
 * home directory, then a name in /tmp that no other user can have taken. @index counts from 0. Returns 0, or -ENOENT
 * when there are no more places.
 */
int csink_output_fallback(const char *path, uint32_t index, char *out, size_t size);

/**
 * A profile could not be written: write it to one of these places, and report both.
 * @path  of PATH_MAX bytes: becomes where it is.
 * @err   why it could not be written there, as csink_pprof_write() returned it.
 * @what  it is, for the message: "the profile".
 * Returns 0, or -errno where it could not be written anywhere; then @path is unchanged. Context: thread.
 */
int csink_output_elsewhere(char *path, const struct csink_profile *profile, int err, const char *what);

#endif
