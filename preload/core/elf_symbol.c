/* See elf_symbol.h. Source: the System V ABI, and for DT_GNU_HASH the linkers that make it. Any thread;
 * async-signal-safe. */
#include "preload/core/elf_symbol.h"

#include <elf.h>
#include <stddef.h>
#include <string.h>

#include "include/internal/base.h"

#if defined(__x86_64__)
enum { CALL_RELOCATION = R_X86_64_JUMP_SLOT, THREAD_LOCAL_RELOCATION = R_X86_64_DTPMOD64 };
#elif defined(__aarch64__)
enum { CALL_RELOCATION = R_AARCH64_JUMP_SLOT, THREAD_LOCAL_RELOCATION = R_AARCH64_TLS_DTPMOD };
#endif

/* Tables of another process may be damaged: no list is followed further. */
enum { MAX_DYNAMIC = 4096, MAX_CHAIN = 4096, WORD_BITS = 8 * sizeof(ElfW(Addr)) };

#define VERSION_HIDDEN 0x8000 /* of an older version: only callers that ask for it get it */

static inline bool copy(const struct csink_elf_view *view, void *to, const void *from, size_t bytes)
{
	if (view->copy)
		return view->copy(to, from, bytes);
	memcpy(to, from, bytes);
	return true;
}

static bool read_hash(struct csink_elf_view *view, const void *hash)
{
	uint32_t head[4];

	if (!copy(view, head, hash, sizeof(head)))
		return false;
	view->filter = (const ElfW(Addr) *)((const uint32_t *)hash + 4);
	view->nr_buckets = head[0];
	view->first_symbol = head[1];
	view->nr_words = head[2];
	view->shift = head[3] % 32;
	return true;
}

bool csink_elf_open(struct csink_elf_view *view, uintptr_t base, const ElfW(Dyn) * dynamic,
		    bool (*copy_from)(void *to, const void *from, size_t bytes))
{
	const void *hash = NULL;
	ElfW(Dyn) dyn;

	*view = (struct csink_elf_view){.base = base, .copy = copy_from};
	for (int i = 0; dynamic && i < MAX_DYNAMIC; i++) {
		uintptr_t address;

		if (!copy(view, &dyn, dynamic + i, sizeof(dyn)))
			return false;
		address = csink_dynamic_address(base, &dyn);
		if (dyn.d_tag == DT_NULL)
			break;
		if (dyn.d_tag == DT_SYMTAB)
			view->symbols = (const ElfW(Sym) *)address;
		else if (dyn.d_tag == DT_STRTAB)
			view->strings = (const char *)address;
		else if (dyn.d_tag == DT_GNU_HASH)
			hash = (const void *)address;
		else if (dyn.d_tag == DT_VERSYM)
			view->versions = (const uint16_t *)address;
		else if (dyn.d_tag == DT_JMPREL)
			view->calls = (const ElfW(Rela) *)address;
		else if (dyn.d_tag == DT_PLTRELSZ)
			view->nr_calls = dyn.d_un.d_val / sizeof(ElfW(Rela));
		else if (dyn.d_tag == DT_RELA)
			view->others = (const ElfW(Rela) *)address;
		else if (dyn.d_tag == DT_RELASZ)
			view->nr_others = dyn.d_un.d_val / sizeof(ElfW(Rela));
	}
	return view->symbols && view->strings && hash && read_hash(view, hash);
}

static uint32_t hash_of(const char *name)
{
	uint32_t hash = 5381;

	while (*name)
		hash = hash * 33 + (unsigned char)*name++;
	return hash;
}

static bool has_name(const struct csink_elf_view *view, const ElfW(Sym) * symbol, const char *name)
{
	const char *at = view->strings + symbol->st_name;
	size_t length = strlen(name) + 1;
	char text[80];

	if (!view->copy)
		return !strcmp(at, name);
	return length <= sizeof(text) && view->copy(text, at, length) && !memcmp(text, name, length);
}

static bool is_symbol(const struct csink_elf_view *view, uint32_t i, const char *name, int type, ElfW(Sym) * symbol)
{
	uint16_t version = 0;

	return copy(view, symbol, view->symbols + i, sizeof(*symbol)) && symbol->st_shndx != SHN_UNDEF &&
	       ELF64_ST_TYPE(symbol->st_info) == type && ELF64_ST_BIND(symbol->st_info) != STB_LOCAL &&
	       (!view->versions || copy(view, &version, view->versions + i, sizeof(version))) &&
	       !(version & VERSION_HIDDEN) && has_name(view, symbol, name);
}

/* The index of the symbol that the object defines by that name, and the symbol; 0: none. */
static uint32_t look(const struct csink_elf_view *view, const char *name, int type, ElfW(Sym) * symbol)
{
	const uint32_t *buckets = (const uint32_t *)(view->filter + view->nr_words), *chains;
	uint32_t hash = hash_of(name), first, here;
	ElfW(Addr) word, both;

	if (!view->nr_buckets || !view->nr_words)
		return 0;
	/* Most objects that do not have it say so here. */
	both = (ElfW(Addr))1 << hash % WORD_BITS | (ElfW(Addr))1 << (hash >> view->shift) % WORD_BITS;
	if (!copy(view, &word, view->filter + hash / WORD_BITS % view->nr_words, sizeof(word)) ||
	    (word & both) != both || !copy(view, &first, buckets + hash % view->nr_buckets, sizeof(first)) ||
	    first < view->first_symbol)
		return 0;
	/* A chain has hashes whose lowest bit is set in the last one only. */
	chains = buckets + view->nr_buckets;
	for (uint32_t i = first;
	     i - first < MAX_CHAIN && copy(view, &here, chains + (i - view->first_symbol), sizeof(here)); i++) {
		if ((here | 1) == (hash | 1) && is_symbol(view, i, name, type, symbol))
			return i;
		if (here & 1)
			break;
	}
	return 0;
}

uintptr_t csink_elf_look(const struct csink_elf_view *view, const char *name, int type, uint64_t *bytes)
{
	ElfW(Sym) symbol;

	if (!look(view, name, type, &symbol))
		return 0;
	if (bytes)
		*bytes = symbol.st_size;
	return view->base + symbol.st_value;
}

void *csink_elf_function(const struct link_map *map, const char *name)
{
	struct csink_elf_view view;

	return csink_elf_open(&view, map->l_addr, map->l_ld, NULL) ? (void *)csink_elf_look(&view, name, STT_FUNC, NULL)
								   : NULL;
}

/* The index of the symbol that the object imports by that name; imports come before the symbols in the hash table. */
static uint32_t look_for_import(const struct csink_elf_view *view, const char *name)
{
	ElfW(Sym) symbol;

	for (uint32_t i = 1; i < view->first_symbol && copy(view, &symbol, view->symbols + i, sizeof(symbol)); i++) {
		if (symbol.st_shndx == SHN_UNDEF && has_name(view, &symbol, name))
			return i;
	}
	return 0;
}

/* Where the first relocation of a type for a symbol is applied; 0: there is none. */
static uintptr_t look_for_relocation(const struct csink_elf_view *view, const ElfW(Rela) * all, size_t nr_all,
				     uint32_t symbol, uint32_t type)
{
	ElfW(Rela) some[32];

	for (size_t at = 0; all && symbol && at < nr_all; at += CSINK_ARRAY_SIZE(some)) {
		size_t nr = CSINK_MIN(CSINK_ARRAY_SIZE(some), nr_all - at);

		if (!copy(view, some, all + at, nr * sizeof(some[0])))
			break;
		for (size_t i = 0; i < nr; i++) {
			if (ELF64_R_SYM(some[i].r_info) == symbol && ELF64_R_TYPE(some[i].r_info) == type)
				return view->base + some[i].r_offset;
		}
	}
	return 0;
}

uintptr_t csink_elf_slot(const struct csink_elf_view *view, const char *name)
{
	ElfW(Sym) symbol;
	uint32_t number;

	if (!view->calls)
		return 0;
	number = look(view, name, STT_FUNC, &symbol);
	number = number ? number : look_for_import(view, name);
	return look_for_relocation(view, view->calls, view->nr_calls, number, CALL_RELOCATION);
}

uintptr_t csink_elf_thread_local(const struct csink_elf_view *view, const char *name)
{
	ElfW(Sym) symbol;

	return look_for_relocation(view, view->others, view->nr_others, look(view, name, STT_TLS, &symbol),
				   THREAD_LOCAL_RELOCATION);
}
