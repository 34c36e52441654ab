/*
 * Which methods a compiled frame runs: see hotspot.h. Compiled code has a sorted list of addresses (PcDesc), each with
 * a scope: a method, where in it the address is, and the scope that it was inlined into. Scopes are compressed numbers.
 * Read when the handler meets an address for the first time (hotspot.c keeps what it comes to).
 *
 * Sources: src/hotspot/share/code/scopeDesc.cpp, debugInfo.hpp, utilities/unsigned5.hpp (code/compressedStream.hpp
 * before JDK 20).
 *
 * In handlers of all threads; async-signal-safe.
 */
#include <string.h>

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

/* The first address in the list that is not before an offset in the code. */
static uint64_t find_pc(struct scopes *s, int32_t offset)
{
	uint64_t low = 0, high = s->nr_pcs;

	while (low < high && s->ok) {
		uint64_t middle = low + (high - low) / 2;

		if (pc_offset(s, middle) < offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The scope of an address in the list. 0: none; at both ends of it are addresses of no code. */
static uint32_t scope_of(struct scopes *s, uint64_t i)
{
	int32_t offset = s->ok && i < s->nr_pcs ? pc_offset(s, i) : -1;

	if (!s->ok || offset < 0 || offset == INT32_MAX)
		return 0;
	return (uint32_t)csink_hotspot_load(s->walk, s->vm, s->pcs + i * s->vm->at[HOTSPOT_PC_BYTES], HOTSPOT_PC_SCOPE,
					    &s->ok);
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

/* The methods of a scope, innermost first. */
static uint32_t list_scope(struct scopes *s, uint32_t scope, struct csink_hotspot_place *places, uint32_t max)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; scope && i < max && s->ok; i++) {
		uintptr_t at = s->data + scope;
		uint32_t sender = next_number(s, &at), index = next_number(s, &at), bci = next_number(s, &at);
		uint64_t method = 0;

		s->ok = s->ok && index && csink_interp_load(s->walk, s->metadata + 8UL * (index - 1), &method);
		/* It is stored as one more: 0 is the entry of a synchronized method. */
		places[nr] = (struct csink_hotspot_place){method, bci - 1};
		nr += s->ok && method;
		scope = sender;
	}
	return s->ok ? nr : 0;
}

/*
 * An instruction between two addresses of the list is, as HotSpot itself takes it, in the scope of the second one. But
 * where that is many calls deeper than the first, the instruction may as well lie before a branch that leads elsewhere:
 * then it is in what both have in common.
 */
static uint32_t nr_unsure(struct scopes *s, uint32_t before, const struct csink_hotspot_place *places, uint32_t nr)
{
	enum { MAX_BEFORE = 32, SURE_CALLS = 2 };
	struct csink_hotspot_place others[MAX_BEFORE];
	uint32_t nr_others = list_scope(s, before, others, MAX_BEFORE), same = 0;

	/* From the outermost one on; of the innermost common one the place may differ. */
	while (same < nr && same < nr_others) {
		const struct csink_hotspot_place *one = &places[nr - 1 - same], *other = &others[nr_others - 1 - same];

		same += one->method == other->method;
		if (one->method != other->method || one->bci != other->bci)
			break;
	}
	return same && nr_others < MAX_BEFORE && nr - same > SURE_CALLS ? nr - same : 0;
}

uint32_t csink_hotspot_scopes(struct csink_interp_walk *walk, const struct csink_hotspot *vm,
			      const struct csink_hotspot_blob *blob, uintptr_t pc, struct csink_hotspot_place *places,
			      uint32_t max)
{
	struct scopes s = {.walk = walk, .vm = vm, .ok = true};
	int32_t offset = (int32_t)(pc - blob->code);
	uint32_t nr, unsure = 0;
	uint64_t i;

	find_lists(&s, blob->at);
	if (s.nr_pcs > MAX_PCS)
		return 0;
	i = find_pc(&s, offset);
	nr = list_scope(&s, scope_of(&s, i), places, max);
	if (nr && i && pc_offset(&s, i) != offset)
		unsure = nr_unsure(&s, scope_of(&s, i - 1), places, nr);
	memmove(places, places + unsure, (nr - unsure) * sizeof(*places));
	return s.ok ? nr - unsure : 0;
}
