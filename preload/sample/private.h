/*
 * Private memory of the library's own that is never given back: states of threads, cached rules, the snapshot of
 * modules. It is out of core dumps, and out of the variables in which a checker of memory would look for pointers.
 *
 * A process that starts makes one mapping, for all that most ever need: each costs it as much as a hundred simple
 * calls.
 */
#ifndef CSINK_SAMPLE_PRIVATE_H
#define CSINK_SAMPLE_PRIVATE_H

#include <stddef.h>

/** So many bytes of zeroes, aligned to 64; NULL: there is no memory. Leaves errno alone. Context: signal. */
void *csink_private_get(size_t bytes);

#endif
