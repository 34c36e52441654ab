/* See elf_symbol.h. Source: the System V ABI, and for DT_GNU_HASH the linkers that make it. */
#include "preload/core/elf_symbol.h"

#include <elf.h>
#include <stddef.h>
#include <string.h>

#include "include/internal/base.h"

struct tables {
	uintptr_t base;
	const ElfW(Sym) * symbols;
	const char *strings;
	const uint32_t *hash;
	const uint16_t *versions; /* NULL: none */
	const ElfW(Rela) * calls; /* relocations of the procedure linkage table */
	size_t nr_calls;
};

#if defined(__x86_64__)
enum { CALL_RELOCATION = R_X86_64_JUMP_SLOT };
#elif defined(__aarch64__)
enum { CALL_RELOCATION = R_AARCH64_JUMP_SLOT };
#endif

enum { MAX_DYNAMIC = 256, WORD_BITS = 8 * sizeof(ElfW(Addr)) };

#define VERSION_HIDDEN 0x8000 /* of an older version: only callers that ask for it get it */

static bool read_tables(struct tables *tables, const struct link_map *map)
{
	memset(tables, 0, sizeof(*tables));
	tables->base = map->l_addr;
	for (const ElfW(Dyn) *dyn = map->l_ld; dyn && dyn->d_tag != DT_NULL; dyn++) {
		uintptr_t address = csink_dynamic_address(map->l_addr, dyn);

		if (dyn->d_tag == DT_SYMTAB)
			tables->symbols = (const ElfW(Sym) *)address;
		else if (dyn->d_tag == DT_STRTAB)
			tables->strings = (const char *)address;
		else if (dyn->d_tag == DT_GNU_HASH)
			tables->hash = (const uint32_t *)address;
		else if (dyn->d_tag == DT_VERSYM)
			tables->versions = (const uint16_t *)address;
	}
	return tables->symbols && tables->strings && tables->hash;
}

bool csink_elf_has_names(const struct link_map *map)
{
	struct tables tables;

	return read_tables(&tables, map);
}

static uint32_t hash_of(const char *name)
{
	uint32_t hash = 5381;

	while (*name)
		hash = hash * 33 + (unsigned char)*name++;
	return hash;
}

static bool is_symbol(const struct tables *tables, uint32_t i, const char *name)
{
	const ElfW(Sym) *symbol = &tables->symbols[i];

	return symbol->st_shndx != SHN_UNDEF && ELF64_ST_TYPE(symbol->st_info) == STT_FUNC &&
	       ELF64_ST_BIND(symbol->st_info) != STB_LOCAL &&
	       !(tables->versions && tables->versions[i] & VERSION_HIDDEN) &&
	       !strcmp(tables->strings + symbol->st_name, name);
}

void *csink_elf_function(const struct link_map *map, const char *name)
{
	uint32_t hash = hash_of(name), nr_buckets, first, nr_words, i;
	const uint32_t *buckets, *chains;
	const ElfW(Addr) * filter;
	struct tables tables;
	const uint32_t bits = 8 * sizeof(*filter);
	ElfW(Addr) both;

	if (!read_tables(&tables, map))
		return NULL;
	nr_buckets = tables.hash[0];
	first = tables.hash[1];
	nr_words = tables.hash[2];
	filter = (const ElfW(Addr) *)(tables.hash + 4);
	buckets = (const uint32_t *)(filter + nr_words);
	chains = buckets + nr_buckets;
	/* Most objects that do not have it say so here. */
	both = (ElfW(Addr))1 << hash % bits | (ElfW(Addr))1 << (hash >> tables.hash[3]) % bits;
	if (!nr_buckets || !nr_words || (filter[hash / bits % nr_words] & both) != both)
		return NULL;
	i = buckets[hash % nr_buckets];
	/* A chain has hashes whose lowest bit is set in the last one only. */
	for (; i >= first; i++) {
		uint32_t here = chains[i - first];

		if ((here | 1) == (hash | 1) && is_symbol(&tables, i, name))
			return (void *)(tables.base + tables.symbols[i].st_value);
		if (here & 1)
			break;
	}
	return NULL;
}

/* ---- an object that may go ----------------------------------------------------------------------------------------
 */

static bool look_for_tables(const struct csink_elf_view *view, struct tables *tables)
{
	const ElfW(Dyn) *at = view->dynamic;
	ElfW(Dyn) dyn;

	memset(tables, 0, sizeof(*tables));
	tables->base = view->base;
	for (int i = 0; i < MAX_DYNAMIC; i++) {
		uintptr_t address;

		if (!view->copy(&dyn, at + i, sizeof(dyn)))
			return false;
		address = csink_dynamic_address(view->base, &dyn);
		if (dyn.d_tag == DT_NULL)
			break;
		if (dyn.d_tag == DT_SYMTAB)
			tables->symbols = (const ElfW(Sym) *)address;
		else if (dyn.d_tag == DT_STRTAB)
			tables->strings = (const char *)address;
		else if (dyn.d_tag == DT_GNU_HASH)
			tables->hash = (const uint32_t *)address;
		else if (dyn.d_tag == DT_JMPREL)
			tables->calls = (const ElfW(Rela) *)address;
		else if (dyn.d_tag == DT_PLTRELSZ)
			tables->nr_calls = dyn.d_un.d_val / sizeof(ElfW(Rela));
	}
	return tables->symbols && tables->strings && tables->hash;
}

static bool has_name(const struct csink_elf_view *view, const char *at, const char *name)
{
	size_t length = strlen(name) + 1;
	char copy[64];

	return length <= sizeof(copy) && view->copy(copy, at, length) && !memcmp(copy, name, length);
}

/* The number of what the object defines by that name, and its symbol; 0: nothing. */
static uint32_t look(const struct csink_elf_view *view, const struct tables *tables, const char *name, int type,
		     ElfW(Sym) * symbol)
{
	uint32_t hash = hash_of(name), head[4], first, i, here; /* head: buckets, first symbol, words, shift */
	const ElfW(Addr) * filter;
	const uint32_t *buckets;
	ElfW(Addr) word, both;

	if (!view->copy(head, tables->hash, sizeof(head)) || !head[0] || !head[2])
		return 0;
	filter = (const ElfW(Addr) *)(tables->hash + 4);
	buckets = (const uint32_t *)(filter + head[2]);
	both = (ElfW(Addr))1 << hash % WORD_BITS | (ElfW(Addr))1 << (hash >> head[3]) % WORD_BITS;
	if (!view->copy(&word, filter + hash / WORD_BITS % head[2], sizeof(word)) || (word & both) != both ||
	    !view->copy(&first, buckets + hash % head[0], sizeof(first)) || first < head[1])
		return 0;
	for (i = first; view->copy(&here, buckets + head[0] + (i - head[1]), sizeof(here)); i++) {
		if ((here | 1) == (hash | 1) && view->copy(symbol, tables->symbols + i, sizeof(*symbol)) &&
		    symbol->st_shndx != SHN_UNDEF && ELF64_ST_TYPE(symbol->st_info) == type &&
		    has_name(view, tables->strings + symbol->st_name, name))
			return i;
		if (here & 1)
			break;
	}
	return 0;
}

uintptr_t csink_elf_look(const struct csink_elf_view *view, const char *name, int type, uint64_t *bytes)
{
	struct tables tables;
	ElfW(Sym) symbol;

	if (!look_for_tables(view, &tables) || !look(view, &tables, name, type, &symbol))
		return 0;
	if (bytes)
		*bytes = symbol.st_size;
	return tables.base + symbol.st_value;
}

/* The number of what the object needs from others by that name: these come before those that the hash is of. */
static uint32_t look_for_import(const struct csink_elf_view *view, const struct tables *tables, const char *name)
{
	ElfW(Sym) symbol;
	uint32_t head[2];

	if (!view->copy(head, tables->hash, sizeof(head)))
		return 0;
	for (uint32_t i = 1; i < head[1] && view->copy(&symbol, tables->symbols + i, sizeof(symbol)); i++) {
		if (symbol.st_shndx == SHN_UNDEF && has_name(view, tables->strings + symbol.st_name, name))
			return i;
	}
	return 0;
}

uintptr_t csink_elf_slot(const struct csink_elf_view *view, const char *name)
{
	ElfW(Rela) some[32];
	struct tables tables;
	ElfW(Sym) symbol;
	uint32_t number;

	if (!look_for_tables(view, &tables) || !tables.calls)
		return 0;
	number = look(view, &tables, name, STT_FUNC, &symbol);
	number = number ? number : look_for_import(view, &tables, name);
	for (size_t at = 0; number && at < tables.nr_calls; at += CSINK_ARRAY_SIZE(some)) {
		size_t nr = CSINK_MIN(CSINK_ARRAY_SIZE(some), tables.nr_calls - at);

		if (!view->copy(some, tables.calls + at, nr * sizeof(some[0])))
			break;
		for (size_t i = 0; i < nr; i++) {
			if (ELF64_R_SYM(some[i].r_info) == number && ELF64_R_TYPE(some[i].r_info) == CALL_RELOCATION)
				return tables.base + some[i].r_offset;
		}
	}
	return 0;
}
