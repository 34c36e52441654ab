/* See eh_index.h. One pass over the entries, each of which is checked; any thread. */
#include "launcher/attach/eh_index.h"

#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "launcher/symbols/eh_frame_32.h"
#include "preload/core/cfi/cfi_read.h"

#define MAX_BYTES (64U << 20) /* of a segment that is looked through, of .eh_frame */
#define LEAST_ENTRY 12        /* bytes of an entry: its length, its CIE, an address */
#define MAX_FIRST_CIE 256     /* bytes of the entry that .eh_frame begins with */
#define INDEX_HEAD 12         /* bytes before the index's entries */
#define LEAST_ENTRIES 8       /* fewer may have the form by accident */

/* ---- the entries of .eh_frame ---- */

static bool is_code(const struct csink_attach_object *object, uint64_t start, uint64_t end)
{
	for (uint32_t i = 0; i < object->nr_code; i++)
		if (start >= object->code[i].vaddr && start - object->code[i].vaddr < object->code[i].filesz &&
		    end - object->code[i].vaddr <= object->code[i].filesz)
			return true;
	return false;
}

/* One entry of the index, as .eh_frame_hdr's table has it: both are relative to the index. */
struct indexed {
	int32_t start, entry;
};

static int compare(const void *a, const void *b)
{
	const struct indexed *x = a, *y = b;

	return x->start != y->start ? (x->start < y->start ? -1 : 1) : (x->entry > y->entry) - (x->entry < y->entry);
}

/* Fill the index with the entries whose code is the object's. Returns how many. */
static uint32_t fill(const struct csink_attach_object *object, struct indexed *to, uint32_t max)
{
	const struct csink_cfi_table *table = &object->table;
	uintptr_t bias = object->table_bias, base = (uintptr_t)table->hdr;
	struct csink_cfi_fde fde;
	uint32_t nr = 0;

	/* Linkers leave ends of tables, which are entries without a length, between the tables of files. */
	for (const uint8_t *at = table->low; at && at < table->high && nr < max;
	     at = csink_cfi_next_entry(at, table->high)) {
		int64_t start, entry;

		if (!csink_cfi_read_entry(table, at, &fde) || !is_code(object, fde.start - bias, fde.end - bias))
			continue;
		start = (int64_t)(fde.start - base);
		entry = (int64_t)((uintptr_t)at - base);
		if (start == (int32_t)start && entry == (int32_t)entry)
			to[nr++] = (struct indexed){(int32_t)start, (int32_t)entry};
	}
	qsort(to, nr, sizeof(*to), compare);
	return nr;
}

/* ---- where it is, without a section's header ---- */

/* The same letters as the reader of entries takes. */
static bool is_cie(const uint8_t *at, const uint8_t *end)
{
	static const char letters[] = "RSLPBG";
	uint32_t length, id;

	if (end - at < 16)
		return false;
	memcpy(&length, at, sizeof(length));
	memcpy(&id, at + 4, sizeof(id));
	if (id || length < LEAST_ENTRY - 4 || length > MAX_FIRST_CIE || length % 4 || (at[8] != 1 && at[8] != 3) ||
	    at[9] != 'z')
		return false;
	for (at += 10; at < end && *at; at++)
		if (!strchr(letters, *at))
			return false;
	return at < end;
}

/* Follow entries from a CIE on: where they end, and how many describe code of the object. */
static const uint8_t *follow(const struct csink_attach_object *object, const struct csink_cfi_table *table,
			     const uint8_t *at, uintptr_t bias, uint32_t *nr)
{
	struct csink_cfi_fde fde;
	const uint8_t *next;

	for (*nr = 0; at < table->high; at = next) {
		next = csink_cfi_next_entry(at, table->high);
		if (!next)
			break;
		if (csink_cfi_read_entry(table, at, &fde))
			*nr += is_code(object, fde.start - bias, fde.end - bias);
		else if (next - at > 4 && !is_cie(at, table->high))
			break;
	}
	return at;
}

struct found {
	uint64_t vaddr, bytes;
	uint32_t nr;
};

/* The longest such run of a segment. Each of its bytes is followed once. */
static void look_through(const struct csink_attach_object *object, const struct csink_object_file *file,
			 const ElfW(Phdr) * segment, struct found *found)
{
	uint64_t size = segment->p_filesz;
	CSINK_AUTO_FREE uint8_t *bytes = size <= MAX_BYTES ? malloc(size) : NULL;
	struct csink_cfi_table table = {.low = bytes};
	const uint8_t *at = bytes, *end;
	uint32_t nr;

	if (!bytes || !csink_object_file_read(file, bytes, size, segment->p_offset))
		return;
	table.high = bytes + size;
	for (at += -segment->p_vaddr & 3; at + LEAST_ENTRY < table.high; at = CSINK_MAX(end, at + 4)) {
		end = at;
		if (!is_cie(at, table.high))
			continue;
		table.low = at;
		end = follow(object, &table, at, (uintptr_t)bytes - segment->p_vaddr, &nr);
		if (nr > found->nr)
			*found = (struct found){segment->p_vaddr + (uint64_t)(at - bytes), (uint64_t)(end - at), nr};
		end -= ((uint64_t)(end - bytes) + segment->p_vaddr) & 3;
	}
}

static bool find(const struct csink_attach_object *object, const struct csink_object_file *file, struct found *found)
{
	ElfW(Shdr) section;

	if (csink_object_file_section(file, ".eh_frame", &section)) {
		*found = (struct found){section.sh_addr, section.sh_size, 0};
		return true;
	}
	/* With headers of sections it would be among them. */
	if (file->head.e_shnum || file->fd < 0)
		return false;
	for (uint32_t i = 0; i < file->nr_phdr; i++) {
		const ElfW(Phdr) *segment = &file->phdr[i];

		if (segment->p_type == PT_LOAD && segment->p_filesz > LEAST_ENTRY &&
		    segment->p_filesz <= UINT64_MAX - segment->p_vaddr)
			look_through(object, file, segment, found);
	}
	return found->nr >= LEAST_ENTRIES;
}

/* ---- */

static void find_stubs(struct csink_attach_object *object, const struct csink_object_file *file)
{
	ElfW(Shdr) section;

	if (!csink_object_file_section(file, ".plt", &section))
		return;
	object->stubs_start = section.sh_addr;
	object->stubs_end = section.sh_addr + section.sh_size;
}

/* Room for so many bytes of entries and their index, in which the offsets can hold the distance. */
static uint64_t allocate(struct csink_attach_object *object, uint64_t entries, uint64_t vaddr)
{
	uint64_t index = CSINK_ALIGN_UP(entries, 8);
	uint64_t bytes = index + INDEX_HEAD + entries / LEAST_ENTRY * sizeof(struct indexed);

	object->copy = calloc(1, bytes);
	if (!object->copy)
		return 0;
	object->table_bias = (uintptr_t)object->copy - vaddr;
	object->table.low = object->copy;
	object->table.high = object->table.low + entries;
	object->table.hdr = object->table.low + index;
	object->table.hdr_end = object->table.low + bytes;
	return bytes;
}

/* The entries are there: find them, and write the index. */
static bool fill_index(struct csink_attach_object *object)
{
	static const uint8_t head[] = {1, CSINK_PE_UDATA4, CSINK_PE_UDATA4, CSINK_PE_DATAREL | CSINK_PE_SDATA4};
	uint8_t *index = (uint8_t *)object->copy + (object->table.hdr - object->table.low);
	uint32_t max = (uint32_t)((object->table.high - object->table.low) / LEAST_ENTRY);
	uint32_t nr = fill(object, (struct indexed *)(index + INDEX_HEAD), max);

	memcpy(index, head, sizeof(head));
	memcpy(index + 8, &nr, sizeof(nr));
	if (!nr)
		object->table = (struct csink_cfi_table){0};
	return nr > 0;
}

uint64_t csink_eh_index_make(struct csink_attach_object *object, const struct csink_object_file *file, uint64_t room)
{
	struct found found = {0};
	const ElfW(Phdr) * segment;
	uint64_t bytes;

	if (!find(object, file, &found) || found.bytes < LEAST_ENTRY || found.bytes > MAX_BYTES ||
	    2 * found.bytes > room)
		return 0;
	segment = csink_object_file_segment(file, found.vaddr);
	bytes = segment ? allocate(object, found.bytes, found.vaddr) : 0;
	if (!bytes)
		return 0;
	if (!csink_object_file_read(file, object->copy, found.bytes,
				    segment->p_offset + (found.vaddr - segment->p_vaddr)))
		object->table = (struct csink_cfi_table){0};
	else if (fill_index(object))
		find_stubs(object, file);
	return bytes;
}

/* ---- 32-bit objects ---- */

/* Where it is: by its section; else from where .eh_frame_hdr says to the end of that segment. */
static bool find_32(const struct csink_object_file *file, const ElfW(Phdr) * hdr, uint64_t *vaddr, uint64_t *bytes)
{
	const ElfW(Phdr) * segment;
	uint8_t head[8];
	uint32_t at;
	ElfW(Shdr) section;

	if (csink_object_file_section(file, ".eh_frame", &section)) {
		*vaddr = section.sh_addr;
		*bytes = section.sh_size;
		return true;
	}
	if (!hdr || hdr->p_filesz < sizeof(head) || !csink_object_file_read(file, head, sizeof(head), hdr->p_offset) ||
	    head[0] != 1 || head[1] != (CSINK_PE_PCREL | CSINK_PE_SDATA4))
		return false;
	memcpy(&at, head + 4, sizeof(at));
	*vaddr = (uint32_t)(at + hdr->p_vaddr + 4);
	segment = csink_object_file_segment(file, *vaddr);
	*bytes = segment ? segment->p_filesz - (*vaddr - segment->p_vaddr) : 0;
	return segment != NULL;
}

uint64_t csink_eh_index_make_32(struct csink_attach_object *object, const struct csink_object_file *file,
				const ElfW(Phdr) * hdr, uint64_t room)
{
	CSINK_AUTO_FREE uint8_t *in = NULL, *entries = NULL;
	const ElfW(Phdr) * segment;
	uint64_t vaddr, nr_in, bytes;
	uint32_t nr = 0;

	if (!find_32(file, hdr, &vaddr, &nr_in) || nr_in < LEAST_ENTRY || nr_in > MAX_BYTES || 6 * nr_in > room)
		return 0;
	segment = csink_object_file_segment(file, vaddr);
	in = segment ? malloc(nr_in) : NULL;
	if (!in || !csink_object_file_read(file, in, nr_in, segment->p_offset + (vaddr - segment->p_vaddr)))
		return 0;
	entries = csink_eh_frame_32_rewrite(in, nr_in, vaddr, &nr);
	bytes = entries && nr >= LEAST_ENTRY ? allocate(object, nr, vaddr) : 0;
	if (!bytes)
		return 0;
	memcpy(object->copy, entries, nr);
	fill_index(object);
	return bytes;
}
