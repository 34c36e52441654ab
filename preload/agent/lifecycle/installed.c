/*
 * Files of our installation: see installed.h. Runs in the constructor and on the thread that ends the process. Not
 * async-signal-safe, and not called from handlers of ours; no malloc.
 */
#include "preload/agent/lifecycle/installed.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/names_entry.h"

#define PROGRAM "/bin/countersink"

/* Cut the last name off a path. Returns that name, or NULL if there is none. */
static const char *cut_name(char *path)
{
	char *slash = strrchr(path, '/');

	if (!slash)
		return NULL;
	*slash = '\0';
	return slash + 1;
}

/* Are these the last two names of a directory's path the ones that LD_PRELOAD's entry has (preload_entry.h)? */
static bool is_entry_directory(const char *parent, const char *name)
{
	const char *const platforms[] = {(const char *)getauxval(AT_PLATFORM), "haswell", "xeon_phi"};

	if (strcmp(parent, "countersink"))
		return false;
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(platforms); i++)
		if (platforms[i] && !strcmp(name, platforms[i]))
			return true;
	return false;
}

/* Put the file's path in place of LIBDIR, if the file is there; leave LIBDIR else. */
static bool is_there(enum csink_installed which, char libdir[PATH_MAX])
{
	const char *tail = which == CSINK_INSTALLED_API ? "/" CSINK_API_LIBRARY : PROGRAM;
	char *at = libdir + strlen(libdir), *name = strrchr(libdir, '/'), kept[8] = "";

	if (which == CSINK_INSTALLED_PROGRAM) {
		if (!name || (strcmp(name, "/lib") && strcmp(name, "/lib64")))
			return false;
		strcpy(kept, name);
		at = name;
	}
	if ((size_t)(at - libdir) + strlen(tail) >= PATH_MAX)
		return false;
	strcpy(at, tail);
	if (!access(libdir, which == CSINK_INSTALLED_API ? R_OK : X_OK))
		return true;
	strcpy(at, kept);
	return false;
}

bool csink_installed_find(enum csink_installed which, char path[PATH_MAX])
{
	const char *name, *parent;
	Dl_info info;

	if (!CSINK_ALLOW(dladdr)((void *)csink_installed_find, &info) || !realpath(info.dli_fname, path) ||
	    !cut_name(path))
		return false;
	if (is_there(which, path))
		return true;
	name = cut_name(path);
	parent = name ? cut_name(path) : NULL;
	return parent && is_entry_directory(parent, name) && is_there(which, path);
}
