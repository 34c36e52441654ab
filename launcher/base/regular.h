/*
 * Opens files for reading whose paths come from a profile, a recording, another process or a directory that other users
 * may write. Opening never blocks, and no more is read than the caller allows. A path that the user names on the
 * command line may be a pipe and is not opened here. Context: thread.
 */
#ifndef CSINK_REGULAR_H
#define CSINK_REGULAR_H

#include <stdint.h>
#include <stdio.h>

#define CSINK_REGULAR_ANY UINT64_MAX

/**
 * Open a regular file of at most max_bytes to be read, without blocking. Paths through other roots: roots.h.
 * @flags      O_NOFOLLOW or 0
 * @max_bytes  CSINK_REGULAR_ANY where the reader has a limit of its own
 * Returns the descriptor, -ENOEXEC (a FIFO, a device, a directory...), -EFBIG, or what opening gave.
 */
int csink_regular_open(const char *path, int flags, uint64_t max_bytes);

/**
 * Read a descriptor as a stream that ends after max_bytes at the latest, even if the file grows meanwhile.
 * The descriptor is the stream's, or closed. Returns NULL without memory.
 */
FILE *csink_regular_stream(int fd, uint64_t max_bytes);

/** Both. NULL with errno ENOEXEC, EFBIG, ... */
FILE *csink_regular_fopen(const char *path, int flags, uint64_t max_bytes);

/** A phrase for an error of these functions. */
const char *csink_regular_why(int err);

#endif
