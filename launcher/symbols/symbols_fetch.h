/* Files that describe an object, from debuginfod's servers. */
#ifndef CSINK_SYMBOLS_FETCH_H
#define CSINK_SYMBOLS_FETCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether servers may be asked (DEBUGINFOD_URLS says which). No server is asked without --debuginfod. */
extern bool csink_debuginfod_wanted;

/**
 * Fetch what a build-id's servers have, or libdebuginfod's own cache. @executable  the object itself, not its debug
 * information. Returns a file descriptor, -ENOENT (no server has it), -ENOPKG (libdebuginfod is not installed),
 * -ENOTUNIQ (no server is named), or what else went wrong. Context: thread.
 */
int csink_debuginfod_fetch(const uint8_t *build_id, size_t len, bool executable);

/** Whether servers can be asked: 0, -ENOPKG or -ENOTUNIQ as above, -ENOMEM. */
int csink_debuginfod_open(void);

#endif
