/* The home, cache and state directories of the effective user. */
#ifndef CSINK_OWN_HOME_H
#define CSINK_OWN_HOME_H

#include <stdbool.h>
#include <stddef.h>

/**
 * $HOME if it belongs to the effective user, else that user's home in the password database: sudo may leave another
 * user's HOME in the environment. Returns an absolute path, valid until the next call, or NULL. Context: thread.
 */
const char *csink_own_home(void);

/**
 * The directory for caches: $XDG_CACHE_HOME, where it is set, which must belong to the effective user, or what it is to
 * be made in; else .cache in csink_own_home(). It need not be there. Returns false if there is none, or it does not
 * fit. Context: thread.
 */
bool csink_own_cache(char *path, size_t size);

/** The same for what is kept from one run to the next: $XDG_STATE_HOME, or .local/state. */
bool csink_own_state(char *path, size_t size);

#endif
