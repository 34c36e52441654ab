/* Which build of an object a file is. Context: thread. */
#ifndef CSINK_ELF_BUILD_H
#define CSINK_ELF_BUILD_H

#include <elfutils/libdwelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

/** Whether it has that build-id, of len bytes. */
static inline bool csink_elf_is_build(Elf *elf, const uint8_t *build_id, size_t len)
{
	const void *id;
	ssize_t id_len = dwelf_elf_gnu_build_id(elf, &id);

	return id_len > 0 && (size_t)id_len == len && !memcmp(id, build_id, len);
}

#endif
