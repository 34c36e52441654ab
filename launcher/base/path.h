/* Parts of paths. Context: any. */
#ifndef CSINK_PATH_H
#define CSINK_PATH_H

#include <string.h>

/** The last component of a path; a path that ends in '/' as it is. */
static inline const char *csink_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

#endif
