/*
 * Calls by which a process gives up its rights. Its own recording is mapped already; what it forks and starts
 * afterwards cannot enter the run folder, and gets a folder beside it (run_dir.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/types.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "preload/inject/config.h"
#include "preload/inject/real.h"
#include "preload/record/run_dir.h"
#include "preload/sample/calls_off.h"
#include "preload/sample/process.h"

/* In a user namespace a folder would be of a user that the launcher has no rights over: it could not remove it. */
static bool is_first_namespace(void)
{
	char text[128];
	unsigned int inside, outside, nr;
	int fd = open("/proc/self/uid_map", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = 0;
	return sscanf(text, "%u %u %u", &inside, &outside, &nr) == 3 && !inside && !outside && nr == UINT32_MAX;
}

static void before_change(uid_t to)
{
	int saved = errno;

	if (!csink_calls_are_off(CSINK_CALLS_LIFE) && to != (uid_t)-1 && to != 0 && geteuid() == 0 &&
	    atomic_load_explicit(&csink_process.active, memory_order_relaxed) && is_first_namespace())
		csink_run_dir_share(csink_config.run_dir, to);
	errno = saved;
}

CSINK_EXPORT int setuid(uid_t uid)
{
	before_change(uid);
	return REAL(setuid)(uid);
}

CSINK_EXPORT int seteuid(uid_t uid)
{
	before_change(uid);
	return REAL(seteuid)(uid);
}

CSINK_EXPORT int setreuid(uid_t real, uid_t effective)
{
	before_change(effective);
	return REAL(setreuid)(real, effective);
}

CSINK_EXPORT int setresuid(uid_t real, uid_t effective, uid_t saved)
{
	before_change(effective);
	return REAL(setresuid)(real, effective, saved);
}
