/* Order, and binary search wherever the launcher has something in order. Context: any. */
#ifndef CSINK_SEARCH_H
#define CSINK_SEARCH_H

#include <stdint.h>
#include <stdlib.h>

/** -1, 0 or 1: a is less than b, as much, or more. What orders next follows behind ?: where they may be equal. */
#define CSINK_COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

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

	return CSINK_COMPARE(*left, *right);
}

/** The same of elements that begin with an int32_t, as a PID. */
static inline int csink_compare_i32(const void *a, const void *b)
{
	const int32_t *left = a, *right = b;

	return CSINK_COMPARE(*left, *right);
}

/** The same of elements that begin with a double. */
static inline int csink_compare_doubles(const void *a, const void *b)
{
	const double *left = a, *right = b;

	return CSINK_COMPARE(*left, *right);
}

/** Define one: the order of a type's elements by one member, and by another one where that is equal. */
#define CSINK_COMPARE_BY(name, type, first, next)                                                                      \
	static int name(const void *a, const void *b)                                                                  \
	{                                                                                                              \
		const type *left = a, *right = b;                                                                      \
		return CSINK_COMPARE(left->first, right->first) ?: CSINK_COMPARE(left->next, right->next);             \
	}

/** The numbers from 0 to nr - 1, as qsort_r(3) sorts them. Returns a malloc'ed array, or NULL without memory. */
static inline uint32_t *csink_sorted(uint32_t nr, int (*compare)(const void *a, const void *b, void *context),
				     void *context)
{
	uint32_t *sorted = calloc((size_t)nr + 1, sizeof(*sorted));

	for (uint32_t i = 0; sorted && i < nr; i++)
		sorted[i] = i;
	if (sorted)
		qsort_r(sorted, nr, sizeof(*sorted), compare, context);
	return sorted;
}

/** The place of each number in that order; equal ones have the places of a stable sort. Likewise. */
static inline uint32_t *csink_ranks(uint32_t nr, int (*compare)(const void *a, const void *b, void *context),
				    void *context)
{
	uint32_t *sorted = csink_sorted(nr, compare, context), *ranks = calloc((size_t)nr + 1, sizeof(*ranks));

	for (uint32_t i = 0; sorted && ranks && i < nr; i++)
		ranks[sorted[i]] = i;
	if (!sorted)
		free(ranks);
	free(sorted);
	return sorted ? ranks : NULL;
}

#endif
