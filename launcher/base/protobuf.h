/*
 * Writes messages of protobuf into memory: by hand, which for two messages is shorter than any generator's. Errors are
 * sticky: err is asked for once, at the end. Context of all: any one thread.
 */
#ifndef CSINK_PROTOBUF_H
#define CSINK_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CSINK_VARINT_MAX 10 /* bytes of a number at most */

struct csink_protobuf {
	unsigned char *bytes; /* malloc'ed */
	size_t used;
	uint32_t cap;
	int err; /* 0 or -ENOMEM */
};

/** Make room for so many more bytes. Returns whether there is. */
bool csink_protobuf_room(struct csink_protobuf *b, size_t more);

/** Store a number where there is room. Returns its bytes. */
static inline size_t csink_varint_store(unsigned char *to, uint64_t value)
{
	size_t nr = 0;

	while (value >= 0x80) {
		to[nr++] = value | 0x80;
		value >>= 7;
	}
	to[nr++] = value;
	return nr;
}

/** Append what another message or list has of its own. */
void csink_protobuf_append(struct csink_protobuf *b, const void *bytes, size_t len);

/** Append a number alone, as elements of packed lists are. */
void csink_protobuf_varint(struct csink_protobuf *b, uint64_t value);

/** Append a field: a number (proto3 leaves zeros out); one of 8 bytes (likewise); bytes. */
void csink_protobuf_number(struct csink_protobuf *b, uint32_t field, uint64_t value);
void csink_protobuf_fixed64(struct csink_protobuf *b, uint32_t field, uint64_t value);
void csink_protobuf_bytes(struct csink_protobuf *b, uint32_t field, const void *bytes, size_t len);

/** Begin a message or a packed list, which lasts until its end. Returns what _end needs. */
size_t csink_protobuf_begin(struct csink_protobuf *b, uint32_t field);
void csink_protobuf_end(struct csink_protobuf *b, size_t start);

/** Append a message of numbers, each at the place of its field: place 0 is not used. */
void csink_protobuf_numbers(struct csink_protobuf *b, uint32_t field, const uint64_t *numbers, uint32_t nr);

#define CSINK_PROTOBUF_NUMBERS(b, field, ...)                                                                          \
	csink_protobuf_numbers(b, field, (const uint64_t[]){__VA_ARGS__},                                              \
			       sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

#endif
