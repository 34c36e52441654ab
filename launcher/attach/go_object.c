/* See go_object.h. Runs in the attach command's one thread. */
#include "launcher/attach/go_object.h"

#include <stdlib.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"

#define MAX_TABLE (256U << 20)
#define MAX_LOOKED (64U << 20) /* bytes in which the table, or the code's address, is looked for */
#define WINDOW (1U << 20)

/* ---- where it is ---- */

/* By its header. Tables begin at multiples of 16. */
static bool look_through(const struct csink_object_file *file, uint64_t start, uint64_t size, uint64_t offset,
			 uint64_t *vaddr)
{
	CSINK_AUTO_FREE uint8_t *window = malloc(WINDOW);

	size = CSINK_MIN(size, (uint64_t)MAX_LOOKED);
	for (uint64_t from = -start & 15; window && from < size && size - from >= 16; from += WINDOW) {
		uint64_t bytes = CSINK_MIN(size - from, (uint64_t)WINDOW);

		if (!csink_object_file_read(file, window, bytes, offset + from))
			return false;
		for (uint64_t at = 0; at + 16 <= bytes; at += 16) {
			if (!csink_go_is_header(window + at, bytes - at))
				continue;
			*vaddr = start + from + at;
			return true;
		}
	}
	return false;
}

static bool find(const struct csink_object_file *file, uint64_t *vaddr, uint64_t *bytes)
{
	static const char *const names[] = {".gopclntab", ".data.rel.ro.gopclntab"};
	ElfW(Shdr) section;

	for (uint32_t i = 0; i < CSINK_ARRAY_SIZE(names); i++) {
		if (!csink_object_file_section(file, names[i], &section))
			continue;
		*vaddr = section.sh_addr;
		*bytes = section.sh_size;
		return true;
	}
	/* The linkers of C put it into another section where the program can be loaded anywhere. */
	if (csink_object_file_section(file, ".go.buildinfo", &section) &&
	    csink_object_file_section(file, ".data.rel.ro", &section)) {
		if (!look_through(file, section.sh_addr, section.sh_size, section.sh_offset, vaddr))
			return false;
		*bytes = section.sh_size - (*vaddr - section.sh_addr);
		return true;
	}
	if (file->head.e_shnum || file->fd < 0)
		return false;
	for (uint32_t i = 0; i < file->nr_phdr; i++) {
		const ElfW(Phdr) *segment = &file->phdr[i];

		if (segment->p_type != PT_LOAD || segment->p_flags & PF_X || !segment->p_filesz ||
		    segment->p_filesz > UINT64_MAX - segment->p_vaddr ||
		    !look_through(file, segment->p_vaddr, segment->p_filesz, segment->p_offset, vaddr))
			continue;
		*bytes = segment->p_filesz - (*vaddr - segment->p_vaddr);
		return true;
	}
	return false;
}

/* ---- opening it ---- */

/* With the segment of data beside it, where the record of the runtime is that has what the header may lack. */
static bool open_with_data(struct csink_go_table *table, const struct csink_object_file *file,
			   const struct csink_go_bytes *copied)
{
	struct csink_go_bytes parts[] = {*copied, {0}};
	const struct csink_go_program program = {parts, CSINK_ARRAY_SIZE(parts)};

	for (uint32_t i = 0; i < file->nr_phdr; i++) {
		const ElfW(Phdr) *segment = &file->phdr[i];
		CSINK_AUTO_FREE uint8_t *data = NULL;
		uint64_t size = CSINK_MIN(segment->p_filesz, (uint64_t)MAX_LOOKED);

		if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_W) || !size)
			continue;
		data = malloc(size);
		if (!data || !csink_object_file_read(file, data, size, segment->p_offset))
			continue;
		parts[1] = (struct csink_go_bytes){segment->p_vaddr, data, size};
		if (csink_go_open(table, &program, copied->vaddr))
			return true;
	}
	return false;
}

uint64_t csink_go_object_make(struct csink_attach_object *object, const struct csink_object_file *file, uint64_t room)
{
	struct csink_go_bytes copied = {0};
	const ElfW(Phdr) * segment;
	struct csink_go_table *table;

	if (!find(file, &copied.vaddr, &copied.nr) || copied.nr > CSINK_MIN(room, (uint64_t)MAX_TABLE))
		return 0;
	segment = csink_object_file_segment(file, copied.vaddr);
	table = segment ? malloc(sizeof(*table) + copied.nr) : NULL;
	if (!table)
		return 0;
	copied.at = (uint8_t *)(table + 1);
	if (csink_object_file_read(file, table + 1, copied.nr, segment->p_offset + (copied.vaddr - segment->p_vaddr)) &&
	    (csink_go_open(table, &(struct csink_go_program){&copied, 1}, copied.vaddr) ||
	     open_with_data(table, file, &copied))) {
		object->go = table;
		return copied.nr;
	}
	free(table);
	return 0;
}
