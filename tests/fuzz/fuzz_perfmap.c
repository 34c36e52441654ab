/* libFuzzer target: bytes as a perf-PID.map, which any user may write in /tmp. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "launcher/profile/profile.h"
#include "launcher/symbols/symbols.h"

enum { NR_WANTS = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct csink_profile *p = csink_profile_create();
	struct csink_want wants[NR_WANTS];
	int fd, named;
	char path[64];

	if (!p)
		abort();
	for (uint64_t i = 0; i < NR_WANTS; i++)
		wants[i] = (struct csink_want){i * i * 16, csink_profile_location_add(p, 0, i * i * 16, NULL, 0)};
	snprintf(path, sizeof(path), "/tmp/countersink-fuzz-map.%d", (int)getpid());
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	named = csink_perfmap_resolve(p, path, 0, wants, NR_WANTS);
	if (named > NR_WANTS || csink_profile_error(p))
		abort();
	close(fd);
	unlink(path);
	csink_profile_free(p);
	return 0;
}
