/* Programs that a shell would find. */
#ifndef CSINK_PATH_SEARCH_H
#define CSINK_PATH_SEARCH_H

#include <stdbool.h>
#include <stddef.h>

/** Find a program in the directories of $PATH. Returns false if it is in none; then *path is anything. Context: thread.
 */
bool csink_path_search(const char *program, char *path, size_t size);

#endif
