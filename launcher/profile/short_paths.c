/* See short_paths.h. Runs on the caller's thread. */
#include "launcher/profile/short_paths.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/cleanup.h"
#include "launcher/base/path.h"

struct place {
	const char *path;
	const char *shown; /* what of it is shown so far */
	uint32_t index;    /* the caller's */
};

static int compare_shown(const void *a, const void *b)
{
	const struct place *left = a, *right = b;

	return strcmp(left->shown, right->shown) ?: strcmp(left->path, right->path);
}

/* One directory more. Returns false if the path has none. */
static bool widen(struct place *place)
{
	const char *from = place->shown;

	if (from == place->path)
		return false;
	for (from--; from > place->path && from[-1] != '/';)
		from--;
	place->shown = from;
	return true;
}

/* Give those that are equal as shown and not as a whole one directory more. Returns whether one changed. */
static bool widen_equal(struct place *places, uint32_t nr)
{
	bool changed = false;
	uint32_t i, k;

	qsort(places, nr, sizeof(*places), compare_shown);
	for (i = 0; i < nr; i = k) {
		bool differ = false;

		for (k = i + 1; k < nr && !strcmp(places[k].shown, places[i].shown); k++)
			differ |= strcmp(places[k].path, places[i].path) != 0;
		for (uint32_t n = i; differ && n < k; n++)
			changed |= widen(&places[n]);
	}
	return changed;
}

void csink_short_paths(const char **paths, uint32_t nr)
{
	CSINK_AUTO_FREE struct place *places = calloc((size_t)nr + 1, sizeof(*places));

	for (uint32_t i = 0; places && i < nr; i++)
		places[i] = (struct place){paths[i], csink_base_name(paths[i]), i};
	while (places && widen_equal(places, nr))
		;
	for (uint32_t i = 0; i < nr; i++) {
		if (places)
			paths[places[i].index] = places[i].shown;
		else
			paths[i] = csink_base_name(paths[i]);
	}
}
