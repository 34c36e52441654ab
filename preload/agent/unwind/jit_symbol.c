/*
 * The descriptor of GDB's JIT interface in an object that does not export it, as most programs do not: by the symbol
 * table of its file, which is not mapped. Looked for when code of no object has run, once for each object. One thread
 * at a time, in its handler; a descriptor is open meanwhile.
 */
#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

#include "include/internal/base.h"
#include "include/internal/rawcall.h"
#include "preload/agent/unwind/code_copies.h"
#include "preload/agent/unwind/jit_impl.h"
#include "preload/core/calls_off.h"

enum {
	MAX_OBJECTS = 64, /* that are searched */
	MAX_SECTIONS = 128,
	MAX_BYTES = 64 << 20, /* of a table */
	PIECE = 4096,
};

static const char name[] = "__jit_debug_descriptor";

static _Atomic uint32_t searching;
static csink_ref_t done[MAX_OBJECTS];
static uint32_t nr_done;

static bool read_at(int fd, void *to, size_t bytes, uint64_t offset)
{
	return csink_rawcall(SYS_pread64, fd, to, bytes, offset) == (long)bytes;
}

static bool is_name(const char *at)
{
	return !memcmp(at, name, sizeof(name));
}

/* The offset of the name in a table of strings; 0: it is not there. Pieces overlap by a name. */
static uint64_t find_string(int fd, const Elf64_Shdr *strings)
{
	char text[PIECE];

	for (uint64_t at = 0; at + sizeof(name) <= strings->sh_size; at += PIECE - sizeof(name)) {
		uint64_t nr = CSINK_MIN((uint64_t)PIECE, strings->sh_size - at);

		if (!read_at(fd, text, nr, strings->sh_offset + at))
			return 0;
		for (const char *next = text; (next = memchr(next, '_', (size_t)(text + nr - next))); next++) {
			if ((size_t)(text + nr - next) >= sizeof(name) && is_name(next) && at + (uint64_t)(next - text))
				return at + (uint64_t)(next - text);
		}
	}
	return 0;
}

/* The value of the symbol with that name; 0: there is none. */
static uint64_t find_value(int fd, const Elf64_Shdr *table, uint64_t string)
{
	Elf64_Sym symbols[PIECE / sizeof(Elf64_Sym)];

	for (uint64_t at = 0; at < table->sh_size; at += sizeof(symbols)) {
		uint64_t bytes = CSINK_MIN((uint64_t)sizeof(symbols), table->sh_size - at);

		if (!read_at(fd, symbols, bytes, table->sh_offset + at))
			return 0;
		for (size_t i = 0; i < bytes / sizeof(symbols[0]); i++) {
			if (symbols[i].st_name == string && symbols[i].st_shndx != SHN_UNDEF &&
			    ELF64_ST_TYPE(symbols[i].st_info) == STT_OBJECT)
				return symbols[i].st_value;
		}
	}
	return 0;
}

static bool is_table(const Elf64_Shdr *section)
{
	return section->sh_type == SHT_SYMTAB && section->sh_size <= MAX_BYTES;
}

static uint64_t search(int fd)
{
	Elf64_Shdr section, strings;
	uint64_t string;
	Elf64_Ehdr ehdr;

	if (!read_at(fd, &ehdr, sizeof(ehdr), 0) || memcmp(ehdr.e_ident, ELFMAG, SELFMAG) != 0 ||
	    ehdr.e_shentsize != sizeof(section))
		return 0;
	for (uint32_t i = 1; i < CSINK_MIN(ehdr.e_shnum, (uint32_t)MAX_SECTIONS); i++) {
		if (!read_at(fd, &section, sizeof(section), ehdr.e_shoff + i * sizeof(section)))
			return 0;
		if (!is_table(&section))
			continue;
		if (!read_at(fd, &strings, sizeof(strings), ehdr.e_shoff + section.sh_link * sizeof(strings)) ||
		    strings.sh_size > MAX_BYTES)
			return 0;
		string = find_string(fd, &strings);
		return string ? find_value(fd, &section, string) : 0;
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

static bool is_done(const struct csink_module *module)
{
	for (uint32_t i = 0; i < nr_done; i++) {
		if (done[i] == module->entry)
			return true;
	}
	return nr_done == MAX_OBJECTS;
}

/* False: no descriptor may be opened just now. */
static bool search_file(const struct csink_recording *rec, const struct csink_module *module)
{
	char path[512];
	uint64_t value = 0;
	int fd;

	if (is_done(module) || !path_of(rec, module, path, sizeof(path)))
		return true;
	if (!csink_code_copies_may_open())
		return false;
	done[nr_done++] = module->entry;
	fd = (int)csink_rawcall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd >= 0) {
		value = search(fd);
		csink_rawcall(SYS_close, fd);
	}
	csink_code_copies_have_closed();
	if (value)
		csink_jit_list_add(module->bias + value, module->link_map);
	return true;
}

void csink_jit_search_files(const struct csink_recording *rec)
{
	struct csink_module module;
	bool all = true;

	if (csink_calls_are_off(CSINK_CALLS_SCAN | CSINK_CALLS_LIFE | CSINK_CALLS_RIGHTS /* read */) ||
	    atomic_exchange_explicit(&searching, 1, memory_order_acquire))
		return;
	for (uint32_t i = 0; csink_modules_at(i, &module); i++)
		all &= search_file(rec, &module);
	if (all)
		atomic_store_explicit(&csink_jit_met, csink_jit_is_on() ? CSINK_JIT_MET : CSINK_JIT_NO_LIST,
				      memory_order_relaxed);
	atomic_store_explicit(&searching, 0, memory_order_release);
}

void csink_jit_search_begin(void)
{
	atomic_store(&searching, 0);
	nr_done = 0;
}
