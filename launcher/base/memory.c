/* See memory.h. */
#include "launcher/base/memory.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "launcher/base/regular.h"

#define GROUP_LIMIT "/sys/fs/cgroup/memory.max"

/* "max", or bytes. */
static uint64_t group_bytes(void)
{
	FILE *file = csink_regular_fopen(GROUP_LIMIT, 0, CSINK_REGULAR_ANY);
	char text[32] = "";
	uint64_t bytes;

	if (!file)
		return UINT64_MAX;
	bytes = fgets(text, sizeof(text), file) ? strtoull(text, NULL, 10) : 0;
	fclose(file);
	return bytes ? bytes : UINT64_MAX;
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
