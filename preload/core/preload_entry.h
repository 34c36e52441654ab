/*
 * Our entry in LD_PRELOAD. What a program starts inherits the entry also where no hook of ours can take it out: below a
 * static program, or after a raw execve. So it must suit every dynamic loader:
 *
 *     LIBDIR/countersink/$PLATFORM/libcountersink.so
 *
 * glibc's loader puts the kernel's name of the machine in place of $PLATFORM (ld.so(8)). For our own machine there is a
 * link to LIBDIR/countersink/libcountersink.so under each of its names; for others an empty library that their loaders
 * accept (preload/stub/stub.c). musl's loader replaces nothing, finds no such file, and prints nothing. $LIB would do
 * the same, but its "lib" is 64-bit on one distribution and 32-bit on another. The file in LIBDIR/countersink itself
 * also suits scripts that have a shell evaluate the variable's text, where $PLATFORM is empty. (Where the build put it,
 * it is a link to LIBDIR/libcountersink.so, which was the library's only place before.) The directories belong to the
 * installation and not to a run, so that a process which outlives the run still finds the library.
 */
#ifndef CSINK_PRELOAD_ENTRY_H
#define CSINK_PRELOAD_ENTRY_H

#include <stddef.h>

#define CSINK_LIBRARY "libcountersink.so"
#define CSINK_ENTRY_TAIL "/$PLATFORM/" CSINK_LIBRARY
/* The entries of the objects of `-e alloc` and `-e lock` are the library's with these before its ".so"; they stand
 * before all others. */
enum { CSINK_NR_OBJECTS = 2 };
static const char csink_object_marks[CSINK_NR_OBJECTS][7] = {"-alloc", "-lock"};

/* What Debian's directories of libraries are called by, below lib. */
#if defined(__x86_64__)
#define CSINK_MULTIARCH "x86_64-linux-gnu"
#elif defined(__aarch64__)
#define CSINK_MULTIARCH "aarch64-linux-gnu"
#endif

/**
 * The directory of the library's file, of an entry of LD_PRELOAD that is ours, by either of the library's two paths:
 * its length; it is the beginning of the entry.
 * @entry  of @length bytes, not NUL-ended.
 * Returns 0 if the entry is not ours, or its text does not determine the directory: it has none, or another token.
 * Context: any; also in a vfork child.
 */
size_t csink_entry_directory(const char *entry, size_t length);

/**
 * Is the entry that of one of the objects? Then it is written to @library as the entry of the library beside it.
 * @library  room for @length bytes.
 * Returns the length of what was written; 0: it is not. Context: any; also in a vfork child.
 */
size_t csink_entry_of_object(const char *entry, size_t length, char *library);

/**
 * Where a directory's path ends in what a LIBDIR is called: "/lib", "/lib64" or "/lib/TRIPLET". What is before it is
 * the PREFIX, with bin in it. NULL: the path ends otherwise. Context: any.
 */
char *csink_libdir_end(char *path);

#endif
