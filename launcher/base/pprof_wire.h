/* How protobuf encodes, and ids of a file: for the pprof reader alone. Everything is checked against the end. */
#ifndef CSINK_PPROF_WIRE_H
#define CSINK_PPROF_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct csink_field {
	uint32_t number;
	uint32_t wire;
	uint64_t value;             /* VARINT, 64, 32 */
	const unsigned char *bytes; /* BYTES */
	size_t len;
};

/** Read a number at *at; false if it has no end. */
bool csink_wire_varint(const unsigned char **at, const unsigned char *end, uint64_t *value);

/** Returns 1 and the next field, 0 at the end, -EBADMSG. */
int csink_wire_next(const unsigned char **at, const unsigned char *end, struct csink_field *f);

/** The next of a repeated number, which is one value or a packed list; *at is NULL before the first. Returns as above.
 */
int csink_wire_number(const struct csink_field *f, const unsigned char **at, uint64_t *value);

/* Go over these numbers; err is 0 behind them, or -EBADMSG. */
#define EACH_NUMBER(value, f, err)                                                                                     \
	for (const unsigned char *number_ = NULL; ((err) = csink_wire_number(f, &number_, &(value))) > 0;)

/* Go over the fields of a message; err is 0 behind it, or -EBADMSG. */
#define EACH_FIELD(f, message, err)                                                                                    \
	for (const unsigned char *at_ = (message)->bytes, *end_ = at_ + (message)->len;                                \
	     ((err) = csink_wire_next(&at_, end_, &(f))) > 0;)

/* From the file's ids to ours: usually they count from 1 in order, and then the place is the id less 1. */
struct csink_ids {
	struct id {
		uint64_t theirs;
		uint32_t ours;
	} * all;
	uint32_t nr, cap;
	bool sorted;
};

/** Returns 0 or -ENOMEM. */
int csink_ids_add(struct csink_ids *ids, uint64_t theirs, uint32_t ours);

/** Make ids ready to be found. Returns false if one comes twice. */
bool csink_ids_sort(struct csink_ids *ids);

/** Returns ours, or 0 if there is no such id. */
uint32_t csink_ids_find(const struct csink_ids *ids, uint64_t theirs);

#endif
