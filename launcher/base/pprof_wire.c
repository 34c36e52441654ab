/* See pprof_wire.h. */
#include "launcher/base/pprof_wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/grow.h"
#include "launcher/base/pprof_fields.h"
#include "launcher/base/search.h"

bool csink_wire_varint(const unsigned char **at, const unsigned char *end, uint64_t *value)
{
	uint32_t shift;

	*value = 0;
	for (shift = 0; shift < 70 && *at < end; shift += 7) {
		if (shift < 64)
			*value |= (uint64_t)(**at & 0x7f) << shift;
		if (!(*(*at)++ & 0x80))
			return true;
	}
	return false;
}

int csink_wire_next(const unsigned char **at, const unsigned char *end, struct csink_field *f)
{
	uint64_t key, len;

	if (*at == end)
		return 0;
	if (!csink_wire_varint(at, end, &key) || key >> 3 > UINT32_MAX || !(key >> 3))
		return -EBADMSG;
	*f = (struct csink_field){.number = key >> 3, .wire = key & 7, .bytes = *at}; /* no bytes, but a place */
	switch (f->wire) {
	case WIRE_VARINT:
		return csink_wire_varint(at, end, &f->value) ? 1 : -EBADMSG;
	case WIRE_BYTES:
		if (!csink_wire_varint(at, end, &len) || len > (uint64_t)(end - *at))
			return -EBADMSG;
		f->bytes = *at;
		f->len = len;
		*at += len;
		return 1;
	case WIRE_64:
	case WIRE_32:
		len = f->wire == WIRE_64 ? 8 : 4;
		if (len > (uint64_t)(end - *at))
			return -EBADMSG;
		memcpy(&f->value, *at, len);
		*at += len;
		return 1;
	}
	return -EBADMSG;
}

int csink_wire_number(const struct csink_field *f, const unsigned char **at, uint64_t *value)
{
	bool is_first = !*at;

	*at = is_first ? f->bytes : *at;
	*value = f->value;
	if (f->wire == WIRE_VARINT)
		return is_first;
	if (f->wire != WIRE_BYTES)
		return -EBADMSG;
	if (*at == f->bytes + f->len)
		return 0;
	return csink_wire_varint(at, f->bytes + f->len, value) ? 1 : -EBADMSG;
}

/* ---- ids ---- */

int csink_ids_add(struct csink_ids *ids, uint64_t theirs, uint32_t ours)
{
	return CSINK_APPEND(ids->all, ids->nr, ids->cap, (struct id){theirs, ours}) ? 0 : -ENOMEM;
}

bool csink_ids_sort(struct csink_ids *ids)
{
	uint32_t i;

	for (i = 0; i < ids->nr && ids->all[i].theirs == i + 1; i++)
		;
	if (i == ids->nr)
		return true;
	qsort(ids->all, ids->nr, sizeof(*ids->all), csink_compare_u64);
	ids->sorted = true;
	for (i = 1; i < ids->nr; i++) {
		if (ids->all[i].theirs == ids->all[i - 1].theirs)
			return false;
	}
	return true;
}

uint32_t csink_ids_find(const struct csink_ids *ids, uint64_t theirs)
{
	struct id key = {.theirs = theirs}, *found;

	if (!ids->sorted)
		return theirs && theirs <= ids->nr ? ids->all[theirs - 1].ours : 0;
	found = bsearch(&key, ids->all, ids->nr, sizeof(key), csink_compare_u64);
	return found ? found->ours : 0;
}
