/* See append_functions.h. */
#include "launcher/profile/append_functions.h"

#include <stdbool.h>
#include <string.h>

#include "include/internal/base.h"
#include "launcher/base/format.h"
#include "launcher/profile/profile.h"

static const char *name_of(const struct csink_profile *p, uint32_t line)
{
	return csink_profile_text(p, p->functions[p->lines[line].function].name);
}

/* The functions of a location, innermost first, without the first ones. */
static uint32_t append_from(const struct csink_profile *p, uint32_t location, uint32_t first, uint32_t most, char *text,
			    size_t size)
{
	const struct csink_profile_location *at = &p->locations[location];

	for (uint32_t i = first; i < at->nr_lines && most; i++, most--)
		csink_append(text, size, "%s%s", *text ? " < " : "", name_of(p, at->first_line + i));
	if (at->nr_lines || !most)
		return most;
	csink_append(text, size, "%s[unknown]", *text ? " < " : "");
	return most - 1;
}

uint32_t csink_append_functions(const struct csink_profile *p, uint32_t location, uint32_t most, char *text,
				size_t size)
{
	return append_from(p, location, 0, most, text, size);
}

static bool is_of_library(const char *name)
{
	static const char *const begins[] = {
		"std::", "<std::", "core::", "<core::", "alloc::", "<alloc::", "__gthread_"};

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(begins); i++)
		if (!strncmp(name, begins[i], strlen(begins[i])))
			return true;
	return false;
}

/* How many of a location's functions, the innermost ones, are of a library: all of them, or up to one that is not. */
static uint32_t nr_of_library(const struct csink_profile *p, const struct csink_profile_location *at)
{
	uint32_t nr = 0;

	while (nr < at->nr_lines && is_of_library(name_of(p, at->first_line + nr)))
		nr++;
	return nr;
}

void csink_innermost_functions(const struct csink_profile *p, const uint32_t *locations, uint32_t nr, uint32_t most,
			       char *text, size_t size)
{
	uint32_t i = 0, line = 0, left = most;

	*text = '\0';
	for (; i < nr; i++) {
		const struct csink_profile_location *at = &p->locations[locations[i]];

		line = nr_of_library(p, at);
		if (line < at->nr_lines || !at->nr_lines)
			break;
	}
	if (i == nr)
		i = line = 0;
	for (; i < nr && left; i++, line = 0)
		left = append_from(p, locations[i], line, left, text, size);
}
