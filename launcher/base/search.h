/* Order, and binary search wherever the launcher has something in order. Context: any. */
#ifndef CSINK_SEARCH_H
#define CSINK_SEARCH_H

#include <stdint.h>

/**
 * The index of the first of nr that is not less; nr, if all are.
 * @at    a name for the index of the one that is asked about.
 * @less  whether it is less than what is looked for: CSINK_LOWER(nr, i, numbers[i] < number).
 */
#define CSINK_LOWER(nr, at, less)                                                                                      \
	({                                                                                                             \
		uint32_t low_##at = 0, high_##at = (nr);                                                               \
		while (low_##at < high_##at) {                                                                         \
			uint32_t at = low_##at + (high_##at - low_##at) / 2;                                           \
			if (less)                                                                                      \
				low_##at = at + 1;                                                                     \
			else                                                                                           \
				high_##at = at;                                                                        \
		}                                                                                                      \
		low_##at;                                                                                              \
	})

/** For qsort(3) and bsearch(3): the order of elements that begin with a uint64_t, by that. */
static inline int csink_compare_u64(const void *a, const void *b)
{
	const uint64_t *left = a, *right = b;

	return *left < *right ? -1 : *left > *right;
}

#endif
