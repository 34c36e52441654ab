/*
 * Finds recordings of killed programs: see killed_runs.h. In the constructor; no malloc. Who lives is decided by the
 * kernel's count of writers of a file (csink_run_dir_is_written), not by pids.
 */
#include "preload/agent/lifecycle/killed_runs.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "include/internal/clock.h"
#include "include/internal/rawcall.h"
#include "preload/agent/lifecycle/config.h"
#include "preload/agent/lifecycle/finish.h"
#include "preload/core/record/run_dir.h"
#include "preload/core/sysfs.h"

enum { MAX_LOOKS = 8 };

#define OPEN(at, path)                                                                                                 \
	{                                                                                                              \
		.fd = (int)csink_rawcall(SYS_openat, at, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)        \
	}
#define AUTO_CLOSE __attribute__((cleanup(csink_sysfs_dir_close)))

/* Has it recordings, and no writer? A launcher or a helper that is at work on it has its lock. */
static bool is_killed(struct csink_sysfs_dir *dir)
{
	bool found = false;
	const char *name;

	if (csink_rawcall(SYS_flock, dir->fd, LOCK_EX | LOCK_NB))
		return false;
	while ((name = csink_sysfs_dir_next(dir))) {
		if (!csink_run_dir_is_recording(name))
			continue;
		if (csink_run_dir_is_written(dir->fd, name))
			return false;
		found = true;
	}
	return found;
}

/* A time of change without a fraction is a mark: a helper was started for it then. */
static bool is_due(int place_fd, const char *name)
{
	struct timespec now[2] = {{.tv_sec = (time_t)(csink_clock_ns(CLOCK_REALTIME) / CSINK_NS_PER_S)}};
	struct stat st;

	now[1] = now[0];
	if (csink_rawcall(SYS_newfstatat, place_fd, name, &st, AT_SYMLINK_NOFOLLOW) || st.st_mode != (S_IFDIR | 0700) ||
	    st.st_uid != getauxval(AT_EUID) || (!st.st_mtim.tv_nsec && now->tv_sec - st.st_mtim.tv_sec < 2))
		return false;
	AUTO_CLOSE struct csink_sysfs_dir dir = OPEN(place_fd, name);
	return is_killed(&dir) && !csink_rawcall(SYS_utimensat, dir.fd, NULL, now, 0);
}

void csink_killed_runs_look(void)
{
	char *place = csink_config.run_dir, *own = strrchr(place, '/');
	const char *name;
	int nr_looks = 0;
	bool any = false;

	*own = '\0';
	AUTO_CLOSE struct csink_sysfs_dir dir = OPEN(AT_FDCWD, place);
	while (nr_looks < MAX_LOOKS && (name = csink_sysfs_dir_next(&dir))) {
		if (strncmp(name, CSINK_RUN_DIR_PREFIX, sizeof(CSINK_RUN_DIR_PREFIX) - 1) || strchr(name, '.') ||
		    !strcmp(name, own + 1))
			continue;
		any |= is_due(dir.fd, name);
		nr_looks++;
	}
	if (any)
		csink_finish_salvage(place);
	*own = '/';
}
