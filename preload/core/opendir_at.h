/* Opening directories relative to an open one. Any thread; not async-signal-safe: opendir(3) allocates. */
#ifndef CSINK_OPENDIR_AT_H
#define CSINK_OPENDIR_AT_H

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

/** opendir(3) relative to a directory; "." lists that one. A symbolic link is not followed. Returns NULL and errno. */
static inline DIR *csink_opendir_at(int directory_fd, const char *name)
{
	int fd = openat(directory_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);

	if (!directory && fd >= 0)
		close(fd);
	return directory;
}

#endif
