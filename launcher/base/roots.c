/* See roots.h. */
#include "launcher/base/roots.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "include/internal/cleanup.h"
#include "launcher/base/proc.h"
#include "preload/core/sysfs.h"

#define MAX_TRIES 16

/* ---- opening ---- */

size_t csink_root_len(const char *path)
{
	static const char *const forms[][2] = {{"/proc/self/fd/", ""}, {"/proc/", "/root"}};

	for (int i = 0; i < 2; i++) {
		size_t len = strlen(forms[i][0]), digits;

		if (strncmp(path, forms[i][0], len))
			continue;
		digits = strspn(path + len, "0123456789");
		len += digits;
		if (!digits || strncmp(path + len, forms[i][1], strlen(forms[i][1])))
			continue;
		len += strlen(forms[i][1]);
		if (path[len] == '/' && len < CSINK_ROOT_BYTES)
			return len;
	}
	return 0;
}

/* Directory by directory, where openat2(2) is not to be had. What the kernel names as mapped is free of links anyway.
 */
static int walk(int root_fd, const char *path, int flags)
{
	int fd = fcntl(root_fd, F_DUPFD_CLOEXEC, 0), next;
	char name[NAME_MAX + 1];

	while (fd >= 0) {
		size_t len = strcspn(path += strspn(path, "/"), "/");

		if (len >= sizeof(name) || (len == 2 && !memcmp(path, "..", 2))) {
			close(fd);
			return len >= sizeof(name) ? -ENAMETOOLONG : -EXDEV;
		}
		memcpy(name, path, len);
		name[len] = 0;
		path += len;
		next = openat(fd, len ? name : ".", O_PATH | O_CLOEXEC | O_NOFOLLOW | (*path ? O_DIRECTORY : flags));
		if (next < 0)
			next = -errno;
		close(fd);
		if (!*path || next < 0)
			return next;
		fd = next;
	}
	return -errno;
}

/* A handle of what a path means below a root, whatever it is. */
static int find_in_root(int root_fd, const char *path, int flags)
{
	struct open_how how = {
		.flags = (uint64_t)(O_PATH | O_CLOEXEC | flags),
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	int fd = -1;

	errno = EAGAIN; /* something was renamed meanwhile */
	for (int i = 0; fd < 0 && errno == EAGAIN && i < MAX_TRIES; i++)
		fd = (int)syscall(__NR_openat2, root_fd, path, &how, sizeof(how));
	if (fd < 0 && (errno == ENOSYS || errno == EPERM))
		return walk(root_fd, path, flags);
	return fd < 0 ? -errno : fd;
}

/* Opens what a handle is of, if it is a regular file: a device could do anything when it is opened. */
static int open_handle(int handle, int flags)
{
	char link[CSINK_ROOT_BYTES];
	struct stat st;
	int fd;

	if (fstat(handle, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENOEXEC;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", handle);
	fd = open(link, O_RDONLY | O_CLOEXEC | (flags & ~O_NOFOLLOW));
	return fd < 0 ? -errno : fd;
}

/* The same of a path that is ours. */
static int open_ours(const char *path, int flags)
{
	CSINK_AUTO_CLOSE int handle = open(path, O_PATH | O_CLOEXEC | (flags & O_NOFOLLOW));
	struct stat was, is;
	int fd;

	if (handle < 0 || fstat(handle, &was))
		return -errno;
	if (S_ISLNK(was.st_mode))
		return -ELOOP;
	fd = open_handle(handle, flags);
	if (fd >= 0 || fd == -ENOEXEC)
		return fd;
	/* There may be no /proc, or it is not ours to use. The path may have another file meanwhile. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags);
	if (fd < 0)
		return -errno;
	if (!fstat(fd, &is) && S_ISREG(is.st_mode) && is.st_dev == was.st_dev && is.st_ino == was.st_ino)
		return fd;
	close(fd);
	return -ENOEXEC;
}

int csink_root_open(const char *path, int flags)
{
	size_t len = csink_root_len(path);
	char root[CSINK_ROOT_BYTES];
	CSINK_AUTO_CLOSE int root_fd = -1, handle = -1;
	struct stat st;

	if (!len)
		return open_ours(path, flags);
	memcpy(root, path, len);
	root[len] = 0;
	root_fd = open(root, O_PATH | O_CLOEXEC);
	if (root_fd < 0)
		return -errno;
	if (!fstat(root_fd, &st) && !S_ISDIR(st.st_mode))
		return open_handle(root_fd, flags);
	handle = find_in_root(root_fd, path + len, flags & O_NOFOLLOW);
	return handle < 0 ? handle : open_handle(handle, flags);
}

/* ---- finding ---- */

uint32_t csink_roots_find(int32_t pid, char roots[][CSINK_ROOT_BYTES], uint32_t max)
{
	CSINK_SYSFS_DIR(proc, "/proc");
	const char *name;
	uint32_t nr = 0;

	while (nr < max && (name = csink_sysfs_dir_next(&proc))) {
		if (isdigit((unsigned char)*name) && csink_proc_own_number(atoi(name)) == pid)
			snprintf(roots[nr++], CSINK_ROOT_BYTES, "/proc/%.12s/root", name);
	}
	return nr;
}
