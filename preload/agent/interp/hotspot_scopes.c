/*
 * Which methods a compiled frame runs: see hotspot.h. Compiled code has a sorted list of addresses (PcDesc), each with
 * a scope: a method, where in it the address is, and the scope that it was inlined into. Scopes are compressed numbers.
 * Read when the handler meets an address for the first time (hotspot.c keeps what it comes to).
 *
 * Sources: src/hotspot/share/code/scopeDesc.cpp, debugInfo.hpp, utilities/unsigned5.hpp (code/compressedStream.hpp
 * before JDK 20).
 */

#include "preload/agent/interp/hotspot.h"

enum {
	MAX_PCS = 1 << 20, /* of one piece of code */
	/* Numbers: a byte below 256 - 64 is the last one; from JDK 20 on no byte is 0. */
	NR_CONTINUED = 64,
	MAX_BYTES = 5,
};

struct scopes {
	struct csink_interp_walk *walk;
	const struct csink_hotspot *vm;
	uintptr_t pcs, data, metadata;
	uint64_t nr_pcs;
	bool ok;
};

/* Where the lists are: behind the code itself, or in memory of their own. */
static void find_lists(struct scopes *s, uintptr_t blob)
{
	const struct csink_hotspot *vm = s->vm;
	uintptr_t base = vm->bytes[HOTSPOT_COMPILED_IMMUTABLE]
				 ? csink_hotspot_known(vm, blob, HOTSPOT_COMPILED_IMMUTABLE)
				 : blob;
	uint64_t start = csink_hotspot_known(vm, blob, HOTSPOT_COMPILED_PCS_OFFSET), end;

	s->pcs = base + start;
	if (vm->bytes[HOTSPOT_COMPILED_SCOPES_OFFSET]) {
		end = csink_hotspot_known(vm, blob, HOTSPOT_COMPILED_SCOPES_OFFSET);
		s->data = base + end;
	} else {
		end = csink_hotspot_known(vm, blob, HOTSPOT_COMPILED_PCS_END);
		s->data = csink_hotspot_known(vm, blob, HOTSPOT_COMPILED_SCOPES);
	}
	s->nr_pcs = end > start ? (end - start) / vm->at[HOTSPOT_PC_BYTES] : 0;
	if (!vm->bytes[HOTSPOT_COMPILED_METADATA_OFFSET]) {
		s->metadata = csink_hotspot_known(vm, blob, HOTSPOT_BLOB_MUTABLE) +
			      csink_hotspot_known(vm, blob, HOTSPOT_BLOB_RELOCATION_BYTES);
		return;
	}
	s->metadata = blob + csink_hotspot_known(vm, blob, HOTSPOT_COMPILED_METADATA_OFFSET);
	/* In 23 and 24 it is that from the blob's data. */
	if (vm->bytes[HOTSPOT_COMPILED_IMMUTABLE])
		s->metadata += csink_hotspot_known(vm, blob, HOTSPOT_BLOB_DATA_OFFSET);
}

static int32_t pc_offset(struct scopes *s, uint64_t i)
{
	return (int32_t)csink_hotspot_load(s->walk, s->vm, s->pcs + i * s->vm->at[HOTSPOT_PC_BYTES], HOTSPOT_PC_OFFSET,
					   &s->ok);
}

/* The scope of an offset in the code: that of the first address in the list which is not before it. 0: none. */
static uint32_t find_scope(struct scopes *s, int32_t offset)
{
	uint64_t low = 0, high = s->nr_pcs;

	while (low < high && s->ok) {
		uint64_t middle = low + (high - low) / 2;

		if (pc_offset(s, middle) < offset)
			low = middle + 1;
		else
			high = middle;
	}
	if (!s->ok || low >= s->nr_pcs || pc_offset(s, low) == INT32_MAX)
		return 0;
	return (uint32_t)csink_hotspot_load(s->walk, s->vm, s->pcs + low * s->vm->at[HOTSPOT_PC_BYTES],
					    HOTSPOT_PC_SCOPE, &s->ok);
}

static uint32_t next_number(struct scopes *s, uintptr_t *at)
{
	uint32_t excluded = s->vm->version >= 20, value = 0;

	for (int i = 0; i < MAX_BYTES && s->ok; i++, ++*at) {
		uint64_t word = 0;
		uint32_t byte;

		s->ok = csink_interp_load(s->walk, *at & ~(uintptr_t)7, &word);
		byte = (uint32_t)(word >> 8 * (*at & 7)) & 0xff;
		if (byte < excluded) {
			s->ok = false;
			break;
		}
		value += (byte - excluded) << 6 * i;
		if (byte < 256 - NR_CONTINUED || i == MAX_BYTES - 1) {
			++*at;
			break;
		}
	}
	return value;
}

uint32_t csink_hotspot_scopes(struct csink_interp_walk *walk, const struct csink_hotspot *vm,
			      const struct csink_hotspot_blob *blob, uintptr_t pc, struct csink_hotspot_place *places,
			      uint32_t max)
{
	struct scopes s = {.walk = walk, .vm = vm, .ok = true};
	uint32_t scope, nr = 0;

	find_lists(&s, blob->at);
	if (s.nr_pcs > MAX_PCS)
		return 0;
	scope = find_scope(&s, (int32_t)(pc - blob->code));
	for (uint32_t i = 0; scope && i < max && s.ok; i++) {
		uintptr_t at = s.data + scope;
		uint32_t sender = next_number(&s, &at), index = next_number(&s, &at), bci = next_number(&s, &at);
		uint64_t method = 0;

		s.ok = s.ok && index && csink_interp_load(walk, s.metadata + 8UL * (index - 1), &method);
		/* It is stored as one more: 0 is the entry of a synchronized method. */
		places[nr] = (struct csink_hotspot_place){method, bci - 1};
		nr += s.ok && method;
		scope = sender;
	}
	return s.ok ? nr : 0;
}
