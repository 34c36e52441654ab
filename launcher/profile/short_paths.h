/* Names of files for people: the base name, and where others have the same, as many directories as distinguish them. */
#ifndef CSINK_SHORT_PATHS_H
#define CSINK_SHORT_PATHS_H

#include <stdint.h>

/**
 * Shorten paths in place: each pointer is moved to the component from which on its path differs from all other paths
 * that it is not equal to. "/a/util.py", "/b/util.py" and "/c/main.py" become "a/util.py", "b/util.py" and "main.py".
 * Without memory they become base names.
 * Context: any.
 */
void csink_short_paths(const char **paths, uint32_t nr);

#endif
