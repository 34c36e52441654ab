/* A run directory of recordings that a test writes (record.h), and sums of the profile that is made of it. */
#ifndef CSINK_TESTS_COLLECTED_H
#define CSINK_TESTS_COLLECTED_H

#include <stdlib.h>
#include <string.h>

#include "launcher/collect/collect.h"
#include "launcher/profile/profile.h"
#include "tests/unit/record.h"
#include "tests/unit/tap.h"

#define MS 1000000ULL

static char directory[64];

__attribute__((unused)) static void new_directory(void)
{
	strcpy(directory, "/tmp/csink-collect.XXXXXX");
	if (!mkdtemp(directory))
		abort();
}

static void end_directory(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r %s", directory);
	if (system(command))
		abort();
}

/* The sum of a type over the samples that have this label ("pseudo=exit"), or over all (NULL). */
__attribute__((unused)) static int64_t sum(const struct csink_profile *p, const char *type, const char *key,
					   const char *text)
{
	const struct csink_profile_label *label;
	int t = csink_profile_type_find(p, type);
	const struct csink_profile_range *set;
	int64_t total = 0;
	uint32_t i, k;

	for (i = 0; t >= 0 && i < p->nr_samples; i++) {
		set = &p->label_sets[p->samples[i].labels];
		for (k = 0; key && k < set->nr; k++) {
			label = &p->labels[set->first + k];
			if (!strcmp(csink_profile_text(p, label->key), key) &&
			    (label->str ? !strcmp(csink_profile_text(p, label->str), text) : label->num == atoi(text)))
				break;
		}
		if (!key || k < set->nr)
			total += csink_profile_values(p, i)[t];
	}
	return total;
}

/* The sum over the samples whose leaf is this function. */
__attribute__((unused)) static int64_t self(const struct csink_profile *p, const char *type, const char *function)
{
	int t = csink_profile_type_find(p, type);
	const struct csink_profile_location *leaf;
	int64_t total = 0;
	uint32_t i;

	for (i = 0; i < p->nr_samples; i++) {
		leaf = &p->locations[p->stack_ids[p->stacks[p->samples[i].stack].first]];
		if (leaf->nr_lines &&
		    !strcmp(csink_profile_text(p, p->functions[p->lines[leaf->first_line].function].name), function))
			total += csink_profile_values(p, i)[t];
	}
	return total;
}

static struct csink_profile *collect(const struct csink_outside *outside)
{
	struct csink_profile *p = NULL;

	is_num(csink_collect(directory, outside, &p), 0, "the run directory is collected");
	return p ? p : csink_profile_create();
}

#endif
