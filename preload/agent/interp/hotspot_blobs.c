/*
 * Pieces of HotSpot's code, and where they are: see hotspot.h. A code heap is divided into segments. For each there is
 * a byte: how far back its block begins, in segments (where it is further than a byte says, by way of other segments).
 *
 * What a heap has committed stays readable: HotSpot never gives any back. So code, blobs and maps are loaded unchecked.
 * Sources: src/hotspot/share/memory/heap.cpp, code/codeBlob.hpp of JDK 11 to 25.
 *
 * In handlers of all threads; async-signal-safe.
 */
#include <string.h>

#include "include/internal/base.h"
#include "preload/agent/interp/hotspot.h"

enum {
	FREE = 0xff,
	MAX_HOPS = 4096,
	NAME_BYTES = HOTSPOT_THAW_AT + 8, /* of a blob's name, read: csink_hotspot_is_thaw() loads the last word */
};

/* What blobs' names begin with. */
static const struct {
	char text[9];
	uint8_t kind;
} names[] = {
	{"nmethod", HOTSPOT_COMPILED}, {"native n", HOTSPOT_WRAPPER}, {"Interpre", HOTSPOT_CODE_OF_INTERPRETER},
	{"StubRout", HOTSPOT_STUBS},   {"vtable c", HOTSPOT_BARE},    {"MethodHa", HOTSPOT_BARE},
	{"I2C/C2I ", HOTSPOT_ADAPTER},
};

/* Names are constants of libjvm: those that were read once, by their address. Stored by any thread. */
static uintptr_t known_names[CSINK_ARRAY_SIZE(names)];

static enum csink_hotspot_kind kind_of(uintptr_t name)
{
	uint64_t word = 0;
	char text[8];

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(names); i++)
		if (__atomic_load_n(&known_names[i], __ATOMIC_RELAXED) == name)
			return (enum csink_hotspot_kind)names[i].kind;
	if (!name || !csink_readable(name, NAME_BYTES))
		return HOTSPOT_OTHER;
	word = csink_load_known(name);
	memcpy(text, &word, sizeof(text));
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(names); i++)
		if (!strncmp(text, names[i].text, sizeof(text))) {
			__atomic_store_n(&known_names[i], name, __ATOMIC_RELAXED);
			return (enum csink_hotspot_kind)names[i].kind;
		}
	return HOTSPOT_OTHER;
}

/* Where the used block begins that an address of a heap is in; 0: none does. */
static uintptr_t find_block(const struct csink_hotspot *vm, uintptr_t heap, uintptr_t low, uintptr_t pc)
{
	unsigned int shift = (unsigned int)csink_hotspot_known(vm, heap, HOTSPOT_HEAP_SHIFT) & 31;
	uintptr_t map = csink_load_known(heap + vm->at[HOTSPOT_HEAP_MAP] + vm->at[HOTSPOT_SPACE_LOW]);
	uintptr_t nr = csink_load_known(heap + vm->at[HOTSPOT_HEAP_MAP] + vm->at[HOTSPOT_SPACE_HIGH]) - map;
	uintptr_t segment = (pc - low) >> shift, block;

	/* A heap that grows has its memory first. */
	if (segment >= nr)
		return 0;
	for (int i = 0;; i++) {
		uint8_t back = *(const volatile uint8_t *)(map + segment);

		if (back == 0)
			break;
		if (back == FREE || back > segment || i == MAX_HOPS)
			return 0;
		segment -= back;
	}
	block = low + (segment << shift);
	return csink_load_known(block + vm->at[HOTSPOT_BLOCK_HEADER] + vm->at[HOTSPOT_BLOCK_USED]) & 0xff ? block : 0;
}

bool csink_hotspot_blob(const struct csink_hotspot *vm, uintptr_t pc, struct csink_hotspot_blob *blob)
{
	uintptr_t block = 0;
	int64_t complete;

	if (pc - vm->low >= vm->high - vm->low)
		return false;
	for (uint32_t i = 0; i < vm->nr_heaps; i++) {
		uintptr_t memory = vm->heaps[i] + vm->at[HOTSPOT_HEAP_MEMORY];
		uintptr_t low = csink_load_known(memory + vm->at[HOTSPOT_SPACE_LOW]);

		blob->end = csink_load_known(memory + vm->at[HOTSPOT_SPACE_HIGH]);
		if (pc >= low && pc < blob->end) {
			block = find_block(vm, vm->heaps[i], low, pc);
			break;
		}
	}
	if (!block)
		return false;
	blob->at = block + vm->at[HOTSPOT_BLOCK_BYTES];
	blob->name = csink_hotspot_known(vm, blob->at, HOTSPOT_BLOB_NAME);
	blob->kind = kind_of(blob->name);
	blob->code = vm->bytes[HOTSPOT_BLOB_CODE]
			     ? csink_hotspot_known(vm, blob->at, HOTSPOT_BLOB_CODE)
			     : blob->at + csink_hotspot_known(vm, blob->at, HOTSPOT_BLOB_CODE_OFFSET);
	/* Method handle intrinsics are compiled, too, and have no frame. */
	blob->frame_bytes = (uint32_t)csink_hotspot_known(vm, blob->at, HOTSPOT_BLOB_FRAME_WORDS) * 8;
	if (blob->frame_bytes < 16 || blob->frame_bytes > 1U << 24)
		blob->frame_bytes = 0;
	complete = csink_hotspot_signed(vm, blob->at, HOTSPOT_BLOB_COMPLETE);
	blob->complete = complete < 0 ? 0 : blob->code + (uintptr_t)complete;
	return true;
}

bool csink_hotspot_is_deopt(const struct csink_hotspot *vm, const struct csink_hotspot_blob *blob, uintptr_t ra)
{
	if (vm->bytes[HOTSPOT_COMPILED_DEOPT])
		return csink_hotspot_known(vm, blob->at, HOTSPOT_COMPILED_DEOPT) == ra;
	return vm->bytes[HOTSPOT_COMPILED_DEOPT_OFFSET] &&
	       blob->at + csink_hotspot_known(vm, blob->at, HOTSPOT_COMPILED_DEOPT_OFFSET) == ra;
}

uintptr_t csink_hotspot_original_pc(struct csink_interp_walk *walk, const struct csink_hotspot *vm,
				    const struct csink_hotspot_blob *blob, uintptr_t pc, uintptr_t sp)
{
	uint64_t original;

	if (!vm->bytes[HOTSPOT_COMPILED_ORIGINAL_PC] || !csink_hotspot_is_deopt(vm, blob, pc) ||
	    !csink_interp_load(walk, sp + csink_hotspot_known(vm, blob->at, HOTSPOT_COMPILED_ORIGINAL_PC), &original))
		return pc;
	return original;
}

void csink_hotspot_code(const struct csink_hotspot_blob *blob, uintptr_t at, uint8_t *to, uint32_t bytes)
{
	memset(to, 0, bytes);
	for (uint32_t i = 0; i < bytes && at + i < blob->end; i++)
		if (at + i >= blob->at)
			to[i] = *(const volatile uint8_t *)(at + i);
}
