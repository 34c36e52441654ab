/* See own_types.h. */
#include "launcher/profile/own_types.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "include/internal/base.h"
#include "launcher/profile/facts.h"
#include "launcher/profile/profile.h"

int64_t csink_own_period(const struct csink_profile *p, uint32_t type)
{
	const char *text, *name = csink_profile_text(p, p->types[type].name);
	int64_t period, most = 0;
	char of[64];

	/* Of profiles that were merged, the coarser one: its margin holds for both. */
	for (uint32_t nr = 0; (text = csink_profile_fact(p, CSINK_FACT_ALLOCATIONS, nr)); nr++)
		if (sscanf(text, "%63s %" SCNd64, of, &period) == 2 && !strcmp(of, name))
			most = CSINK_MAX(most, period);
	return most;
}

enum csink_own_kind csink_own_kind(const struct csink_profile *p, uint32_t type)
{
	const char *name = csink_profile_text(p, p->types[type].name), *lock;

	for (uint32_t nr = 0; (lock = csink_profile_fact(p, CSINK_FACT_LOCKS, nr)); nr++)
		if (!strcmp(lock, name))
			return CSINK_OWN_LOCKS;
	if (!csink_own_period(p, type))
		return CSINK_OWN_NONE;
	return strncmp(csink_profile_text(p, p->types[type].name), "alloc_", 6) ? CSINK_OWN_IN_USE
										: CSINK_OWN_ALLOCATED;
}

int csink_own_type(const struct csink_profile *p, enum csink_own_kind kind, bool is_objects)
{
	for (uint32_t i = 0; i < p->nr_types; i++)
		if (csink_own_kind(p, i) == kind &&
		    is_objects == (strcmp(csink_profile_text(p, p->types[i].unit), "bytes") != 0))
			return (int)i;
	return -ENOENT;
}

double csink_own_margin(int64_t bytes, int64_t all, int64_t period)
{
	double others = all > 0 ? fmax(1 - (double)bytes / (double)all, 0) : 1;

	return bytes > 0 ? 2 * sqrt((double)period * others * (double)bytes) : 0;
}
