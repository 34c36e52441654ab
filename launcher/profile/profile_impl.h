/*
 * What the profile*.c files share; no other file includes this: growing arrays of a profile, and the tables in which
 * equal things have equal ids. The functions here are inline because each frame, stack and sample goes through them.
 */
#ifndef CSINK_PROFILE_IMPL_H
#define CSINK_PROFILE_IMPL_H

#include <string.h>

#include "include/internal/base.h"
#include "launcher/base/hash.h"
#include "launcher/profile/profile.h"

/** Account for so many more bytes. False where csink_profile_limit() does not allow them. */
bool csink_profile_may_have(struct csink_profile *p, uint64_t bytes);

/** Make room for `more` elements after nr. Returns 0, or marks the profile and returns -ENOMEM. */
int csink_profile_reserve(struct csink_profile *p, void **array, uint32_t nr, uint32_t *cap, uint32_t more,
			  size_t size);

#define RESERVE(p, what, more)                                                                                         \
	csink_profile_reserve(p, (void **)&(p)->what, (p)->nr_##what, &(p)->cap_##what, more, sizeof(*(p)->what))

/** Grow to nr_slots, a power of two that is more than there are. Returns 0, or marks the profile and returns -ENOMEM.
 */
int csink_profile_table_grow(struct csink_profile *p, struct csink_table *table, uint64_t nr_slots);

/* Room for one more id. Called before a look-up, so that its slot can be used. */
static inline int table_prepare(struct csink_profile *p, struct csink_table *table)
{
	uint64_t want = csink_table_want(table);

	return want ? csink_profile_table_grow(p, table, want) : 0;
}

#endif
