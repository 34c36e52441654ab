/*
 * Private memory of the library's own that is never given back: states of threads, cached rules, the snapshot of
 * modules. It is out of core dumps, and out of the variables in which a checker of memory would look for pointers.
 *
 * A process that starts makes one mapping, for all that most ever need: each costs it as much as a hundred simple
 * calls.
 */
#ifndef CSINK_PRIVATE_MEMORY_H
#define CSINK_PRIVATE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/** So many bytes of zeroes, aligned to 64; NULL: there is no memory. Leaves errno alone. Context: signal. */
void *csink_private_get(size_t bytes);

/** A mapping of its own, which the caller may unmap; NULL: there is no memory. May change errno. Context: signal. */
void *csink_private_map(size_t bytes);

/**
 * The program has locked its memory (mlockall(2)): unlock what csink_private_get() has handed out.
 * @later_ones  the kernel is to lock later mappings, too (MCL_FUTURE): unlock those from now on.
 * Context: thread.
 */
void csink_private_unlock(bool later_ones);

#endif
