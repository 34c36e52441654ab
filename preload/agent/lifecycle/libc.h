/*
 * The C library itself, also where other objects define functions by the same names. A shell has a putenv() of its own,
 * a graph library a clone() that copies nodes: what this library calls by such a name must be libc's. And the agent
 * itself, among the loaded objects.
 */
#ifndef CSINK_LIBC_H
#define CSINK_LIBC_H

#include <stdbool.h>

struct link_map;

/** The agent's own link map, in the loader's list of the program's objects: among the first, where it stays. NULL: the
 * agent is in another namespace (dlmopen). Context: any. */
const struct link_map *csink_own_map(void);

/** Find it, and lead what this library imports there, but for the allocator, which is one for all. Context: init. */
void csink_libc_init(void);

/** Whether the function is libc's or the dynamic linker's; true as well where that cannot be known (glibc < 2.35). */
bool csink_libc_has(const void *function);

/** The path of the loader that this program was started with; NULL where it has none. Context: any. */
const char *csink_libc_loader_path(void);

/** libc's function of that name, or NULL; NULL as well where libc cannot be known. Context: any. */
void *csink_libc_find(const char *name);

/**
 * The next definition of a function after ours, in the order in which the objects of the program's start are searched;
 * as dlsym(RTLD_NEXT) says, but without the loader's lock.
 * Returns false where that cannot be known: we were loaded by dlopen, or an object before libc has an old table of
 * names. Before glibc 2.35 what libc lacks is looked for in what was loaded later, too. Context: any, once
 * csink_libc_init() has run.
 */
bool csink_libc_next(const char *name, void **function);

/**
 * Whether no object before us defines that function, so that the program's objects call ours. By definitions: the
 * address that the loader has for it may lie in the program, which calls ours from there. Context: any.
 */
bool csink_libc_ours_is_first(const char *name);

/** clone(2) as libc has it, unseen by the call that we interpose. Context: any, once the constructor has run. */
int csink_libc_clone(int (*fn)(void *arg), void *stack, int flags, void *arg);

#endif
