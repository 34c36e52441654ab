/* Reading .eh_frame's bytes: see cfi_read.h. Async-signal-safe, any thread: nothing is shared, and no call is made. */
#include "preload/core/cfi/cfi_read.h"

#include <string.h>

#define MAX_SHIFT (7 * 16) /* more bytes than a number of 64 bits needs, as some writers fill it up with zeroes */

static bool room(struct csink_reader *r, size_t bytes)
{
	if (r->failed || (size_t)(r->end - r->at) < bytes) {
		r->failed = true;
		return false;
	}
	return true;
}

#define DEFINE_READ(name, type)                                                                                        \
	type csink_read_##name(struct csink_reader *r)                                                                 \
	{                                                                                                              \
		type value = 0;                                                                                        \
		if (room(r, sizeof(value))) {                                                                          \
			memcpy(&value, r->at, sizeof(value));                                                          \
			r->at += sizeof(value);                                                                        \
		}                                                                                                      \
		return value;                                                                                          \
	}
DEFINE_READ(u8, uint8_t)
DEFINE_READ(u16, uint16_t)
DEFINE_READ(u32, uint32_t)
DEFINE_READ(u64, uint64_t)
#undef DEFINE_READ

uint64_t csink_read_uleb(struct csink_reader *r)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; shift < MAX_SHIFT; shift += 7) {
		uint8_t byte = csink_read_u8(r);

		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) /* a failed read gives 0, and so an end */
			return value;
	}
	r->failed = true;
	return 0;
}

int64_t csink_read_sleb(struct csink_reader *r)
{
	const uint8_t *start = r->at;
	uint64_t value = csink_read_uleb(r);
	size_t bits = 7 * (size_t)(r->at - start);

	if (!r->failed && bits < 64 && r->at[-1] & 0x40)
		value |= ~0ULL << bits;
	return (int64_t)value;
}

uint64_t csink_read_encoded(struct csink_reader *r, uint8_t encoding, uint64_t data_base)
{
	uint64_t base = 0, value = 0;

	switch (encoding & CSINK_PE_RELATION) {
	case 0:
		break;
	case CSINK_PE_PCREL:
		base = (uint64_t)(uintptr_t)r->at;
		break;
	case CSINK_PE_DATAREL:
		base = data_base;
		break;
	default:
		r->failed = true;
	}
	if (encoding & CSINK_PE_INDIRECT)
		r->failed = true;
	switch (encoding & CSINK_PE_FORMAT) {
	case CSINK_PE_ABSPTR:
	case CSINK_PE_UDATA8:
	case CSINK_PE_SDATA8:
		value = csink_read_u64(r);
		break;
	case CSINK_PE_UDATA4:
		value = csink_read_u32(r);
		break;
	case CSINK_PE_SDATA4:
		value = (uint64_t)(int64_t)(int32_t)csink_read_u32(r);
		break;
	case CSINK_PE_UDATA2:
		value = csink_read_u16(r);
		break;
	case CSINK_PE_SDATA2:
		value = (uint64_t)(int64_t)(int16_t)csink_read_u16(r);
		break;
	case CSINK_PE_ULEB128:
		value = csink_read_uleb(r);
		break;
	case CSINK_PE_SLEB128:
		value = (uint64_t)csink_read_sleb(r);
		break;
	default:
		r->failed = true;
	}
	return base + value;
}
