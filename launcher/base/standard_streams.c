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
	enum { MOST = 1 << 20 }; /* where there is no limit, or one that takes minutes to count to */
	long most = sysconf(_SC_OPEN_MAX);

	if (!syscall(__NR_close_range, first, ~0U, 0))
		return;
	if (most < 0 || most > MOST)
		most = MOST;
	for (int fd = first; fd < (int)most; fd++)
		close(fd);
}
