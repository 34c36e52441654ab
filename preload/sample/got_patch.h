/*
 * Rerouting what one loaded library calls, by its own global offset table. Nothing is interposed on anybody else, and
 * nothing in the library's file changes.
 */
#ifndef CSINK_SAMPLE_GOT_PATCH_H
#define CSINK_SAMPLE_GOT_PATCH_H

#include <link.h>
#include <stddef.h>

struct csink_got_route {
	const char *symbol; /* as the library imports it, without a version */
	void *target;
};

/**
 * Point the library's imports of the named symbols at our targets, and its references to symbols that it defines itself
 * at its own definitions, whatever the dynamic linker had found first. Returns the number of routes that were used at
 * least once, -EINVAL (not an ELF image of this machine) or -errno of mprotect(2).  Context: init. The library must not
 * run meanwhile.
 */
int csink_got_patch(const struct link_map *map, const struct csink_got_route *routes, size_t nr_routes);

#endif
