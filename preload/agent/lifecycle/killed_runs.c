/*
 * Finds recordings of killed programs: see killed_runs.h. In the constructor; no malloc. Who lives is decided by the
 * kernel's count of writers of a file (csink_run_dir_is_written), not by pids.
 */
#include "preload/agent/lifecycle/killed_runs.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "include/internal/clock.h"
#include "include/internal/rawcall.h"
#include "include/internal/shared_options.h"
#include "preload/agent/lifecycle/config.h"
#include "preload/agent/lifecycle/finish.h"
#include "preload/core/record/run_dir.h"
#include "preload/core/sysfs.h"

/* Of directories of this user's; of names; and of recordings without a writer, beyond which the helper looks. */
enum { MAX_LOOKS = 8, MAX_NAMES = 1024, MAX_RECORDINGS = 32 };

#define OPEN(at, path)                                                                                                 \
	{                                                                                                              \
		.fd = (int)csink_rawcall(SYS_openat, at, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)        \
	}
#define AUTO_CLOSE __attribute__((cleanup(csink_sysfs_dir_close)))

/* Has it recordings, and no writer? A launcher or a helper that is at work on it has its lock. */
static bool is_killed(struct csink_sysfs_dir *dir)
{
	const char *name;
	int found = 0;

	if (csink_rawcall(SYS_flock, dir->fd, LOCK_EX | LOCK_NB))
		return false;
	while (found < MAX_RECORDINGS && (name = csink_sysfs_dir_next(dir))) {
		if (!csink_run_dir_is_recording(name))
			continue;
		if (csink_run_dir_is_written(dir->fd, name))
			return false;
		found++;
	}
	return found > 0;
}

/* A time of change without a fraction is a mark: a helper was started for it then. */
static bool is_due(int place_fd, const char *name, int *nr_looks)
{
	struct timespec now[2] = {{.tv_sec = (time_t)(csink_clock_ns(CLOCK_REALTIME) / CSINK_NS_PER_S)}};
	struct stat st;

	now[1] = now[0];
	if (csink_rawcall(SYS_newfstatat, place_fd, name, &st, AT_SYMLINK_NOFOLLOW) ||
	    (st.st_mode & (S_IFMT | 0777)) != (S_IFDIR | 0700) || st.st_uid != getauxval(AT_EUID) ||
	    (!st.st_mtim.tv_nsec && now->tv_sec - st.st_mtim.tv_sec < 2))
		return false;
	++*nr_looks;
	AUTO_CLOSE struct csink_sysfs_dir dir = OPEN(place_fd, name);
	return is_killed(&dir) && !csink_rawcall(SYS_utimensat, dir.fd, NULL, now, 0);
}

void csink_killed_runs_look(void)
{
	const char *place = getenv(CSINK_ENV_PREFIX "PLACE"), *own = strrchr(csink_config.run_dir, '/'), *name;
	int nr_looks = 0, nr_names = 0;
	bool any = false;

	if (!place || *place != '/' || !own)
		return;
	AUTO_CLOSE struct csink_sysfs_dir dir = OPEN(AT_FDCWD, place);
	while (nr_looks < MAX_LOOKS && nr_names++ < MAX_NAMES && (name = csink_sysfs_dir_next(&dir))) {
		if (strncmp(name, CSINK_RUN_DIR_PREFIX, sizeof(CSINK_RUN_DIR_PREFIX) - 1) || strchr(name, '.') ||
		    !strcmp(name, own + 1))
			continue;
		any |= is_due(dir.fd, name, &nr_looks);
	}
	if (any)
		csink_finish_salvage(place);
}
