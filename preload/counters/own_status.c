#include "preload/counters/own_status.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/rawcall.h"

static int number_of(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	return at ? atoi(at + strlen(key)) : 0;
}

int csink_status_read(pid_t pid, struct csink_status *status)
{
	char path[32] = "/proc/self/status", text[4096];
	int saved = errno, err = 0;
	size_t used = 0;
	long fd, n = 0;

	if (pid)
		snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	fd = csink_rawcall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	while (fd >= 0 && used < sizeof(text) - 1 &&
	       (n = csink_rawcall(SYS_read, fd, text + used, sizeof(text) - 1 - used)) > 0)
		used += (size_t)n;
	if (fd < 0 || n < 0)
		err = -errno;
	if (fd >= 0)
		csink_rawcall(SYS_close, fd);
	errno = saved;
	if (err)
		return err;
	text[used] = '\0';
	status->parent = number_of(text, "\nPPid:");
	status->tracer = number_of(text, "\nTracerPid:");
	status->nr_filters = number_of(text, "\nSeccomp_filters:");
	if (!status->nr_filters && number_of(text, "\nSeccomp:") == 2)
		status->nr_filters = 1;
	return 0;
}
