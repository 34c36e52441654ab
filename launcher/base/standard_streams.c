/* See standard_streams.h. */
#include "launcher/base/standard_streams.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

void csink_standard_streams_fill(void)
{
	for (int fd = 0; fd <= 2; fd++) {
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
			open("/dev/null", O_RDONLY | O_CLOEXEC);
	}
}

/* Not by glibc's function, which is newer than the glibc that packages may need. */
void csink_descriptors_close_from(int first)
{
	if (!syscall(__NR_close_range, first, ~0U, 0))
		return;
	for (int fd = first; fd < (int)sysconf(_SC_OPEN_MAX); fd++)
		close(fd);
}
