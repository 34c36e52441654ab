/*
 * The definitions behind those that a preload object has: the next one of each in the loader's order, found without the
 * loader, which may hold its lock, and may allocate where it is asked. An object lists its functions as
 *
 *     #define NEXT(X) X(type, name, (arguments), (values)) ...
 *
 * and calls next.name(). Each begins as its own finder. Context: any; before constructors run, too.
 */
#ifndef CSINK_OBJECT_NEXT_H
#define CSINK_OBJECT_NEXT_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>

#include "preload/core/elf_symbol.h"

/** Is it the object itself? */
static inline bool csink_is_own(const struct link_map *map)
{
	return (const void *)map->l_ld == (const void *)_DYNAMIC;
}

/** The first object from @map on that defines a function; NULL: none does. */
static inline const struct link_map *csink_definer(const struct link_map *map, const char *function)
{
	while (map && !csink_elf_function(map, function))
		map = map->l_next;
	return map;
}

/** The next definition of a function behind the object's own; NULL: there is none. */
static inline void *csink_next_function(const char *name)
{
	const struct link_map *map = _r_debug.r_map;

	while (map && !csink_is_own(map))
		map = map->l_next;
	map = map ? csink_definer(map->l_next, name) : NULL;
	return map ? csink_elf_function(map, name) : NULL;
}

#define CSINK_NEXT_FINDER(type, name, arguments, values) static type first_##name arguments;
#define CSINK_NEXT_MEMBER(type, name, arguments, values) type(*name) arguments;
#define CSINK_NEXT_FIRST(type, name, arguments, values) .name = first_##name,

/* The table of an object. */
#define CSINK_NEXT_TABLE(NEXT)                                                                                         \
	NEXT(CSINK_NEXT_FINDER)                                                                                        \
	static struct {                                                                                                \
		NEXT(CSINK_NEXT_MEMBER)                                                                                \
	} next = {NEXT(CSINK_NEXT_FIRST)};

#endif
