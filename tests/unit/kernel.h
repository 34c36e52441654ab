/* What depends on the running kernel: for tests of its answers. */
#ifndef CSINK_TESTS_KERNEL_H
#define CSINK_TESTS_KERNEL_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "include/internal/event.h"
#include "preload/core/perf_system.h"

/* Of the kernel that runs, whatever uname(2) says (old_kernel.h). */
__attribute__((unused)) static bool kernel_before(int major, int minor)
{
	FILE *release = fopen("/proc/sys/kernel/osrelease", "re");
	int is = 0, sub = 0, nr = release ? fscanf(release, "%d.%d", &is, &sub) : 0;

	if (release)
		fclose(release);
	return nr == 2 && (is < major || (is == major && sub < minor));
}

/* Does the level of kernel.perf_event_paranoid refuse this process every event? At 3 Debian's kernels do, unless it has
 * CAP_SYS_ADMIN. */
__attribute__((unused)) static bool level_refuses_all(void)
{
	struct perf_event_attr least = csink_perf_least();
	int fd = csink_perf_open(&least, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	struct csink_perf_system system;

	if (fd >= 0)
		close(fd);
	csink_perf_system_read(&system);
	return fd == -EACCES && system.has_paranoid && system.paranoid >= 3;
}

#endif
