/* See alloc_types.h. */
#include "launcher/profile/alloc_types.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "launcher/profile/facts.h"
#include "launcher/profile/profile.h"

int64_t csink_alloc_period(const struct csink_profile *p, uint32_t type)
{
	const char *text, *name = csink_profile_text(p, p->types[type].name);
	int64_t period;
	char of[64];

	for (uint32_t nr = 0; (text = csink_profile_fact(p, CSINK_FACT_ALLOCATIONS, nr)); nr++)
		if (sscanf(text, "%63s %" SCNd64, of, &period) == 2 && !strcmp(of, name) && period > 0)
			return period;
	return 0;
}

enum csink_alloc_kind csink_alloc_kind(const struct csink_profile *p, uint32_t type)
{
	if (!csink_alloc_period(p, type))
		return CSINK_ALLOC_OTHER;
	return strncmp(csink_profile_text(p, p->types[type].name), "alloc_", 6) ? CSINK_ALLOC_IN_USE
										: CSINK_ALLOC_ALLOCATED;
}

int csink_alloc_type(const struct csink_profile *p, enum csink_alloc_kind kind, bool is_objects)
{
	for (uint32_t i = 0; i < p->nr_types; i++)
		if (csink_alloc_kind(p, i) == kind &&
		    is_objects == (strcmp(csink_profile_text(p, p->types[i].unit), "bytes") != 0))
			return (int)i;
	return -ENOENT;
}

double csink_alloc_margin(int64_t value, int64_t bytes, int64_t all, int64_t period)
{
	double others = all > 0 ? fmax(1 - (double)bytes / (double)all, 0) : 1;

	return bytes > 0 ? 2 * (double)value * sqrt((double)period * others / (double)bytes) : 0;
}
