/* See interpreted.h. Runs on the caller's thread. */
#include "launcher/profile/interpreted.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "launcher/base/search.h"
#include "launcher/profile/match_functions.h"

#define MAX_NAME 8192

/* ---- what a profile has ---- */

/* Mark a profile's interpreted functions. Returns how many there are. */
static uint32_t mark(const struct csink_profile *p, uint32_t *of)
{
	uint32_t nr = 0;

	for (uint32_t id = 1; id < p->nr_locations; id++) {
		const struct csink_profile_location *location = &p->locations[id];

		for (uint32_t k = location->first_line; k < location->first_line + location->nr_lines; k++) {
			uint32_t *function = &of[p->lines[k].function];

			if (!*function && csink_is_interpreted(p, location->mapping, p->lines[k].function))
				nr += *function = 1;
		}
	}
	return nr;
}

uint32_t csink_outermost_interpreted(const struct csink_profile *p, uint32_t stack)
{
	const struct csink_profile_range *range = &p->stacks[stack];
	uint32_t nr = range->nr;

	while (nr && !csink_is_interpreted_location(p, p->stack_ids[range->first + nr - 1]))
		nr--;
	return nr;
}

uint32_t csink_top_level(const struct csink_profile *p, uint32_t stack)
{
	const struct csink_profile_range *range = &p->stacks[stack];

	for (uint32_t i = range->nr; i-- > 0;) {
		const struct csink_profile_location *location = &p->locations[p->stack_ids[range->first + i]];
		uint32_t function = location->nr_lines ? p->lines[location->first_line].function : 0;

		if (csink_is_interpreted(p, location->mapping, function) &&
		    !strcmp(csink_profile_text(p, p->functions[function].name), "<module>"))
			return p->stack_ids[range->first + i];
	}
	return 0;
}

/* The file of the top level below which most of the profile was spent; NULL: none. */
static const char *find_script(const struct csink_profile *p)
{
	CSINK_AUTO_FREE double *weights = calloc(CSINK_MAX(p->nr_functions, 1), sizeof(*weights));
	uint32_t best = 0;

	for (uint32_t i = 0; weights && p->nr_types && i < p->nr_samples; i++) {
		uint32_t location = csink_top_level(p, p->samples[i].stack);
		uint32_t function = location ? p->lines[p->locations[location].first_line].function : 0;

		weights[function] += (double)csink_profile_values(p, i)[p->default_type];
		best = function && (!best || weights[function] > weights[best]) ? function : best;
	}
	return best ? csink_profile_text(p, p->functions[best].file) : NULL;
}

/* ---- all together ---- */

struct building {
	struct csink_interpreted *found;
	const struct csink_profile *const *profiles;
	uint32_t nr_profiles;
	struct csink_place *places;
	uint32_t nr, *same, *file;
};

static int compare_functions(const void *a, const void *b)
{
	const struct csink_interpreted_function *const *left = a, *const *right = b;

	return CSINK_COMPARE((*left)->path, (*right)->path) ?: CSINK_COMPARE((*left)->name, (*right)->name);
}

/* Functions of one name in one file get their lines. */
static int number_names(struct csink_interpreted *found)
{
	CSINK_AUTO_FREE struct csink_interpreted_function **sorted = calloc((size_t)found->nr + 1, sizeof(*sorted));
	char text[MAX_NAME];
	uint32_t i, k;

	if (!sorted)
		return -ENOMEM;
	for (i = 0; i < found->nr; i++)
		sorted[i] = &found->all[i];
	qsort(sorted, found->nr, sizeof(*sorted), compare_functions);
	for (i = 0; i < found->nr; i = k) {
		for (k = i + 1; k < found->nr && !compare_functions(&sorted[i], &sorted[k]);)
			k++;
		for (uint32_t n = i; k - i > 1 && n < k; n++) {
			snprintf(text, sizeof(text), "%.8000s:%" PRId64,
				 csink_profile_text(found->names, sorted[n]->name), sorted[n]->line);
			sorted[n]->name = csink_profile_str(found->names, text);
		}
	}
	return csink_profile_error(found->names);
}

/* Each class of places becomes a function; the last of its places that has a line, which is the
 * latest version's, describes it.
 */
static int make_functions(struct building *b)
{
	struct csink_interpreted *found = b->found;
	CSINK_AUTO_FREE uint32_t *number = calloc((size_t)b->nr + 1, sizeof(*number));
	uint32_t at = 0;

	found->all = calloc((size_t)b->nr + 1, sizeof(*found->all));
	if (!number || !found->all)
		return -ENOMEM;
	for (uint32_t i = 0; i < b->nr; i++) {
		uint32_t *of = &number[b->same[i]];

		if (!*of)
			*of = ++found->nr;
		else if (b->places[i].line <= 0)
			continue; /* what describes it may have a line */
		found->all[*of - 1] = (struct csink_interpreted_function){
			.name = csink_profile_str(found->names, b->places[i].name),
			.path = csink_profile_str(found->names, b->places[b->file[i]].path),
			.line = b->places[i].line,
		};
	}
	for (uint32_t s = 0; s < b->nr_profiles; s++) {
		for (uint32_t f = 1; f < b->profiles[s]->nr_functions; f++)
			found->of[s][f] = found->of[s][f] ? number[b->same[at++]] : 0;
	}
	return number_names(found);
}

static int take_places(struct building *b)
{
	uint64_t nr = 0;

	for (uint32_t s = 0; s < b->nr_profiles; s++) {
		b->found->of[s] = calloc(CSINK_MAX(b->profiles[s]->nr_functions, 1), sizeof(uint32_t));
		if (!b->found->of[s])
			return -ENOMEM;
		nr += mark(b->profiles[s], b->found->of[s]);
	}
	if (!nr)
		return 0;
	b->places = calloc(nr, sizeof(*b->places));
	b->same = calloc(nr, sizeof(*b->same));
	b->file = calloc(nr, sizeof(*b->file));
	if (!b->places || !b->same || !b->file)
		return -ENOMEM;
	for (uint32_t s = 0; s < b->nr_profiles; s++) {
		const struct csink_profile *p = b->profiles[s];

		for (uint32_t f = 1; f < p->nr_functions; f++) {
			if (b->found->of[s][f])
				b->places[b->nr++] = (struct csink_place){csink_profile_text(p, p->functions[f].file),
									  csink_profile_text(p, p->functions[f].name),
									  p->functions[f].start_line, (int)s};
		}
	}
	return 0;
}

int csink_interpreted_build(struct csink_interpreted *found, const struct csink_profile *const *profiles, uint32_t nr)
{
	struct building b = {.found = found, .profiles = profiles, .nr_profiles = nr};
	const char *scripts[2] = {NULL, NULL};
	int err;

	*found = (struct csink_interpreted){.names = csink_profile_create(), .nr_profiles = nr};
	memcpy(found->profiles, profiles, nr * sizeof(*profiles));
	err = found->names ? take_places(&b) : -ENOMEM;
	for (uint32_t s = 0; b.nr && nr == 2 && s < nr; s++)
		scripts[s] = find_script(profiles[s]);
	if (b.nr)
		err = err ?: csink_match_places(b.places, b.nr, scripts, b.same, b.file) ?: make_functions(&b);
	free(b.places);
	free(b.same);
	free(b.file);
	if (err)
		csink_interpreted_free(found);
	return err;
}

void csink_interpreted_free(struct csink_interpreted *found)
{
	free(found->of[0]);
	free(found->of[1]);
	free(found->all);
	csink_profile_free(found->names);
	*found = (struct csink_interpreted){0};
}
