/*
 * Arrays that grow by doubling, in the API and the launcher (the agent does not allocate). Each function returns 0, or
 * -ENOMEM with the array and its capacity as they were. The macros take the array and its numbers by name:
 * CSINK_GROW(p->things, p->nr_things, p->cap_things). Context: any; allocates.
 */
#ifndef CSINK_GROW_H
#define CSINK_GROW_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"

/** Make it `more` elements of `size` bytes, at most 2^32 - 1. */
static inline int csink_grow(void **array, uint64_t more, size_t size)
{
	void *grown = more <= UINT32_MAX ? reallocarray(*array, more, size) : NULL;

	if (!grown)
		return -ENOMEM;
	*array = grown;
	return 0;
}

/** Make room for `want` elements in all. */
static inline int csink_grow_room(void **array, uint32_t *cap, uint64_t want, size_t size)
{
	uint64_t more = CSINK_MAX(CSINK_MAX((uint64_t)*cap * 2, 64), want);

	if (want <= *cap)
		return 0;
	if (csink_grow(array, more, size))
		return -ENOMEM;
	*cap = (uint32_t)more;
	return 0;
}

/** The same, and the new elements are zero: for arrays that are indexed by a number from elsewhere. */
static inline int csink_grow_zeroed(void **array, uint32_t *cap, uint64_t want, size_t size)
{
	uint32_t old = *cap;
	int err = csink_grow_room(array, cap, want, size);

	if (*cap > old)
		memset((char *)*array + old * size, 0, (*cap - old) * size);
	return err;
}

/** Room for one more behind nr, for small arrays that do not keep their capacity: it follows from nr. */
static inline int csink_grow_uncapped(void **array, uint32_t nr, size_t size)
{
	if (nr & (nr - 1)) /* neither 0 nor a power of two: there is room */
		return 0;
	return csink_grow(array, nr ? 2 * (uint64_t)nr : 1, size);
}

/** Room for one more behind nr; for `want` in all; for index `at`, with zeroes between; for one more, uncapped. */
#define CSINK_GROW(array, nr, cap) csink_grow_room((void **)&(array), &(cap), (uint64_t)(nr) + 1, sizeof(*(array)))
#define CSINK_GROW_TO(array, cap, want) csink_grow_room((void **)&(array), &(cap), want, sizeof(*(array)))
#define CSINK_GROW_INDEX(array, cap, at)                                                                               \
	csink_grow_zeroed((void **)&(array), &(cap), (uint64_t)(at) + 1, sizeof(*(array)))
#define CSINK_GROW_UNCAPPED(array, nr) csink_grow_uncapped((void **)&(array), nr, sizeof(*(array)))

/** Append a value. Returns its index + 1, or 0 without memory. */
#define CSINK_APPEND(array, nr, cap, ...) (CSINK_GROW(array, nr, cap) ? 0 : ((array)[nr] = (__VA_ARGS__), ++(nr)))

#endif
