/* See protobuf.h. */
#include "launcher/base/protobuf.h"

#include <string.h>

#include "include/internal/grow.h"
#include "launcher/base/pprof_fields.h"

bool csink_protobuf_room(struct csink_protobuf *b, size_t more)
{
	if (!b->err)
		b->err = CSINK_GROW_TO(b->bytes, b->cap, b->used + more);
	return !b->err;
}

void csink_protobuf_append(struct csink_protobuf *b, const void *bytes, size_t len)
{
	if (!len || !csink_protobuf_room(b, len))
		return;
	memcpy(b->bytes + b->used, bytes, len);
	b->used += len;
}

void csink_protobuf_varint(struct csink_protobuf *b, uint64_t value)
{
	if (csink_protobuf_room(b, CSINK_VARINT_MAX))
		b->used += csink_varint_store(b->bytes + b->used, value);
}

void csink_protobuf_number(struct csink_protobuf *b, uint32_t field, uint64_t value)
{
	if (!value)
		return;
	csink_protobuf_varint(b, field << 3 | WIRE_VARINT);
	csink_protobuf_varint(b, value);
}

void csink_protobuf_fixed64(struct csink_protobuf *b, uint32_t field, uint64_t value)
{
	if (!value)
		return;
	csink_protobuf_varint(b, field << 3 | WIRE_64);
	if (!csink_protobuf_room(b, sizeof(value)))
		return;
	for (uint32_t i = 0; i < sizeof(value); i++, value >>= 8)
		b->bytes[b->used++] = (unsigned char)value;
}

void csink_protobuf_bytes(struct csink_protobuf *b, uint32_t field, const void *bytes, size_t len)
{
	csink_protobuf_varint(b, field << 3 | WIRE_BYTES);
	csink_protobuf_varint(b, len);
	csink_protobuf_append(b, bytes, len);
}

/* One byte is kept for the length; more are made at the end in the rare case. */
size_t csink_protobuf_begin(struct csink_protobuf *b, uint32_t field)
{
	csink_protobuf_varint(b, field << 3 | WIRE_BYTES);
	csink_protobuf_varint(b, 0);
	return b->used;
}

void csink_protobuf_end(struct csink_protobuf *b, size_t start)
{
	size_t len = b->used - start, more;
	unsigned char varint[CSINK_VARINT_MAX];

	if (b->err)
		return;
	more = csink_varint_store(varint, len) - 1;
	if (more) {
		if (!csink_protobuf_room(b, more))
			return;
		memmove(b->bytes + start + more, b->bytes + start, len);
		b->used += more;
	}
	memcpy(b->bytes + start - 1, varint, more + 1);
}

void csink_protobuf_numbers(struct csink_protobuf *b, uint32_t field, const uint64_t *numbers, uint32_t nr)
{
	size_t start = csink_protobuf_begin(b, field);

	for (uint32_t i = 1; i < nr; i++)
		csink_protobuf_number(b, i, numbers[i]);
	csink_protobuf_end(b, start);
}
