/*
 * Functions by name, in an object that is loaded and stays: read from its own tables, without the loader and its lock,
 * so that a signal handler or a forked child may ask; and for a tenth of what dlsym(3) costs a program that starts.
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

/** The object says by DT_GNU_HASH which names it has: csink_elf_function finds what is there. Context: signal. */
bool csink_elf_has_names(const struct link_map *map);

/**
 * The function of that name which the object defines, in the version that is linked to by default; NULL: none, or one
 * that is chosen as it is linked (STT_GNU_IFUNC), or the object has no DT_GNU_HASH. Context: signal.
 */
void *csink_elf_function(const struct link_map *map, const char *name);

/* An object that another thread may be unloading. */
struct csink_elf_view {
	uintptr_t base;
	const void *dynamic;
	/* Copies, or returns false where nothing is any more. */
	bool (*copy)(void *to, const void *from, size_t bytes);
};

/**
 * The address of what the object defines by that name, or 0.
 * @type   STT_FUNC, STT_OBJECT
 * @bytes  receives its size; may be NULL.
 * Context: signal.
 */
uintptr_t csink_elf_look(const struct csink_elf_view *view, const char *name, int type, uint64_t *bytes);

/**
 * Where the object has the address of a function that it calls through its procedure linkage table: the address of that
 * word, or 0. With lazy binding the word leads to the dynamic linker until the first call. Context: signal.
 */
uintptr_t csink_elf_slot(const struct csink_elf_view *view, const char *name);

#endif
