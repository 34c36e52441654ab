/*
 * The descriptor of GDB's JIT interface in an object that does not export it, as most programs do not: by the symbol
 * table of its file, which is not mapped. Looked for when code of no object has run, once for each object. One thread
 * at a time, in its handler; a descriptor is open meanwhile.
 *
 * Where files have large tables, that takes milliseconds. So the tables of large ones are read by housekeeping, and a
 * program that ends before it does not wait for them. Those of HotSpot and V8 are not read: HotSpot has no list, and V8
 * fills its own only with --gdbjit.
 */
#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "include/internal/base.h"
#include "include/internal/rawcall.h"
#include "preload/agent/unwind/code_copies.h"
#include "preload/agent/unwind/jit_impl.h"
#include "preload/core/calls_off.h"
#include "preload/core/interpreter_signs.h"
#include "preload/core/private_memory.h"

enum {
	MAX_OBJECTS = 64,       /* that are searched: a bit of `due` each */
	MAX_BYTES = 64 << 20,   /* of a table */
	SMALL_BYTES = 64 << 10, /* of a table of strings, which is searched at once */
	MAX_NAMES = 8, /* that end like the list's, in front of it in the table: linkers let names share their ends */
	PIECE = 32768, /* of a file, in memory at a time */
	MAX_SECTIONS = PIECE / sizeof(Elf64_Shdr),
};

static const char name[] = CSINK_JIT_DESCRIPTOR;

_Atomic uint32_t csink_jit_files_due;

static _Atomic uint32_t searching;
static csink_ref_t done[MAX_OBJECTS]; /* what was looked at */
static uint64_t due;                  /* a bit of each: its tables are large, and housekeeping is to search them */
static uint32_t nr_done;

static bool read_at(int fd, void *to, size_t bytes, uint64_t offset)
{
	return csink_rawcall(SYS_pread64, fd, to, bytes, offset) == (long)bytes;
}

/* By how much a text that ends with a character, and is not the name, may be moved on (Horspool). */
static void make_steps(uint8_t steps[256])
{
	memset(steps, sizeof(name), 256);
	for (size_t i = 0; i + 1 < sizeof(name); i++)
		steps[(uint8_t)name[i]] = (uint8_t)(sizeof(name) - 1 - i);
}

static const char *find_name(const char *text, const char *end, const uint8_t steps[256])
{
	for (; (size_t)(end - text) >= sizeof(name); text += steps[(uint8_t)text[sizeof(name) - 1]]) {
		if (!text[sizeof(name) - 1] && !memcmp(text, name, sizeof(name)))
			return text;
	}
	return NULL;
}

/* The offset of the name in a table of strings, behind another one; 0: it is not there. Pieces overlap by a name. */
static uint64_t find_string(int fd, const Elf64_Shdr *strings, uint64_t behind, char *piece)
{
	uint8_t steps[256];

	make_steps(steps);
	for (uint64_t at = behind + 1; at + sizeof(name) <= strings->sh_size; at += PIECE - sizeof(name)) {
		uint64_t nr = CSINK_MIN((uint64_t)PIECE, strings->sh_size - at);
		const char *found;

		if (!read_at(fd, piece, nr, strings->sh_offset + at))
			return 0;
		found = find_name(piece, piece + nr, steps);
		if (found)
			return at + (uint64_t)(found - piece);
	}
	return 0;
}

/* The value of the symbol with that name; 0: there is none. */
static uint64_t find_value(int fd, const Elf64_Shdr *table, uint64_t string, char *piece)
{
	const Elf64_Sym *symbols = (const Elf64_Sym *)piece;
	size_t piece_bytes = PIECE / sizeof(*symbols) * sizeof(*symbols);

	for (uint64_t at = 0; at < table->sh_size; at += piece_bytes) {
		uint64_t bytes = CSINK_MIN((uint64_t)piece_bytes, table->sh_size - at);

		if (!read_at(fd, piece, bytes, table->sh_offset + at))
			return 0;
		for (size_t i = 0; i < bytes / sizeof(*symbols); i++) {
			if (symbols[i].st_name == string && symbols[i].st_shndx != SHN_UNDEF &&
			    ELF64_ST_TYPE(symbols[i].st_info) == STT_OBJECT)
				return symbols[i].st_value;
		}
	}
	return 0;
}

static uint64_t search_tables(int fd, const Elf64_Shdr *table, const Elf64_Shdr *strings, char *piece)
{
	uint64_t string = 0, value = 0;

	for (int i = 0; i < MAX_NAMES && !value; i++) {
		string = find_string(fd, strings, string, piece);
		if (!string)
			break;
		value = find_value(fd, table, string, piece);
	}
	return value;
}

/* Also sets whether the tables are large; then nothing is read of them unless @all is set. */
static uint64_t search(int fd, bool all, bool *is_large, char *piece)
{
	const Elf64_Shdr *sections = (const Elf64_Shdr *)piece;
	Elf64_Shdr table, strings;
	Elf64_Ehdr ehdr;
	uint32_t nr;

	if (!read_at(fd, &ehdr, sizeof(ehdr), 0) || memcmp(ehdr.e_ident, ELFMAG, SELFMAG) != 0 ||
	    ehdr.e_shentsize != sizeof(sections[0]))
		return 0;
	nr = CSINK_MIN(ehdr.e_shnum, (uint32_t)MAX_SECTIONS);
	if (!read_at(fd, piece, nr * sizeof(sections[0]), ehdr.e_shoff))
		return 0;
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t link = sections[i].sh_link;

		if (sections[i].sh_type != SHT_SYMTAB || sections[i].sh_size > MAX_BYTES)
			continue;
		if (link >= nr || sections[link].sh_size > MAX_BYTES)
			return 0;
		table = sections[i];
		strings = sections[link];
		*is_large = strings.sh_size > SMALL_BYTES;
		return all || !*is_large ? search_tables(fd, &table, &strings, piece) : 0;
	}
	return 0;
}

/* The file's path, as the recording has it: it may have been overwritten there. */
static bool path_of(const struct csink_recording *rec, const struct csink_module *module, char *path, size_t size)
{
	const struct csink_rec_module *entry = csink_recording_at(rec, module->entry);
	size_t length = 0;

	while (length < size - 1 && entry->path[length]) {
		path[length] = entry->path[length];
		length++;
	}
	path[length] = 0;
	return *path == '/';
}

/* Their tables of symbols have megabytes. */
static bool is_virtual_machine(const struct csink_module *module)
{
	struct csink_elf_view view;

	return csink_elf_open(&view, module->bias, module->dynamic, csink_copy_by_call) &&
	       (csink_elf_look(&view, CSINK_SIGN_HOTSPOT, STT_OBJECT, NULL) ||
		csink_elf_look(&view, CSINK_SIGN_V8_TOO, STT_OBJECT, NULL));
}

/* Its place in `done`; nr_done: none. */
static uint32_t find(const struct csink_module *module)
{
	uint32_t i;

	for (i = 0; i < nr_done && done[i] != module->entry; i++)
		;
	return i;
}

/* Returns whether housekeeping is to search the file again. */
static bool search_file(const struct csink_module *module, const char *path, bool all, char *piece)
{
	int fd = (int)csink_rawcall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	bool is_large = false;
	uint64_t value;

	if (fd < 0)
		return false;
	value = search(fd, all, &is_large, piece);
	csink_rawcall(SYS_close, fd);
	if (value)
		csink_jit_list_add(module->bias + value, module->link_map);
	return is_large && !all && !is_virtual_machine(module);
}

/* False: no descriptor may be opened just now. */
static bool look_at(const struct csink_recording *rec, const struct csink_module *module, bool all, char *piece)
{
	uint32_t at = find(module);
	uint64_t bit = 1ULL << at % MAX_OBJECTS;
	char path[512];

	if (at == MAX_OBJECTS || (at < nr_done && (!(due & bit) || !all)) || !path_of(rec, module, path, sizeof(path)))
		return true;
	if (!csink_code_copies_may_open())
		return false;
	done[at] = module->entry;
	nr_done = CSINK_MAX(nr_done, at + 1);
	due = search_file(module, path, all, piece) ? due | bit : due & ~bit;
	csink_code_copies_have_closed();
	return true;
}

void csink_jit_search_files(const struct csink_recording *rec, bool all)
{
	uint32_t generation = csink_modules_generation();
	struct csink_module module;
	bool looked = true;
	char *piece;

	if (csink_calls_are_off(CSINK_CALLS_SCAN | CSINK_CALLS_LIFE | CSINK_CALLS_RIGHTS /* read */) ||
	    atomic_exchange_explicit(&searching, 1, memory_order_acquire))
		return;
	piece = csink_private_map(PIECE);
	for (uint32_t i = 0; piece && csink_modules_at(i, &module); i++)
		looked &= look_at(rec, &module, all, piece);
	if (piece)
		csink_rawcall(SYS_munmap, piece, PIECE);
	atomic_store_explicit(&csink_jit_files_due, due != 0, memory_order_relaxed);
	/* Objects that were loaded meanwhile may have been left out. */
	if (looked && generation == csink_modules_generation())
		atomic_store_explicit(&csink_jit_met, csink_jit_is_on() ? CSINK_JIT_MET : CSINK_JIT_NO_LIST,
				      memory_order_relaxed);
	atomic_store_explicit(&searching, 0, memory_order_release);
}

void csink_jit_search_begin(void)
{
	atomic_store(&searching, 0);
	if (atomic_load(&csink_jit_files_due)) /* else the page is left untouched */
		atomic_store(&csink_jit_files_due, 0);
	due = 0;
	nr_done = 0;
}
