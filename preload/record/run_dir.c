#include "preload/record/run_dir.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "include/internal/base.h"

static int try_place(const char *place, char *dir, size_t size)
{
	int n;

	if (!place || place[0] != '/')
		return -ENOENT;
	n = snprintf(dir, size, "%s/countersink-XXXXXX", place);
	if (n < 0 || (size_t)n >= size)
		return -ENAMETOOLONG;
	/* mkdtemp(3): 0700, fails rather than follow or reuse anything that is there. */
	return mkdtemp(dir) ? 0 : -errno;
}

int csink_run_dir_create(char *dir, size_t size)
{
	const char *places[] = {getenv("XDG_RUNTIME_DIR"), "/dev/shm", getenv("TMPDIR"), "/tmp"};
	int err = -ENOENT;

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(places); i++) {
		int now = try_place(places[i], dir, size);

		if (now == 0)
			return 0;
		if (now != -ENOENT || err == -ENOENT)
			err = now;
	}
	return err;
}
