/* See append_functions.h. */
#include "launcher/profile/append_functions.h"

#include "launcher/base/format.h"
#include "launcher/profile/profile.h"

uint32_t csink_append_functions(const struct csink_profile *p, uint32_t location, uint32_t most, char *text,
				size_t size)
{
	const struct csink_profile_location *at = &p->locations[location];

	for (uint32_t i = 0; i < at->nr_lines && most; i++, most--)
		csink_append(text, size, "%s%s", *text ? " < " : "",
			     csink_profile_text(p, p->functions[p->lines[at->first_line + i].function].name));
	if (!at->nr_lines && most--)
		csink_append(text, size, "%s[unknown]", *text ? " < " : "");
	return most;
}
