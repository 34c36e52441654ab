/* Reading .eh_frame's bytes: a cursor that cannot leave its bounds. After a failed read it stays failed. Context of
 * everything here: signal. */
#ifndef CSINK_CFI_READ_H
#define CSINK_CFI_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

static inline void csink_read_skip(struct csink_reader *r, uint64_t bytes)
{
	if (r->failed || (uint64_t)(r->end - r->at) < bytes)
		r->failed = true;
	else
		r->at += bytes;
}

uint8_t csink_read_u8(struct csink_reader *r);
uint16_t csink_read_u16(struct csink_reader *r);
uint32_t csink_read_u32(struct csink_reader *r);
uint64_t csink_read_u64(struct csink_reader *r);
uint64_t csink_read_uleb(struct csink_reader *r);
int64_t csink_read_sleb(struct csink_reader *r);

/** An encoded pointer. data_base is what DW_EH_PE_datarel is relative to. Indirect ones are refused. */
uint64_t csink_read_encoded(struct csink_reader *r, uint8_t encoding, uint64_t data_base);

#endif
