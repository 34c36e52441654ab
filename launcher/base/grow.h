/* Arrays that grow by doubling, wherever the launcher has one. Context: any; allocates. */
#ifndef CSINK_GROW_H
#define CSINK_GROW_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "include/internal/base.h"

/** Make room for one more element of `size` bytes behind nr. Returns 0, or -ENOMEM with the array as it was. */
static inline int csink_grow_array(void **array, uint32_t nr, uint32_t *cap, size_t size)
{
	uint64_t more = CSINK_MAX((uint64_t)*cap * 2, 64);
	void *grown;

	if (nr < *cap)
		return 0;
	grown = more <= UINT32_MAX ? reallocarray(*array, more, size) : NULL;
	if (!grown)
		return -ENOMEM;
	*array = grown;
	*cap = (uint32_t)more;
	return 0;
}

/** The same by name: CSINK_GROW(p->things, p->nr_things, p->cap_things). */
#define CSINK_GROW(array, nr, cap) csink_grow_array((void **)&(array), nr, &(cap), sizeof(*(array)))

#endif
