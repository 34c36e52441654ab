/* See path.h. */
#include "launcher/base/path.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "preload/core/preload_entry.h"

/* Without /proc: what execve(2) was called with. A relative name counts from the directory of that moment, so that
 * this is asked before any change of directory. */
static int path_of_executed(char path[PATH_MAX])
{
	const char *executed = (const char *)getauxval(AT_EXECFN);

	if (executed && realpath(executed, path))
		return 0;
	path[0] = '\0';
	return -ESRCH;
}

int csink_path_of_program(char path[PATH_MAX], int up)
{
	ssize_t len = readlink("/proc/self/exe", path, PATH_MAX - 1);
	char *slash;

	path[len > 0 ? len : 0] = '\0';
	if (len <= 0) {
		int err = path_of_executed(path);

		if (err)
			return err;
	}
	/* The link is absolute: the names of the directories are in it. */
	for (; up > 0 && (slash = strrchr(path, '/')); up--)
		*slash = '\0';
	return 0;
}

int csink_path_of_private(const char *name, char path[PATH_MAX])
{
	static const char *const directories[] = {"lib", "lib/" CSINK_MULTIARCH, "lib64"};
	char prefix[PATH_MAX];
	int err = csink_path_of_program(prefix, 2);

	for (size_t i = 0; !err && i < CSINK_ARRAY_SIZE(directories); i++) {
		if (snprintf(path, PATH_MAX, "%s/%s/countersink/%s", prefix, directories[i], name) < PATH_MAX &&
		    !access(path, R_OK))
			return 0;
	}
	memcpy(path, prefix, sizeof(prefix));
	return err ? err : -ENOENT;
}
