/*
 * Names of addresses that were asked for before, kept by build-id in $XDG_CACHE_HOME/countersink (or ~/.cache): for
 * objects with much debug information, and for those that are gone by now. The folder is the user's alone (another is
 * not believed), has 256 MB at most, and may be removed at any time; what is damaged in it is ignored.
 *
 * A file is a profile in pprof's format without samples: a location for each address, as the object's headers count it.
 */
#ifndef CSINK_LAUNCHER_SYMBOLS_CACHE_H
#define CSINK_LAUNCHER_SYMBOLS_CACHE_H

#include "launcher/profile/profile.h"
#include "launcher/profile/symbols.h"

struct csink_symbols_cache {
	struct csink_profile *known; /* NULL: nothing is known */
	uint32_t *order;             /* its locations by address */
	uint32_t nr;
	int flags; /* enum csink_symbols_found, of what is known */
	char path[4096];
};

/**
 * Open what is known of an object. @source  says which files the names come from; NULL: any will do.
 * Nothing is there to close if the object has no build-id or there is no folder for it; cache->path is "" then.
 */
void csink_symbols_cache_open(struct csink_symbols_cache *cache, const struct csink_object *object, const char *source);

/**
 * Name the wants that are known. They are moved behind the others.
 * Returns how many are left.
 */
uint32_t csink_symbols_cache_take(const struct csink_symbols_cache *cache, struct csink_profile *p,
				  struct csink_want *wants, uint32_t nr_wants);

/** Write down what was found of wants since, with what was known. A folder that takes nothing is no error. */
void csink_symbols_cache_put(const struct csink_symbols_cache *cache, const struct csink_profile *p, const char *source,
			     const struct csink_want *wants, uint32_t nr_wants, int flags);

void csink_symbols_cache_close(struct csink_symbols_cache *cache);

#endif
