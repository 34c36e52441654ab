/*
 * Functions of interpreters in the recording: found by identity, and written at their first sample, since the program
 * may free a function before it ends. Runs in handlers of any thread, without locks; makes a system call only to grow.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

#include "include/internal/rawcall.h"
#include "preload/agent/interp/interp.h"
#include "preload/core/calls_off.h"
#include "preload/core/private_memory.h"
#include "preload/core/record/hash_index.h"

enum {
	MAX_NAMES = 2048, /* bytes of a function's name, its file and directories together */
	MAX_DIRECTORY = 1024,
};

/* Its first level is allocated when the first interpreter is found. */
static struct csink_index codes;

/* The directory in which the process was then, ended by NUL. A forked child has its parent's. */
static char *first_directory;

/* Where the process is, with a NUL. Returns how many bytes; 0: it is not known. */
static uint32_t copy_directory(char *to, uint32_t room)
{
	long nr = csink_calls_are_off(CSINK_CALLS_SCAN)
			  ? 0
			  : csink_rawcall(SYS_readlinkat, AT_FDCWD, "/proc/thread-self/cwd", to, room);

	if (nr <= 0 || nr >= (long)room)
		return 0;
	to[nr] = 0;
	return (uint32_t)nr + 1;
}

CSINK_RARE bool csink_code_ids_begin(void)
{
	if (!first_directory) {
		first_directory = csink_private_get(MAX_DIRECTORY);
		if (first_directory && !copy_directory(first_directory, MAX_DIRECTORY))
			*first_directory = 0;
	}
	if (!atomic_load(&codes.levels[0]))
		atomic_store(&codes.levels[0],
			     csink_private_get(csink_index_slots(0) * sizeof(struct csink_index_slot)));
	return atomic_load(&codes.levels[0]) != NULL;
}

uint32_t csink_code_ids_nr_resets;

void csink_code_ids_reset(void)
{
	csink_code_ids_nr_resets++;
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

/* After a relative name of a file: see struct csink_rec_code. Returns how many bytes there are then. */
static uint32_t add_directories(char *names, uint32_t nr)
{
	char first = names[strlen(names) + 1];
	uint32_t bytes = first_directory ? (uint32_t)strlen(first_directory) + 1 : 0;

	/* Others are absolute, or names of code in no file: <string>, (eval 12), -e. */
	if (first == '/' || first == '<' || first == '(' || first == '-' || bytes < 2 || bytes > MAX_NAMES - nr)
		return nr;
	memcpy(names + nr, first_directory, bytes);
	nr += bytes;
	return nr + copy_directory(names + nr, MAX_NAMES - nr);
}

static CSINK_RARE csink_ref_t new_code(struct csink_interp_walk *walk, uintptr_t address)
{
	struct csink_code_source source = {0};
	char names[MAX_NAMES];
	uint32_t nr_names = 0, nr_table, bytes;
	struct csink_rec_code *code;

	if (walk->interpreter->language->describe(walk, address, &source))
		nr_names = source.names(walk, &source, names, sizeof(names));
	if (!nr_names)
		return 0;
	if (source.is_path)
		nr_names = add_directories(names, nr_names);
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

csink_ref_t csink_code_id(struct csink_interp_walk *walk, uint64_t identity, uintptr_t code)
{
	uint64_t hash = identity ? identity : 1;
	const struct csink_index_slot *slot = csink_index_find(&codes, hash, match_any, NULL);
	csink_ref_t ref;

	if (CSINK_LIKELY(slot))
		return atomic_load_explicit(&slot->ref, memory_order_relaxed);
	ref = new_code(walk, code);
	return ref ? csink_index_insert(&codes, hash, ref, 0, match_any, NULL) : 0;
}
