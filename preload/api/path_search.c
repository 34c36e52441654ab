/* Searches $PATH; see path_search.h. Any thread; not async-signal-safe. */
#include "preload/api/path_search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool csink_path_search(const char *program, char *path, size_t size)
{
	const char *directories = getenv("PATH");

	while (directories && *directories) {
		size_t n = strcspn(directories, ":");

		if (n && snprintf(path, size, "%.*s/%s", (int)n, directories, program) < (int)size &&
		    !access(path, X_OK))
			return true;
		directories += n + (directories[n] == ':');
	}
	return false;
}
