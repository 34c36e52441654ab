/* The count of killed runs that were not kept: see lost_runs.h. */
#include "launcher/collect/lost_runs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "include/internal/cleanup.h"
#include "preload/core/record/run_dir.h"

/* With a dot, so that it is no run directory's name. */
#define NAME CSINK_RUN_DIR_PREFIX "lost.%u"

/* Another user may have put something there. Returns a descriptor or -errno. */
static int open_count(const char *place, int flags)
{
	char path[PATH_MAX];
	struct stat st;
	int fd;

	if (snprintf(path, sizeof(path), "%s/" NAME, place, (unsigned int)geteuid()) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid() && st.st_nlink == 1)
		return fd;
	close(fd);
	return -EPERM;
}

static uint32_t read_count(int fd)
{
	char text[16] = "";
	unsigned int nr;

	return pread(fd, text, sizeof(text) - 1, 0) > 0 && sscanf(text, "%u", &nr) == 1 ? nr : 0;
}

int csink_lost_runs_add(const char *place, uint32_t nr)
{
	CSINK_AUTO_CLOSE int fd = open_count(place, O_RDWR | O_CREAT);
	char text[16];
	int length;

	if (fd < 0)
		return fd;
	if (flock(fd, LOCK_EX))
		return -errno;
	/* The number only grows, so that no old digit is left behind it. */
	length = snprintf(text, sizeof(text), "%u\n", read_count(fd) + nr);
	return pwrite(fd, text, (size_t)length, 0) == length ? 0 : errno ? -errno : -ENOSPC;
}

uint32_t csink_lost_runs(const char *run_dir)
{
	const char *slash = strrchr(run_dir, '/');
	char place[PATH_MAX] = ".";
	CSINK_AUTO_CLOSE int fd = -1;

	if (slash && snprintf(place, sizeof(place), "%.*s", (int)(slash - run_dir), run_dir) >= (int)sizeof(place))
		return 0;
	fd = open_count(place, O_RDONLY);
	return fd < 0 ? 0 : read_count(fd);
}
