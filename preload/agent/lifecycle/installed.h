/* Files of the installation that this library belongs to. */
#ifndef CSINK_INSTALLED_H
#define CSINK_INSTALLED_H

#include <limits.h>
#include <stdbool.h>

enum csink_installed {
	CSINK_INSTALLED_API,     /* LIBDIR/libcountersink-api.so.0 */
	CSINK_INSTALLED_PROGRAM, /* PREFIX/bin/countersink */
};

/**
 * Find a file by the library's own place, links resolved. LIBDIR is PREFIX/lib, PREFIX/lib64 or PREFIX/lib/TRIPLET with
 * the library in it, in its directory countersink, or in countersink/PLATFORM (an installation that was copied without
 * its links). The API library is found beside a library in any directory. No other directory is looked at: what lies
 * further up may be another user's.
 * @path  set to the file's absolute path if it is there.
 * Returns whether the file is there, and can be read or executed. Context: thread.
 */
bool csink_installed_find(enum csink_installed which, char path[PATH_MAX]);

#endif
