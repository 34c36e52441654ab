/* See fold_native.h. Runs in the launcher's thread. */
#include "launcher/profile/fold_native.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/cleanup.h"
#include "launcher/profile/interpreted.h"
#include "launcher/profile/profile.h"

/* Most profiles have no such function: then their stacks need not be looked at. */
static bool has_interpreted(const struct csink_profile *p)
{
	uint32_t location = 1;

	while (location < p->nr_locations && !csink_is_interpreted_location(p, location))
		location++;
	return location < p->nr_locations;
}

bool csink_has_native_calls(const struct csink_profile *p)
{
	uint32_t nr = has_interpreted(p) ? p->nr_samples : 0;

	for (uint32_t i = 0; i < nr; i++) {
		const struct csink_profile_range *range = &p->stacks[p->samples[i].stack];
		const uint32_t *ids = p->stack_ids + range->first;

		for (uint32_t k = 1; k < range->nr && !csink_is_interpreted_location(p, ids[0]); k++) {
			if (csink_is_interpreted_location(p, ids[k]))
				return true;
		}
	}
	return false;
}

/* The stack without such frames; the same if it has none. @locations  room for those of a stack. */
static uint32_t folded(struct csink_profile *p, uint32_t stack, uint32_t *locations)
{
	const struct csink_profile_range range = p->stacks[stack];
	const uint32_t *ids = p->stack_ids + range.first;
	uint32_t outermost = csink_outermost_interpreted(p, stack), nr = 0;

	for (uint32_t i = 0; i < range.nr; i++) {
		if (i >= outermost || csink_is_interpreted_location(p, ids[i]))
			locations[nr++] = ids[i];
	}
	return nr == range.nr ? stack : csink_profile_stack_add(p, locations, nr);
}

int csink_fold_native(struct csink_profile *p)
{
	uint32_t nr_stacks = p->nr_stacks, deepest = 0;
	CSINK_AUTO_FREE uint32_t *to = calloc(nr_stacks + 1, sizeof(*to)), *locations = NULL;
	CSINK_AUTO_FREE bool *keep = malloc(p->nr_samples + 1);

	for (uint32_t i = 0; i < nr_stacks; i++)
		deepest = p->stacks[i].nr > deepest ? p->stacks[i].nr : deepest;
	locations = calloc(deepest + 1, sizeof(*locations));
	if (!to || !keep || !locations)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr_stacks; i++)
		to[i] = folded(p, i, locations);
	for (uint32_t i = 0; i < p->nr_samples; i++)
		p->samples[i].stack = to[p->samples[i].stack];
	memset(keep, 1, p->nr_samples + 1);
	csink_profile_keep(p, keep); /* samples are found by their stacks */
	return csink_profile_error(p);
}
