/* Reading .eh_frame's bytes: a cursor that cannot leave its bounds. After a failed read it stays failed. */
#ifndef CSINK_CFI_READ_H
#define CSINK_CFI_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* DW_EH_PE_*: how a pointer is written. */
enum {
	CSINK_PE_ABSPTR = 0x00,
	CSINK_PE_ULEB128 = 0x01,
	CSINK_PE_UDATA2 = 0x02,
	CSINK_PE_UDATA4 = 0x03,
	CSINK_PE_UDATA8 = 0x04,
	CSINK_PE_SLEB128 = 0x09,
	CSINK_PE_SDATA2 = 0x0a,
	CSINK_PE_SDATA4 = 0x0b,
	CSINK_PE_SDATA8 = 0x0c,
	CSINK_PE_FORMAT = 0x0f,
	CSINK_PE_PCREL = 0x10,
	CSINK_PE_DATAREL = 0x30,
	CSINK_PE_RELATION = 0x70,
	CSINK_PE_INDIRECT = 0x80,
	CSINK_PE_OMIT = 0xff,
};

struct csink_reader {
	const uint8_t *at, *end;
	bool failed;
};

static inline bool csink_read_room(struct csink_reader *r, size_t bytes)
{
	if (r->failed || (size_t)(r->end - r->at) < bytes) {
		r->failed = true;
		return false;
	}
	return true;
}

static inline void csink_read_skip(struct csink_reader *r, uint64_t bytes)
{
	if (r->failed || (uint64_t)(r->end - r->at) < bytes)
		r->failed = true;
	else
		r->at += bytes;
}

#define CSINK_DEFINE_READ(name, type)                                                                                  \
	static inline type csink_read_##name(struct csink_reader *r)                                                   \
	{                                                                                                              \
		type value = 0;                                                                                        \
		if (csink_read_room(r, sizeof(value))) {                                                               \
			memcpy(&value, r->at, sizeof(value));                                                          \
			r->at += sizeof(value);                                                                        \
		}                                                                                                      \
		return value;                                                                                          \
	}
CSINK_DEFINE_READ(u8, uint8_t)
CSINK_DEFINE_READ(u16, uint16_t)
CSINK_DEFINE_READ(u32, uint32_t)
CSINK_DEFINE_READ(u64, uint64_t)
#undef CSINK_DEFINE_READ

static inline uint64_t csink_read_uleb(struct csink_reader *r)
{
	uint64_t value = 0;

	for (unsigned int shift = 0;; shift += 7) {
		uint8_t byte = csink_read_u8(r);

		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) /* a failed read gives 0, and so an end */
			return value;
	}
}

static inline int64_t csink_read_sleb(struct csink_reader *r)
{
	uint64_t value = 0;

	for (unsigned int shift = 0;; shift += 7) {
		uint8_t byte = csink_read_u8(r);

		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte & 0x80)
			continue;
		if (shift + 7 < 64 && (byte & 0x40))
			value |= ~0ULL << (shift + 7);
		return (int64_t)value;
	}
}

/* An encoded pointer. data_base is what DW_EH_PE_datarel is relative to. Indirect ones are refused. */
static inline uint64_t csink_read_encoded(struct csink_reader *r, uint8_t encoding, uint64_t data_base)
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

#endif
