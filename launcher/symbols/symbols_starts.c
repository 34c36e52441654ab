/*
 * Where functions without names begin: the unwind tables have it. Files are untrusted: libelf checks sections against
 * the file, we check what is in them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "include/internal/grow.h"
#include "launcher/base/path.h"
#include "launcher/symbols/eh_frame_32.h"
#include "launcher/symbols/symbols_impl.h"
#include "preload/core/cfi/cfi.h"

/* The sorted table of .eh_frame_hdr; without one, what .eh_frame's entries describe, sorted as well. */
struct starts {
	const uint8_t *table; /* NULL: own */
	uint64_t section;
	struct csink_span *own;
	uint32_t nr, cap;
};

/*
 * .eh_frame_hdr: version 1, encodings of three fields, then (start, entry) pairs sorted by start. We read what every
 * linker writes: pc-relative .eh_frame pointer, 4-byte count, table of 4-byte offsets from the section.
 */
static bool take_index(struct starts *starts, Elf *elf)
{
	static const uint8_t usual[] = {1, 0x1b, 0x03, 0x3b};
	GElf_Shdr shdr;
	Elf_Scn *scn = csink_elf_section(elf, 0, ".eh_frame_hdr", &shdr);
	Elf_Data *data = scn ? elf_getdata(scn, NULL) : NULL;
	uint32_t nr;

	if (!data || data->d_size < 12 || memcmp(data->d_buf, usual, sizeof(usual)))
		return false;
	starts->table = (uint8_t *)data->d_buf + 12;
	starts->section = shdr.sh_addr;
	memcpy(&nr, starts->table - 4, sizeof(nr));
	starts->nr = CSINK_MIN(nr, (data->d_size - 12) / 8);
	return true;
}

/* Static programs are linked without an index. */
static int take_entries(struct starts *starts, Elf *elf)
{
	GElf_Shdr shdr;
	Elf_Scn *scn = csink_elf_section(elf, 0, ".eh_frame", &shdr);
	Elf_Data *data = scn ? elf_getdata(scn, NULL) : NULL;
	CSINK_AUTO_FREE uint8_t *rewritten = NULL;
	struct csink_cfi_table table = {0};
	struct csink_cfi_fde fde;
	uintptr_t bias;

	if (!data || !data->d_buf)
		return 0;
	table.low = data->d_buf;
	table.high = table.low + data->d_size;
	if (gelf_getclass(elf) == ELFCLASS32) {
		uint32_t bytes = 0;

		table.low = rewritten = csink_eh_frame_32_rewrite(data->d_buf, data->d_size, shdr.sh_addr, &bytes);
		table.high = table.low + bytes;
	}
	bias = (uintptr_t)table.low - shdr.sh_addr; /* relative addresses count from where they are in memory */
	for (const uint8_t *at = table.low; at && at < table.high; at = csink_cfi_next_entry(at, table.high)) {
		if (!csink_cfi_read_entry(&table, at, &fde))
			continue;
		if (!CSINK_APPEND(starts->own, starts->nr, starts->cap,
				  (struct csink_span){fde.start - bias, fde.end - bias}))
			return -ENOMEM;
	}
	if (starts->nr)
		qsort(starts->own, starts->nr, sizeof(*starts->own), csink_compare_u64);
	return 0;
}

static int find_starts(struct starts *starts, Elf *elf)
{
	*starts = (struct starts){0};
	return take_index(starts, elf) ? 0 : take_entries(starts, elf);
}

static uint64_t start_at(const struct starts *starts, uint32_t index)
{
	int32_t offset;

	if (!starts->table)
		return starts->own[index].low;
	memcpy(&offset, starts->table + index * 8ULL, sizeof(offset));
	return starts->section + (uint64_t)(int64_t)offset;
}

/* The last function that begins at or before an address. Where its end is known, only up to there. */
static bool find_start(const struct starts *starts, uint64_t address, uint64_t *start)
{
	uint32_t low = CSINK_LOWER(starts->nr, k, start_at(starts, k) <= address);

	if (!low || (!starts->table && address >= starts->own[low - 1].high))
		return false;
	*start = start_at(starts, low - 1);
	return true;
}

void csink_elf_unwind_starts(struct csink_batch *batch, Elf *elf, const char *path)
{
	struct csink_profile_function function = {0};
	uint64_t start, last_start = 0;
	struct starts starts;
	char name[300];
	int len;
	const char *object = csink_place_object(path, &len);

	if (find_starts(&starts, elf))
		starts.nr = 0;
	for (uint32_t i = 0; i < batch->nr && starts.nr; i++) {
		if (batch->found[i].function || batch->found[i].is_done ||
		    !find_start(&starts, batch->wants[i].address, &start))
			continue;
		if (start != last_start) {
			snprintf(name, sizeof(name), "[%.*s+%#llx]", len, object, (unsigned long long)start);
			function.name = function.system_name = csink_profile_str(batch->p, name);
			last_start = start;
		}
		batch->found[i].function = csink_profile_function_add(batch->p, &function);
	}
	free(starts.own);
}

int csink_elf_unwind_bounds(struct csink_bounds *bounds, Elf *elf)
{
	struct starts starts;
	int err = find_starts(&starts, elf);

	for (uint32_t i = 0; i < starts.nr && !err; i++) {
		if (csink_bounds_hold(bounds, start_at(&starts, i)))
			err = csink_bounds_add(bounds, start_at(&starts, i));
		/* Behind it there may be no function. */
		if (!err && !starts.table && csink_bounds_hold(bounds, starts.own[i].high))
			err = csink_bounds_add(bounds, starts.own[i].high);
	}
	free(starts.own);
	return err;
}
