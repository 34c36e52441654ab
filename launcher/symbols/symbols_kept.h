/*
 * Names that are kept from one profile to the next: a gate runs the same programs hundreds of times, and opening their
 * files and unpacking their debug information would take longer than a run. The names of an object are kept for as
 * long as its file stays the same (device, inode, size, time, and build-id where there is one), in files without a
 * name, which are no memory of this process: children that are forked meanwhile do not begin with it.
 *
 * Context of everything here: the launcher's one thread.
 */
#ifndef CSINK_SYMBOLS_KEPT_H
#define CSINK_SYMBOLS_KEPT_H

#include <stdbool.h>
#include <stdint.h>

#include "launcher/symbols/symbols.h"
#include "launcher/symbols/symbols_cache.h"

/* One object. */
struct csink_kept_object {
	char *path;
	uint8_t build_id[32], build_id_len;
	uint64_t dev, ino, size, mtime_ns; /* all 0 of the vdso */
	bool is_opened;                    /* ranges has the names of the cache directory */
	struct csink_symbols_cache ranges; /* of units, or of the whole object */
	struct csink_symbols_cache single; /* addresses that were asked for before and are in no range */
};

/** Keep names from here on: each csink_symbols_resolve() uses them. */
void csink_symbols_keep_begin(void);

/** Stop keeping names, and free those that were kept. */
void csink_symbols_keep_end(void);

/** Find the kept names of an object; at first there are none. Returns NULL if names of this object are not kept. */
struct csink_kept_object *csink_kept_find(const struct csink_object *object);

/** Name the wants that are known, as csink_symbols_cache_take() does. Returns how many are left. */
uint32_t csink_kept_take(const struct csink_kept_object *kept, struct csink_profile *p, struct csink_want *wants,
			 uint32_t nr_wants, int *flags);

/** Keep the names that were found for wants: the lines of their locations. @flags  enum csink_symbols_found of all of
 * them. */
void csink_kept_put(struct csink_kept_object *kept, struct csink_profile *p, struct csink_want *wants,
		    uint32_t nr_wants, int flags);

#endif
