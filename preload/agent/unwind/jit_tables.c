/*
 * Unwind tables of registered code: the compiler's own .eh_frame, in which addresses are final, is copied, and its
 * entries are listed by address in a table such as linkers make (.eh_frame_hdr). The walker then reads the copy as it
 * reads an object's tables: at addresses that differ from the program's by the same distance. In the handler of the one
 * thread that looks at the lists; async-signal-safe.
 */
#include <string.h>

#include "include/internal/base.h"
#include "preload/agent/unwind/jit_impl.h"
#include "preload/core/cfi/cfi_read.h"
#include "preload/core/private_memory.h"

enum {
	MAX_BYTES = 1 << 20,   /* of one .eh_frame */
	MAX_BLOCKS = 64 << 20, /* of all copies */
	MAX_ENTRIES = 8192,    /* of one */
	MAX_TRIES = 100,       /* of looks, for tables whose addresses are not final yet */
	HDR_BYTES = 12,
	HDR_ENTRY = 8,
};

static uint64_t nr_block_bytes; /* of the thread that looks */

static bool is_eh_frame(const struct csink_jit_image *image, const Elf64_Shdr *section, const Elf64_Shdr *names)
{
	static const char name[] = ".eh_frame";

	return section->sh_flags & SHF_ALLOC && names->sh_type == SHT_STRTAB && names->sh_size >= sizeof(name) &&
	       section->sh_name <= names->sh_size - sizeof(name) &&
	       !memcmp(image->at + names->sh_offset + section->sh_name, name, sizeof(name));
}

static bool find_section(const struct csink_jit_image *image, Elf64_Shdr *section)
{
	Elf64_Shdr names;
	Elf64_Ehdr ehdr;

	memcpy(&ehdr, image->at, sizeof(ehdr));
	if (!csink_jit_image_section(image, ehdr.e_shstrndx, &names))
		return false;
	for (uint32_t i = 1; i < image->nr_sections; i++) {
		if (csink_jit_image_section(image, i, section) && section->sh_addr && section->sh_size &&
		    section->sh_size <= MAX_BYTES && is_eh_frame(image, section, &names))
			return true;
	}
	return false;
}

static bool has_room(struct csink_jit_object *object, uint32_t bytes)
{
	uint32_t room = 4096;

	while (room < bytes)
		room *= 2;
	if (bytes <= object->block_bytes)
		return true;
	if (nr_block_bytes + room > MAX_BLOCKS)
		return false;
	/* The old one stays behind: less than the new one. */
	object->block = csink_private_get(room);
	object->block_bytes = object->block ? room : 0;
	nr_block_bytes += object->block_bytes;
	return object->block != NULL;
}

/* The end of the image's code. */
static uint64_t top_of(const struct csink_jit_image *image)
{
	struct csink_jit_range range;
	uint64_t at = 0, top = 0;

	while (csink_jit_image_next(image, &at, &range))
		top = CSINK_MAX(top, range.end);
	return top;
}

struct hdr_entry {
	int32_t start, where; /* from the table's own address */
};

/* Insert by start. */
static bool list_entry(struct hdr_entry *all, uint32_t nr, int64_t start, int64_t where)
{
	if (start != (int32_t)start || where != (int32_t)where)
		return false;
	for (; nr && all[nr - 1].start > start; nr--)
		all[nr] = all[nr - 1];
	all[nr] = (struct hdr_entry){(int32_t)start, (int32_t)where};
	return true;
}

/* List the entries of the copy behind it. Returns how many are of the image's code; *nr_all are there. */
static uint32_t list_entries(struct csink_jit_object *object, const struct csink_jit_image *image, uint32_t *nr_all)
{
	struct csink_cfi_table *table = &object->table;
	struct hdr_entry *entries = (struct hdr_entry *)(table->hdr + HDR_BYTES);
	uint32_t room = (uint32_t)(table->hdr_end - table->hdr - HDR_BYTES) / HDR_ENTRY, nr = 0;
	uint64_t top = top_of(image);
	struct csink_cfi_fde fde;

	*nr_all = 0;
	for (const uint8_t *at = table->low; nr < room && at && at < table->high;
	     at = csink_cfi_next_entry(at, table->high)) {
		bool found = csink_cfi_read_entry(table, at, &fde);

		*nr_all += found;
		if (found && fde.start >= object->base && fde.end <= top &&
		    list_entry(entries, nr, (int64_t)(fde.start + table->shift - (uintptr_t)table->hdr),
			       at - table->hdr))
			nr++;
	}
	return nr;
}

static void write_head(uint8_t *hdr, uint32_t nr)
{
	/* Version; encodings of the pointer to .eh_frame, the number, the table. */
	static const uint8_t head[] = {1, CSINK_PE_SDATA4 | CSINK_PE_PCREL, CSINK_PE_UDATA4,
				       CSINK_PE_SDATA4 | CSINK_PE_DATAREL};

	memset(hdr, 0, HDR_BYTES);
	memcpy(hdr, head, sizeof(head));
	memcpy(hdr + 8, &nr, sizeof(nr));
}

void csink_jit_tables_take(struct csink_jit_object *object, const struct csink_jit_image *image)
{
	uint8_t nr_tries = object->nr_tries;
	uint32_t bytes, room, nr, nr_all;
	Elf64_Shdr section;

	object->has_table = false;
	object->nr_tries = 0;
	if (!find_section(image, &section))
		return;
	/* The smallest entry has 16 bytes. */
	bytes = (uint32_t)CSINK_ALIGN_UP(section.sh_size, 16u);
	room = bytes + HDR_BYTES + CSINK_MIN(bytes / 16, (uint32_t)MAX_ENTRIES) * HDR_ENTRY;
	if (!has_room(object, room) ||
	    !csink_copy_by_call(object->block, (void *)(uintptr_t)section.sh_addr, section.sh_size))
		return;
	object->table = (struct csink_cfi_table){.low = object->block,
						 .high = object->block + section.sh_size,
						 .hdr = object->block + bytes,
						 .hdr_end = object->block + room,
						 .shift = (uintptr_t)object->block - section.sh_addr};
	nr = list_entries(object, image, &nr_all);
	write_head(object->block + bytes, nr);
	object->has_table = nr != 0;
	if (nr < nr_all && nr_tries < MAX_TRIES)
		object->nr_tries = nr_tries + 1;
}
