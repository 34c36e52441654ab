/* Files of the installation that this library belongs to. */
#ifndef CSINK_INSTALLED_H
#define CSINK_INSTALLED_H

#include <limits.h>
#include <stdbool.h>

enum csink_installed {
	CSINK_INSTALLED_API,     /* LIBDIR/libcountersink-api.so.0 */
	CSINK_INSTALLED_PROGRAM, /* BINDIR/countersink, where LIBDIR is called lib or lib64 and BINDIR is beside it */
};

/**
 * Find a file by the library's own place. LIBDIR is the directory of the library's file, links resolved, or the
 * directory two above where these are called countersink/PLATFORM: an installation that was copied without its links.
 * No other directory is looked at: what lies further up may be another user's.
 * @path  set to the file's absolute path if it is there.
 * Returns whether the file is there, and can be read or executed. Context: thread; enters the loader (dladdr).
 */
bool csink_installed_find(enum csink_installed which, char path[PATH_MAX]);

#endif
