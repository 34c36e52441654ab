/*
 * libFuzzer target: bytes as an object whose functions are named: symbol tables, linkage tables, debug information.
 * What libelf and libdw read of it counts against the same limits of time and memory.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "launcher/profile/profile.h"
#include "launcher/symbols/symbols.h"

enum { NR_WANTS = 256 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct csink_profile *p = csink_profile_create();
	struct csink_want wants[NR_WANTS];
	struct csink_object object = {0};
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/tmp/countersink-fuzz-object.%d", (int)getpid());
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (!p || fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	close(fd);
	for (uint64_t i = 0; i < NR_WANTS; i++)
		wants[i] = (struct csink_want){0x1000 + i * 8, csink_profile_location_add(p, 0, i, NULL, 0)};
	object.path = path;
	csink_symbols_resolve(p, &object, wants, NR_WANTS);
	unlink(path);
	csink_profile_free(p);
	return 0;
}
