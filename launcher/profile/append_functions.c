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

uint32_t csink_append_functions(const struct csink_profile *p, uint32_t location, uint32_t most, char *text,
				size_t size)
{
	const struct csink_profile_location *at = &p->locations[location];

	for (uint32_t i = 0; i < at->nr_lines && most; i++, most--)
		csink_append(text, size, "%s%s", *text ? " < " : "", name_of(p, at->first_line + i));
	if (!at->nr_lines && most--)
		csink_append(text, size, "%s[unknown]", *text ? " < " : "");
	return most;
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

void csink_innermost_functions(const struct csink_profile *p, const uint32_t *locations, uint32_t nr, uint32_t most,
			       char *text, size_t size)
{
	bool is_past = false;
	uint32_t left = most;

	*text = '\0';
	for (uint32_t i = 0; i < nr && left; i++) {
		const struct csink_profile_location *at = &p->locations[locations[i]];

		is_past |= !at->nr_lines;
		for (uint32_t k = 0; k < at->nr_lines && left; k++) {
			is_past |= !is_of_library(name_of(p, at->first_line + k));
			if (!is_past)
				continue;
			csink_append(text, size, "%s%s", *text ? " < " : "", name_of(p, at->first_line + k));
			left--;
		}
		if (!at->nr_lines && is_past && left--)
			csink_append(text, size, "%s[unknown]", *text ? " < " : "");
	}
	for (uint32_t i = 0; i < nr && left && !is_past; i++)
		left = csink_append_functions(p, locations[i], left, text, size);
}
