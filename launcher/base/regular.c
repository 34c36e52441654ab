/* See regular.h. */
#include "launcher/base/regular.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "launcher/base/roots.h"

int csink_regular_open(const char *path, int flags, uint64_t max_bytes)
{
	int fd = csink_root_open(path, flags | O_NONBLOCK | O_NOCTTY), err = 0;
	struct stat st;

	if (fd < 0)
		return fd == -ENXIO ? -ENOEXEC : fd; /* a socket, a device without a driver */
	if (fstat(fd, &st))
		err = -errno;
	else if (!S_ISREG(st.st_mode))
		err = -ENOEXEC;
	else if ((uint64_t)st.st_size > max_bytes)
		err = -EFBIG;
	if (!err)
		return fd;
	close(fd);
	return err;
}

struct bounded {
	int fd;
	uint64_t left;
};

static ssize_t read_bounded(void *cookie, char *to, size_t bytes)
{
	struct bounded *b = cookie;
	ssize_t got;

	do
		got = read(b->fd, to, CSINK_MIN((uint64_t)bytes, b->left));
	while (got < 0 && errno == EINTR);
	b->left -= got > 0 ? (uint64_t)got : 0;
	return got;
}

static int close_bounded(void *cookie)
{
	struct bounded *b = cookie;

	close(b->fd);
	free(b);
	return 0;
}

FILE *csink_regular_stream(int fd, uint64_t max_bytes)
{
	cookie_io_functions_t io = {.read = read_bounded, .close = close_bounded};
	struct bounded *b = malloc(sizeof(*b));
	FILE *file;

	if (!b) {
		close(fd);
		return NULL;
	}
	*b = (struct bounded){fd, max_bytes};
	file = fopencookie(b, "r", io);
	if (!file)
		close_bounded(b);
	return file;
}

FILE *csink_regular_fopen(const char *path, int flags, uint64_t max_bytes)
{
	int fd = csink_regular_open(path, flags, max_bytes);

	if (fd < 0) {
		errno = -fd;
		return NULL;
	}
	return csink_regular_stream(fd, max_bytes);
}

const char *csink_regular_why(int err)
{
	err = err < 0 ? -err : err;
	return err == ENOEXEC ? "not a regular file" : err == EFBIG ? "larger than is read" : strerror(err);
}
