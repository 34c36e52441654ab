/*
 * Rerouting what one loaded library calls, by its own global offset table. Calls of other objects and the
 * library's file stay as they are.
 */
#ifndef CSINK_GOT_PATCH_H
#define CSINK_GOT_PATCH_H

#include <link.h>
#include <stddef.h>

/**
 * Ask of each function that the library imports where it should lead: route() gets its name and where it leads now, and
 * returns the new target or NULL. Returns how many were changed, -EINVAL or -errno of mprotect(2). Context: init.
 */
int csink_got_route_all(const struct link_map *map, void *(*route)(const char *symbol, void *now));

/* An import that leads to @from is to lead to @to. */
struct csink_got_change {
	const char *symbol;
	void *from, *to;
};

/**
 * In the library that dl_iterate_phdr(3) shows, exchange where imports of the named symbols lead to, for those that are
 * bound to @from; other threads may run in it. Returns how many were exchanged, -EINVAL or -errno of mprotect(2).
 * Context: thread, one at a time.
 */
int csink_got_exchange(const struct dl_phdr_info *info, const struct csink_got_change *changes, size_t nr_changes);

#endif
