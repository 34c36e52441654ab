/* See derived.h. */
#include "launcher/profile/derived.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "include/internal/base.h"
#include "launcher/profile/profile.h"

/* The event without its modifiers: "cycles:u" is cycles, "cpu/cycles/u" too. */
static void plain_name(const char *name, char *out, size_t size)
{
	const char *slash = strchr(name, '/');
	size_t len;

	if (slash && strchr(slash + 1, '/'))
		name = slash + 1;
	len = strcspn(name, "/:");
	snprintf(out, size, "%.*s", (int)CSINK_MIN(len, size - 1), name);
}

static bool is_one_of(const char *name, const char *const *names, uint32_t nr)
{
	uint32_t i;

	for (i = 0; i < nr && strcmp(name, names[i]); i++)
		;
	return i < nr;
}

uint32_t csink_derived_find(const struct csink_profile *p, struct csink_derived *out, uint32_t max)
{
	static const char *const cycles[] = {"cycles", "cpu-cycles", "cpu_cycles"}, *const instructions[] = {
											    "instructions",
											    "inst_retired"};
	int64_t cycle = -1, instruction = -1;
	char name[64];
	uint32_t i, nr = 0;

	for (i = 0; i < p->nr_types; i++) {
		plain_name(csink_profile_text(p, p->types[i].name), name, sizeof(name));
		if (is_one_of(name, cycles, CSINK_ARRAY_SIZE(cycles)))
			cycle = i;
		else if (is_one_of(name, instructions, CSINK_ARRAY_SIZE(instructions)))
			instruction = i;
	}
	if (instruction < 0)
		return 0;
	if (cycle >= 0 && nr < max)
		out[nr++] = (struct csink_derived){"IPC", "instructions per cycle", instruction, cycle, 1};
	for (i = 0; i < p->nr_types && nr < max; i++) {
		plain_name(csink_profile_text(p, p->types[i].name), name, sizeof(name));
		if (!strstr(name, "misses"))
			continue;
		out[nr] = (struct csink_derived){.over = i, .under = instruction, .factor = 1000};
		snprintf(out[nr].title, sizeof(out[nr].title), "%.3s-m/ki", name);
		snprintf(out[nr].name, sizeof(out[nr].name), "%.40s per thousand instructions", name);
		nr++;
	}
	return nr;
}

double csink_derived_value(const struct csink_derived *d, const int64_t *values)
{
	return values[d->under] ? d->factor * (double)values[d->over] / (double)values[d->under] : NAN;
}

void csink_derived_format(const struct csink_derived *d, const int64_t *values, char *buf, size_t size)
{
	double value = csink_derived_value(d, values);

	if (isfinite(value))
		snprintf(buf, size, "%.2f", value);
	else
		snprintf(buf, size, "-");
}
