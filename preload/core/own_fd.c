/* File descriptors that are still ours: see own_fd.h. Any thread; not async-signal-safe. */
#include "preload/core/own_fd.h"

#include <errno.h>
#include <linux/kcmp.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "include/internal/rawcall.h"

int csink_own_fd_note(int fd, bool is_event, struct csink_own_fd *own)
{
	struct stat st;

	memset(own, 0, sizeof(*own));
	own->fd = fd;
	if (fstat(fd, &st) || (is_event && ioctl(fd, PERF_EVENT_IOC_ID, &own->id)))
		return -errno;
	own->dev = st.st_dev;
	own->ino = st.st_ino;
	return 0;
}

bool csink_own_fd_is(const struct csink_own_fd *own)
{
	struct stat st;
	uint64_t id = 0;

	/* The inode first: a device may use the same ioctl number for something else. */
	if (own->fd < 0 || fstat(own->fd, &st) || st.st_dev != own->dev || st.st_ino != own->ino)
		return false;
	return !own->id || (!ioctl(own->fd, PERF_EVENT_IOC_ID, &id) && id == own->id);
}

void csink_own_fd_close(const struct csink_own_fd *own)
{
	if (csink_own_fd_is(own))
		close(own->fd);
}

bool csink_own_fd_shares_table(pid_t other)
{
	long order = csink_rawcall(SYS_kcmp, getpid(), other, KCMP_FILES, 0, 0);

	return order < 0 ? order != -ESRCH : order == 0;
}
