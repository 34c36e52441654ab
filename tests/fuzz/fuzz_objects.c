/*
 * libFuzzer target: bytes as an object that somebody else has mapped, as attach reads it: its build-id, its segments,
 * its unwind tables, of which every entry is looked up. Sanitizers judge.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "launcher/attach/objects.h"
#include "tests/fuzz/no_modules.h"

#define MAX_LOOKUPS 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* .eh_frame_hdr's table begins behind its head: pairs of where code and its entry are. */
static void look_up(const struct csink_attach_object *object)
{
	const struct csink_cfi_table *table = &object->table;
	struct csink_cfi_rules rules;
	struct csink_cfi_fde fde;

	for (size_t i = 0; i < MAX_LOOKUPS && (size_t)(table->hdr_end - table->hdr) >= 20 + 8 * i; i++) {
		int32_t start;

		memcpy(&start, table->hdr + 12 + 8 * i, sizeof(start));
		if (csink_cfi_find(table, (uintptr_t)table->hdr + (uintptr_t)(intptr_t)start, &fde))
			csink_cfi_rules_at(&fde, fde.end - 1, &rules);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct csink_attach_objects objects = {0};
	struct csink_attach_object *object;
	int fd = memfd_create("object", MFD_CLOEXEC);
	char path[32];

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	object = csink_attach_objects_get(&objects, "", path);
	if (!object || object->build_id_len > sizeof(object->build_id))
		abort();
	csink_attach_object_bias(object, 0x10000, 0x1000);
	if (object->table.hdr)
		look_up(object);
	csink_attach_objects_free(&objects);
	close(fd);
	return 0;
}
