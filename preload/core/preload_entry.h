/*
 * Our entry in LD_PRELOAD. What a program starts inherits the entry also where no hook of ours can take it out: below a
 * static program, or after a raw execve. So it must suit every dynamic loader:
 *
 *     LIBDIR/countersink/$PLATFORM/libcountersink.so
 *
 * glibc's loader puts the kernel's name of the machine in place of $PLATFORM (ld.so(8)). For our own machine there is a
 * link to LIBDIR/libcountersink.so under each of its names; for others an empty library that their loaders accept
 * (preload/stub/stub.c). musl's loader replaces nothing, finds no such file, and prints nothing. $LIB would do the
 * same, but its "lib" is 64-bit on one distribution and 32-bit on another. A link in LIBDIR/countersink itself is for
 * scripts that have a shell evaluate the variable's text, where $PLATFORM is empty. The directories belong to the
 * installation and not to a run, so that a process which outlives the run still finds the library.
 */
#ifndef CSINK_PRELOAD_ENTRY_H
#define CSINK_PRELOAD_ENTRY_H

#include <stddef.h>

#define CSINK_LIBRARY "libcountersink.so"
#define CSINK_ENTRY_DIR "/countersink/"
#define CSINK_ENTRY_TAIL CSINK_ENTRY_DIR "$PLATFORM/" CSINK_LIBRARY

/**
 * LIBDIR of an entry of LD_PRELOAD that is ours, by either of the library's two paths: its length; it is the beginning
 * of the entry.
 * @entry  of @length bytes, not NUL-ended.
 * Returns 0 if the entry is not ours, or its text does not determine the directory: it has none, or another token.
 * Context: any; also in a vfork child.
 */
size_t csink_entry_libdir(const char *entry, size_t length);

#endif
