/*
 * glibc's _dl_find_object(3), which takes no lock. It is found by name and never referenced: a reference to it, weak or
 * not, makes the linker demand GLIBC_2.35 of every program that we are preloaded into, and an older loader refuses such
 * a program its start.
 */
#ifndef CSINK_FIND_OBJECT_H
#define CSINK_FIND_OBJECT_H

#include <dlfcn.h>
#include <link.h>

#include "include/internal/base.h"

#ifdef DLFO_STRUCT_HAS_EH_DBASE
/** The function; NULL before glibc 2.35. Set before any constructor of ours runs, constant afterwards. Context: signal.
 */
extern int (*csink_find_object)(void *address, struct dl_find_object *found) CSINK_HIDDEN;
#endif

#endif
