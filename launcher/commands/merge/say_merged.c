/* See say_merged.h. */
#include "launcher/commands/merge/say_merged.h"

#include "launcher/base/format.h"
#include "launcher/base/message.h"
#include "launcher/profile/profile.h"

void csink_say_merged(const struct csink_profile *p, uint32_t nr, const char *output)
{
	char profiles[32], stacks[32];

	csink_format_count(profiles, sizeof(profiles), nr);
	csink_format_count(stacks, sizeof(stacks), p->nr_samples);
	csink_say("%s: %s %s, %s distinct samples in %u modules", output, profiles, nr == 1 ? "profile" : "profiles",
		  stacks, p->nr_mappings - 1);
}
