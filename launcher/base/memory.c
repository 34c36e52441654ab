/* See memory.h. */
#include "launcher/base/memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "preload/core/sysfs.h"

#define GROUP_LIMIT "/sys/fs/cgroup/memory.max"

/* "max", or bytes. */
static uint64_t group_bytes(void)
{
	int64_t bytes;

	return !csink_sysfs_read_number(&bytes, GROUP_LIMIT) && bytes > 0 ? (uint64_t)bytes : UINT64_MAX;
}

uint64_t csink_memory_bytes(void)
{
	static const int limits[] = {RLIMIT_AS, RLIMIT_DATA};
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
	uint64_t bytes = pages > 0 ? (uint64_t)pages * (uint64_t)page : 1ULL << 30;
	struct rlimit limit;

	bytes = CSINK_MIN(bytes, group_bytes());
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(limits); i++) {
		if (!getrlimit(limits[i], &limit) && limit.rlim_cur != RLIM_INFINITY)
			bytes = CSINK_MIN(bytes, (uint64_t)limit.rlim_cur);
	}
	return CSINK_MAX(bytes, 1ULL << 20);
}
