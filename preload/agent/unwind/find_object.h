/*
 * glibc's _dl_find_object(3), which takes no lock. It is found by name and never referenced: a reference to it, weak or
 * not, makes the linker demand GLIBC_2.35 of every program that we are preloaded into, and an older loader refuses such
 * a program its start (old_glibc.h). The same is done for libc's flag that the process has one thread.
 */
#ifndef CSINK_FIND_OBJECT_H
#define CSINK_FIND_OBJECT_H

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>

#include "include/internal/base.h"

#ifdef DLFO_STRUCT_HAS_EH_DBASE
/** The function; NULL before glibc 2.35. Set as the process begins, constant afterwards. Context: signal.
 */
extern int (*csink_find_object)(void *address, struct dl_find_object *found) CSINK_HIDDEN;
#else
#define csink_find_object NULL
#endif

/** Set the variables of this header. Context: init. */
void csink_find_object_init(void);

/** libc's link map; NULL: it has another name than usual. Set and constant like these. Context: signal. */
extern const struct link_map *csink_libc_map CSINK_HIDDEN;

/** __libc_single_threaded, where it is; NULL before glibc 2.32. */
extern const char *csink_single_threaded CSINK_HIDDEN;

/** Has this process one thread only? False as well where that cannot be known. Context: signal. */
static inline bool csink_is_single_threaded(void)
{
	return csink_single_threaded && *csink_single_threaded;
}

#endif
