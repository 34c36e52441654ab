/* Small files and directories without malloc or stdio streams; see sysfs.h. Any thread; no lock. */
#include "preload/core/sysfs.h"
#include "include/internal/base.h"
#include "include/internal/rawcall.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static int open_at(int flags, const char *fmt, va_list ap)
{
	CSINK_KEEP_ERRNO;
	char path[512];
	int fd;

	if (vsnprintf(path, sizeof(path), fmt, ap) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, flags | O_RDONLY | O_CLOEXEC); /* libc's: a unit test counts these calls */
	return fd < 0 ? -errno : fd;
}

static int read_all(int fd, char *buf, size_t size)
{
	size_t used = 0;

	while (used + 1 < size) {
		long got = csink_rawcall(SYS_read, fd, buf + used, size - 1 - used);

		if (got == -EINTR)
			continue;
		if (got < 0)
			return (int)got;
		if (!got)
			break;
		used += (size_t)got;
	}
	if (used && buf[used - 1] == '\n')
		used--;
	buf[used] = '\0';
	return (int)used;
}

static int read_file(char *buf, size_t size, const char *fmt, va_list ap)
{
	int fd, ret;

	buf[0] = '\0';
	fd = ret = open_at(0, fmt, ap);
	if (fd >= 0) {
		ret = read_all(fd, buf, size);
		csink_rawcall(SYS_close, fd);
	}
	return ret;
}

int csink_sysfs_read(char *buf, size_t size, const char *fmt, ...)
{
	va_list ap;
	int ret;

	va_start(ap, fmt);
	ret = read_file(buf, size, fmt, ap);
	va_end(ap);
	return ret;
}

int csink_sysfs_read_number(int64_t *value, const char *fmt, ...)
{
	char text[32], *end;
	va_list ap;
	int ret;

	va_start(ap, fmt);
	ret = read_file(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (ret < 0)
		return ret;
	*value = strtoll(text, &end, 10);
	return end == text ? -EINVAL : 0;
}

int csink_sysfs_dir_open(const char *fmt, ...)
{
	va_list ap;
	int fd;

	va_start(ap, fmt);
	fd = open_at(O_DIRECTORY, fmt, ap);
	va_end(ap);
	return fd;
}

const char *csink_sysfs_dir_next(struct csink_sysfs_dir *dir)
{
	while (dir->fd >= 0) {
		struct dirent64 *entry = (void *)((char *)dir->buf + dir->used);

		if (dir->used >= dir->length) {
			long got = csink_rawcall(SYS_getdents64, dir->fd, dir->buf, sizeof(dir->buf));

			if (got <= 0)
				break;
			dir->used = 0;
			dir->length = (uint32_t)got;
			continue;
		}
		dir->used += entry->d_reclen;
		if (entry->d_name[0] != '.')
			return entry->d_name;
	}
	return NULL;
}

void csink_sysfs_dir_close(const struct csink_sysfs_dir *dir)
{
	if (dir->fd >= 0)
		csink_rawcall(SYS_close, dir->fd);
}
