/*
 * Files of our installation: see installed.h. Runs in the constructor and on the thread that ends the process. Not
 * async-signal-safe, and not called from handlers of ours; no malloc.
 */
#include "preload/agent/lifecycle/installed.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/internal/names_entry.h"
#include "preload/agent/lifecycle/libc.h"
#include "preload/core/preload_entry.h"

#define PROGRAM "/bin/countersink"
#define PRIVATE "countersink"

/* Cut the last name off a path. Returns that name, or NULL if there is none. */
static const char *cut_name(char *path)
{
	char *slash = strrchr(path, '/');

	if (!slash)
		return NULL;
	*slash = '\0';
	return slash + 1;
}

/* Put the file's path in place of that of a directory, if the file is there; leave the directory else. */
static bool is_there(enum csink_installed which, char directory[PATH_MAX])
{
	const char *tail = which == CSINK_INSTALLED_API ? "/" CSINK_API_LIBRARY : PROGRAM;
	char kept[sizeof("/lib/" CSINK_MULTIARCH)];
	char *at = which == CSINK_INSTALLED_API ? directory + strlen(directory) : csink_libdir_end(directory);

	if (!at || (size_t)(at - directory) + strlen(tail) >= PATH_MAX)
		return false;
	strcpy(kept, at);
	strcpy(at, tail);
	if (!access(directory, which == CSINK_INSTALLED_API ? R_OK : X_OK))
		return true;
	strcpy(at, kept);
	return false;
}

bool csink_installed_find(enum csink_installed which, char path[PATH_MAX])
{
	const char *name;
	const struct link_map *own = csink_own_map();

	if (!own || !realpath(own->l_name, path) || !cut_name(path))
		return false;
	if (is_there(which, path))
		return true;
	for (int up = 0; up < 2; up++) {
		name = cut_name(path);
		if (name && !strcmp(name, PRIVATE))
			return csink_libdir_end(path) && is_there(which, path);
	}
	return false;
}
