/* See short_paths.h. Runs on the caller's thread. */
#include "launcher/profile/short_paths.h"

#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "launcher/base/path.h"
#include "launcher/base/search.h"

struct place {
	const char *path;
	size_t bytes;
	uint32_t index; /* the caller's */
};

/* The i-th byte from the end, as it is ordered: a component's beginning before its other bytes, the path's before all.
 */
static int from_end(const struct place *place, size_t i)
{
	unsigned char byte = i < place->bytes ? (unsigned char)place->path[place->bytes - 1 - i] : 0;

	return byte == '/' ? 1 : byte ? byte + 1 : 0;
}

/* How many bytes at their ends are equal. */
static size_t equal_bytes(const struct place *a, const struct place *b)
{
	size_t nr = 0;

	while (nr < a->bytes && from_end(a, nr) == from_end(b, nr))
		nr++;
	return nr;
}

/* By their ends: those that end in the same components are next to each other. Equal strings mostly are the same one.
 */
static int compare_ends(const void *a, const void *b)
{
	const struct place *left = a, *right = b;
	size_t equal = left->path == right->path ? left->bytes : equal_bytes(left, right);

	return CSINK_COMPARE(from_end(left, equal), from_end(right, equal));
}

/* Where a path begins to differ from another one: at the component, and with the '/' before it if the other ends there.
 */
static size_t differs_at(const struct place *place, const struct place *other)
{
	size_t equal = equal_bytes(place, other), at = place->bytes - equal;

	if (at && equal == other->bytes)
		at--;
	while (at && place->path[at - 1] != '/')
		at--;
	return at;
}

static size_t shown_at(const struct place *places, uint32_t nr, const struct place *first, const struct place *end)
{
	size_t at = (size_t)(csink_base_name(first->path) - first->path);

	if (first > places)
		at = CSINK_MIN(at, differs_at(first, first - 1));
	if (end < places + nr)
		at = CSINK_MIN(at, differs_at(first, end));
	return at;
}

void csink_short_paths(const char **paths, uint32_t nr)
{
	CSINK_AUTO_FREE struct place *places = calloc((size_t)nr + 1, sizeof(*places));
	const struct place *at, *end;

	for (uint32_t i = 0; !places && i < nr; i++)
		paths[i] = csink_base_name(paths[i]);
	if (!places)
		return;
	for (uint32_t i = 0; i < nr; i++)
		places[i] = (struct place){paths[i], strlen(paths[i]), i};
	qsort(places, nr, sizeof(*places), compare_ends);
	for (at = places; at < places + nr; at = end) {
		size_t from;

		for (end = at + 1; end < places + nr && !compare_ends(at, end);)
			end++;
		from = shown_at(places, nr, at, end);
		for (const struct place *equal = at; equal < end; equal++)
			paths[equal->index] = equal->path + from;
	}
}
