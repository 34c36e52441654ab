/*
 * Functions of interpreters in the recording: found by identity, and written at their first sample, since the program
 * may free a function before it ends. Runs in handlers of any thread, without locks; makes a system call only to grow.
 */
#include <string.h>

#include "preload/agent/interp/interp.h"
#include "preload/core/private_memory.h"
#include "preload/core/record/hash_index.h"

enum { MAX_NAMES = 2048 }; /* bytes of a function's name and file together */

/* Its first level is allocated when the first interpreter is found. */
static struct csink_index codes;

bool csink_code_ids_begin(void)
{
	if (!atomic_load(&codes.levels[0]))
		atomic_store(&codes.levels[0],
			     csink_private_get(csink_index_slots(0) * sizeof(struct csink_index_slot)));
	return atomic_load(&codes.levels[0]) != NULL;
}

void csink_code_ids_reset(void)
{
	csink_index_reset(&codes);
}

void csink_code_ids_unlock(void)
{
	csink_index_unlock(&codes);
}

/* The hash is the identity, so equal hashes match. */
static bool match_any(csink_ref_t ref, uint32_t aux, const void *key)
{
	(void)ref;
	(void)aux;
	(void)key;
	return true;
}

static bool copy_part(struct csink_interp_walk *walk, char *to, struct csink_code_part part)
{
	uint64_t word;

	for (uint32_t at = 0; at < part.bytes; at += 8) {
		uint32_t piece = part.bytes - at < 8 ? part.bytes - at : 8, back = 8 - piece;

		/* Do not read beyond the end: the last word begins earlier, and its first bytes are dropped. */
		if (!csink_interp_load(walk, part.at + at - back, &word))
			return false;
		word >>= 8 * back;
		memcpy(to + at, &word, piece);
	}
	return true;
}

/* The parts of the line table, one after the other; the first one may be the source's own. */
static bool copy_table(struct csink_interp_walk *walk, char *to, const struct csink_code_source *source)
{
	uint32_t nr = source->table_bytes;

	if (source->table == (uintptr_t)source->own)
		memcpy(to, source->own, nr);
	else if (!copy_part(walk, to, (struct csink_code_part){source->table, nr}))
		return false;
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(source->more); nr += source->more[i++].bytes) {
		if (!copy_part(walk, to + nr, source->more[i]))
			return false;
	}
	return true;
}

static uint32_t table_bytes(const struct csink_code_source *source)
{
	uint64_t nr = source->table_bytes;

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(source->more); i++)
		nr += source->more[i].bytes;
	return nr <= CSINK_CODE_MAX_TABLE ? (uint32_t)nr : 0;
}

static __attribute__((noinline)) csink_ref_t new_code(struct csink_interp_walk *walk, uintptr_t address)
{
	struct csink_code_source source = {0};
	char names[MAX_NAMES];
	uint32_t nr_names = 0, nr_table, bytes;
	struct csink_rec_code *code;

	if (walk->interpreter->language->describe(walk, address, &source))
		nr_names = source.names(walk, &source, names, sizeof(names));
	if (!nr_names)
		return 0;
	nr_table = table_bytes(&source);
	bytes = (uint32_t)sizeof(struct csink_rec_code) + nr_names + nr_table;
	code = csink_recording_reserve(walk->rec, walk->writer, bytes);
	if (!code)
		return 0;
	code->first_line = source.first_line;
	code->nr_names = (uint16_t)nr_names;
	memcpy(code->text, names, nr_names);
	code->nr_table = nr_table && copy_table(walk, code->text + nr_names, &source) ? nr_table : 0;
	code->lacks_table = source.table_bytes && !code->nr_table;
	csink_recording_commit(code, bytes, CSINK_ENTRY_CODE, source.kind);
	return csink_recording_ref(walk->rec, code);
}

csink_ref_t csink_code_known(uint64_t identity)
{
	const struct csink_index_slot *slot = csink_index_find(&codes, identity ? identity : 1, match_any, NULL);

	return CSINK_LIKELY(slot) ? atomic_load_explicit(&slot->ref, memory_order_relaxed) : 0;
}

csink_ref_t csink_code_id(struct csink_interp_walk *walk, uint64_t identity, uintptr_t code)
{
	uint64_t hash = identity ? identity : 1;
	csink_ref_t ref = csink_code_known(hash);

	if (CSINK_LIKELY(ref))
		return ref;
	ref = new_code(walk, code);
	return ref ? csink_index_insert(&codes, hash, ref, 0, match_any, NULL) : 0;
}
