/* Writing all bytes to a descriptor that waits. */
#ifndef CSINK_WRITE_ALL_H
#define CSINK_WRITE_ALL_H

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

/** Write all, also after signals. Returns 0 or -errno; then some of it may be written. Context: any. */
static inline int csink_write_all(int fd, const void *data, size_t bytes)
{
	for (const char *at = data; bytes;) {
		ssize_t put = write(fd, at, bytes);

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return put ? -errno : -EIO;
		at += put;
		bytes -= (size_t)put;
	}
	return 0;
}

#endif
