/* From tables and an address to its frame description entry: .eh_frame_hdr's sorted table, FDE, CIE. Any thread;
 * async-signal-safe. */
#include "preload/core/cfi/cfi.h"

#include <string.h>

#include "preload/core/cfi/cfi_read.h"

#define HDR_VERSION 1
#define TABLE_ENCODING (CSINK_PE_DATAREL | CSINK_PE_SDATA4) /* what every linker writes; others are not searched */
#define TABLE_ENTRY 8
#define MAX_LETTERS 16 /* of an augmentation */

/* The length that begins an entry. Bounds the reader to the entry; gives where the entry's own fields start. */
static bool read_length(struct csink_reader *r, bool *is_64)
{
	uint64_t length = csink_read_u32(r);

	*is_64 = length == 0xffffffff;
	if (*is_64)
		length = csink_read_u64(r);
	if (r->failed || !length || length > (uint64_t)(r->end - r->at))
		return false;
	r->end = r->at + length;
	return true;
}

/* What follows the letters of an augmentation that starts with 'z'. */
static void read_augmentation(struct csink_reader *r, const uint8_t *letter, struct csink_cfi_fde *fde)
{
	uint64_t bytes = csink_read_uleb(r);
	struct csink_reader data = *r;

	csink_read_skip(r, bytes);
	if (r->failed)
		return;
	data.end = r->at;
	for (; *letter; letter++) {
		uint8_t encoding;

		switch (*letter) {
		case 'R':
			fde->address_encoding = csink_read_u8(&data);
			break;
		case 'S':
			fde->signal_frame = true;
			break;
		case 'L':
			csink_read_u8(&data);
			break;
		case 'P': /* a personality routine, of no interest, may be indirect */
			encoding = csink_read_u8(&data);
			csink_read_encoded(&data, encoding & (uint8_t)~CSINK_PE_INDIRECT, 0);
			break;
		case 'B': /* aarch64: which key signs */
		case 'G': /* aarch64: tagged stack */
			break;
		default: /* unknown: its data's size is unknown, too */
			data.failed = true;
		}
		if (data.failed)
			r->failed = true;
	}
}

static bool read_cie(const uint8_t *at, struct csink_cfi_fde *fde)
{
	struct csink_reader r = {at, fde->high, at < fde->low || at >= fde->high};
	const uint8_t *augmentation;
	uint8_t version;
	bool is_64;

	if (!read_length(&r, &is_64) || (is_64 ? csink_read_u64(&r) : csink_read_u32(&r)) != 0)
		return false;
	version = csink_read_u8(&r);
	augmentation = r.at;
	while (csink_read_u8(&r) && r.at - augmentation <= MAX_LETTERS)
		;
	if (r.failed || r.at[-1] || (version != 1 && version != 3 && version != 4))
		return false;
	if (version == 4 && (csink_read_u8(&r) != sizeof(void *) || csink_read_u8(&r) != 0))
		return false;
	fde->code_align = csink_read_uleb(&r);
	fde->data_align = csink_read_sleb(&r);
	fde->ra_reg = version == 1 ? csink_read_u8(&r) : csink_read_uleb(&r);
	fde->address_encoding = CSINK_PE_ABSPTR;
	fde->signal_frame = false;
	fde->augmented = *augmentation == 'z';
	if (fde->augmented)
		read_augmentation(&r, augmentation + 1, fde);
	else if (*augmentation)
		return false;
	fde->initial = r.at;
	fde->initial_end = r.end;
	return !r.failed && fde->ra_reg == CSINK_REG_RA;
}

bool csink_cfi_read_entry(const struct csink_cfi_table *table, const uint8_t *at, struct csink_cfi_fde *fde)
{
	struct csink_reader r = {at, table->high, at < table->low || at >= table->high};
	const uint8_t *cie_field;
	uint64_t back;
	bool is_64;

	fde->low = table->low;
	fde->high = table->high;
	if (!read_length(&r, &is_64))
		return false;
	cie_field = r.at;
	back = is_64 ? csink_read_u64(&r) : csink_read_u32(&r);
	if (r.failed || !back || back > (uint64_t)(cie_field - table->low) || !read_cie(cie_field - back, fde))
		return false;
	fde->start = csink_read_encoded(&r, fde->address_encoding, 0);
	fde->end = fde->start + csink_read_encoded(&r, fde->address_encoding & CSINK_PE_FORMAT, 0);
	if (fde->augmented)
		csink_read_skip(&r, csink_read_uleb(&r));
	fde->code = r.at;
	fde->code_end = r.end;
	fde->start -= table->shift;
	fde->end -= table->shift;
	return !r.failed && fde->start < fde->end;
}

/* The last entry of the sorted table that starts at or below pc. */
static const uint8_t *search_table(const struct csink_cfi_table *table, uintptr_t pc)
{
	struct csink_reader r = {table->hdr, table->hdr_end, false};
	uint64_t base = (uint64_t)(uintptr_t)table->hdr, nr, low = 0, high;
	uint8_t version = csink_read_u8(&r), frame_encoding = csink_read_u8(&r), count_encoding = csink_read_u8(&r);
	int64_t wanted = (int64_t)(pc - base);
	const uint8_t *entries;

	if (version != HDR_VERSION || csink_read_u8(&r) != TABLE_ENCODING || frame_encoding == CSINK_PE_OMIT ||
	    count_encoding == CSINK_PE_OMIT)
		return NULL;
	csink_read_encoded(&r, frame_encoding, base);
	nr = csink_read_encoded(&r, count_encoding, base);
	if (r.failed || nr > (uint64_t)(r.end - r.at) / TABLE_ENTRY || wanted != (int32_t)wanted)
		return NULL;
	entries = r.at;
	for (high = nr; low < high;) {
		uint64_t mid = (low + high) / 2;
		int32_t start;

		memcpy(&start, entries + mid * TABLE_ENTRY, sizeof(start));
		if (start <= wanted)
			low = mid + 1;
		else
			high = mid;
	}
	if (low) {
		int32_t where;

		memcpy(&where, entries + (low - 1) * TABLE_ENTRY + 4, sizeof(where));
		return (const uint8_t *)(uintptr_t)(base + (uint64_t)(int64_t)where);
	}
	return NULL;
}

bool csink_cfi_find(const struct csink_cfi_table *table, uintptr_t pc, struct csink_cfi_fde *fde)
{
	const uint8_t *at = search_table(table, pc + table->shift);

	return at && csink_cfi_read_entry(table, at, fde) && pc >= fde->start && pc < fde->end;
}
