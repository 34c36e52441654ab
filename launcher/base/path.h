/* Parts of paths. Context: any. */
#ifndef CSINK_PATH_H
#define CSINK_PATH_H

#include <limits.h>
#include <stdbool.h>
#include <string.h>

/** The last component of a path; a path that ends in '/' as it is. */
static inline const char *csink_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/** What a place in an object is named by, "[libx.so+0x1a40]": the last component of its path; a name in brackets, as
 * the vdso's, without them.
 * @len  receives its length. */
static inline const char *csink_place_object(const char *path, int *len)
{
	const char *name = csink_base_name(path);
	bool has_brackets = name[0] == '[' && name[1] && name[strlen(name) - 1] == ']';

	*len = (int)strlen(name) - 2 * has_brackets;
	return name + has_brackets;
}

/** The program that runs; of its path, so many last components are left out: 1 is its directory. Without
 * /proc, by the name that it was executed by. Returns 0, or -ESRCH with an empty path: neither leads to it. */
int csink_path_of_program(char path[PATH_MAX], int up);

/**
 * A file of countersink's own directory of libraries: PREFIX/lib/countersink, PREFIX/lib/TRIPLET/countersink or
 * PREFIX/lib64/countersink, the first that has it. PREFIX/bin is the directory of the program that runs.
 * Returns 0, or -errno: -ENOENT and @path is PREFIX, or -ESRCH and an empty path.
 */
int csink_path_of_private(const char *name, char path[PATH_MAX]);

#endif
