/*
 * Finds symbols that a loaded object defines and calls, by name, in the object's own tables: without the loader and its
 * lock, so that signal handlers and forked children can use it. At a program's start it takes a tenth of dlsym(3)'s
 * time.
 */
#ifndef CSINK_ELF_SYMBOL_H
#define CSINK_ELF_SYMBOL_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** An address in a dynamic section. The dynamic linker has added the base to it already on most machines, and not on
 * others. Context: any. */
static inline uintptr_t csink_dynamic_address(uintptr_t base, const ElfW(Dyn) * dyn)
{
	return dyn->d_un.d_ptr < base ? base + dyn->d_un.d_ptr : dyn->d_un.d_ptr;
}

/* An object's tables of names, read once by csink_elf_open(). */
struct csink_elf_view {
	uintptr_t base;
	bool (*copy)(void *to, const void *from, size_t bytes);
	const ElfW(Sym) * symbols;
	const char *strings;
	const uint16_t *versions; /* NULL: none */
	const ElfW(Rela) * calls; /* relocations of the procedure linkage table; NULL: none */
	size_t nr_calls;
	const ElfW(Rela) * others; /* all other relocations; NULL: none */
	size_t nr_others;
	const ElfW(Addr) * filter; /* of DT_GNU_HASH, as the four numbers at its start are: */
	uint32_t nr_buckets, first_symbol, nr_words, shift;
};

/**
 * Read where an object's tables are. Returns false if it has no DT_GNU_HASH: then no name is found.
 * @copy  for an object that another thread may be unloading: copies, or returns false where nothing is any more. NULL:
 *        the object stays, and is read in place.
 * Context: signal.
 */
bool csink_elf_open(struct csink_elf_view *view, uintptr_t base, const ElfW(Dyn) * dynamic,
		    bool (*copy)(void *to, const void *from, size_t bytes));

/**
 * The address of what the object defines by that name, in the version that is linked to by default; 0: none.
 * @type   STT_FUNC (without those that are chosen as they are linked: STT_GNU_IFUNC), STT_OBJECT
 * @bytes  receives its size; may be NULL.
 * Context: signal.
 */
uintptr_t csink_elf_look(const struct csink_elf_view *view, const char *name, int type, uint64_t *bytes);

/**
 * Where the object has the address of a function that it calls through its procedure linkage table: the address of that
 * word, or 0. With lazy binding the word leads to the dynamic linker until the first call. Context: signal.
 */
uintptr_t csink_elf_slot(const struct csink_elf_view *view, const char *name);

/**
 * Where the object has the number of its module and, in the next word, the offset in the module's thread-local memory
 * of a thread-local variable that it defines. The dynamic linker stores both when it relocates the object. 0: there is
 * no such variable, or it is not reached in this way (in a program, or by a descriptor). Context: signal.
 */
uintptr_t csink_elf_thread_local(const struct csink_elf_view *view, const char *name);

/** The function of that name in an object that stays, or NULL. Context: signal. */
void *csink_elf_function(const struct link_map *map, const char *name);

#endif
