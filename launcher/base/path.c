/* See path.h. */
#include "launcher/base/path.h"

#include <errno.h>
#include <unistd.h>

int csink_path_of_program(char path[PATH_MAX], int up)
{
	ssize_t len = readlink("/proc/self/exe", path, PATH_MAX - 1);
	int err = errno;
	char *slash;

	path[len > 0 ? len : 0] = '\0';
	if (len <= 0)
		return -err;
	/* The link is absolute: the names of the directories are in it. */
	for (; up > 0 && (slash = strrchr(path, '/')); up--)
		*slash = '\0';
	return 0;
}
