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
};

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

static bool is_meant(const struct tables *tables, uint32_t i, const char *name)
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

		if ((here | 1) == (hash | 1) && is_meant(&tables, i, name))
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
	}
	return tables->symbols && tables->strings && tables->hash;
}

static bool has_name(const struct csink_elf_view *view, const char *at, const char *name)
{
	size_t length = strlen(name) + 1;
	char copy[64];

	return length <= sizeof(copy) && view->copy(copy, at, length) && !memcmp(copy, name, length);
}

uintptr_t csink_elf_look(const struct csink_elf_view *view, const char *name, int type, uint64_t *bytes)
{
	uint32_t hash = hash_of(name), head[4], first, i, here; /* head: buckets, first symbol, words, shift */
	const ElfW(Addr) * filter;
	const uint32_t *buckets;
	struct tables tables;
	ElfW(Addr) word, both;
	ElfW(Sym) symbol;

	if (!look_for_tables(view, &tables) || !view->copy(head, tables.hash, sizeof(head)) || !head[0] || !head[2])
		return 0;
	filter = (const ElfW(Addr) *)(tables.hash + 4);
	buckets = (const uint32_t *)(filter + head[2]);
	both = (ElfW(Addr))1 << hash % WORD_BITS | (ElfW(Addr))1 << (hash >> head[3]) % WORD_BITS;
	if (!view->copy(&word, filter + hash / WORD_BITS % head[2], sizeof(word)) || (word & both) != both ||
	    !view->copy(&first, buckets + hash % head[0], sizeof(first)) || first < head[1])
		return 0;
	for (i = first; view->copy(&here, buckets + head[0] + (i - head[1]), sizeof(here)); i++) {
		if ((here | 1) == (hash | 1) && view->copy(&symbol, tables.symbols + i, sizeof(symbol)) &&
		    symbol.st_shndx != SHN_UNDEF && ELF64_ST_TYPE(symbol.st_info) == type &&
		    has_name(view, tables.strings + symbol.st_name, name)) {
			if (bytes)
				*bytes = symbol.st_size;
			return tables.base + symbol.st_value;
		}
		if (here & 1)
			break;
	}
	return 0;
}
