/* See standard_streams.h. */
#include "launcher/base/standard_streams.h"

#include <errno.h>
#include <fcntl.h>

void csink_standard_streams_fill(void)
{
	for (int fd = 0; fd <= 2; fd++) {
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
			open("/dev/null", O_RDONLY | O_CLOEXEC);
	}
}
