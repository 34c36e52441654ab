/* Profiles of several runs in one: see keep_runs.h. */
#include "launcher/gate/keep_runs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/grow.h"
#include "launcher/profile/facts.h"
#include "launcher/profile/merge.h"

/* From ids of one profile to those of the other. */
struct keep {
	struct csink_profile *to;
	const struct csink_profile *from;
	uint32_t *mappings, *functions, *locations, *stacks;
	int64_t *values;
	uint32_t *types; /* of each type of from: its index in to */
};

static csink_str_t text(struct keep *k, csink_str_t id)
{
	return csink_profile_str(k->to, csink_profile_text(k->from, id));
}

/* ---- what the first run gives ---- */

static int copy_head(struct keep *k)
{
	struct csink_profile *to = k->to;
	const struct csink_profile *from = k->from;

	for (uint32_t i = 0; i < from->nr_types; i++) {
		if (csink_profile_type_add(to, csink_profile_text(from, from->types[i].name),
					   csink_profile_text(from, from->types[i].unit)) < 0)
			return -ENOMEM;
	}
	to->default_type = from->default_type;
	to->period = from->period;
	to->period_type.name = text(k, from->period_type.name);
	to->period_type.unit = text(k, from->period_type.unit);
	to->time_ns = from->time_ns;
	return 0;
}

static int find_types(struct keep *k)
{
	for (uint32_t i = 0; i < k->from->nr_types; i++) {
		int type = csink_profile_type_find(k->to, csink_profile_text(k->from, k->from->types[i].name));

		if (type < 0)
			return -EINVAL;
		k->types[i] = (uint32_t)type;
	}
	return 0;
}

/* ---- places ---- */

/* The same object is one mapping, wherever each run had it: addresses are moved to where the first had it. */
static void map_mappings(struct keep *k)
{
	for (uint32_t i = 1; i < k->from->nr_mappings; i++) {
		struct csink_profile_mapping m = k->from->mappings[i];

		m.file = text(k, m.file);
		m.build_id = text(k, m.build_id);
		for (uint32_t t = 1; t < k->to->nr_mappings && !k->mappings[i]; t++) {
			if (k->to->mappings[t].file == m.file && k->to->mappings[t].build_id == m.build_id &&
			    k->to->mappings[t].offset == m.offset)
				k->mappings[i] = t;
		}
		if (!k->mappings[i])
			k->mappings[i] = csink_profile_mapping_add(k->to, &m);
	}
}

static void map_functions(struct keep *k)
{
	for (uint32_t i = 1; i < k->from->nr_functions; i++) {
		struct csink_profile_function f = k->from->functions[i];

		f.name = text(k, f.name);
		f.system_name = text(k, f.system_name);
		f.file = text(k, f.file);
		k->functions[i] = csink_profile_function_add(k->to, &f);
	}
}

/* Locations of to by mapping and address, sorted, for finding those that are there already. */
struct place {
	uint64_t address;
	uint32_t mapping, location, first_function;
	int64_t first_line; /* interpreted functions have no address */
};

static int compare_places(const void *a, const void *b)
{
	const struct place *left = a, *right = b;

	if (left->address != right->address)
		return left->address < right->address ? -1 : 1;
	if (left->mapping != right->mapping)
		return left->mapping < right->mapping ? -1 : 1;
	if (left->first_function != right->first_function)
		return left->first_function < right->first_function ? -1 : 1;
	return left->first_line < right->first_line ? -1 : left->first_line > right->first_line;
}

static struct csink_profile_line first_line(const struct csink_profile *p,
					    const struct csink_profile_location *location)
{
	return location->nr_lines ? p->lines[location->first_line] : (struct csink_profile_line){0};
}

static void map_location(struct keep *k, uint32_t id, const struct place *known, uint32_t nr_known)
{
	const struct csink_profile_location *location = &k->from->locations[id];
	uint32_t mapping = location->mapping < k->from->nr_mappings ? k->mappings[location->mapping] : 0;
	struct csink_profile_line lines[256];
	uint32_t nr = CSINK_MIN(location->nr_lines, (uint32_t)CSINK_ARRAY_SIZE(lines));
	struct place place = {.address = location->address, .mapping = mapping}, *found;

	if (mapping)
		place.address += k->to->mappings[mapping].start - k->from->mappings[location->mapping].start;
	place.first_function = k->functions[first_line(k->from, location).function];
	place.first_line = first_line(k->from, location).line;
	found = bsearch(&place, known, nr_known, sizeof(place), compare_places);
	if (found) {
		k->locations[id] = found->location;
		return;
	}
	for (uint32_t i = 0; i < nr; i++) {
		lines[i] = k->from->lines[location->first_line + i];
		lines[i].function = k->functions[lines[i].function];
	}
	k->locations[id] = csink_profile_location_add(k->to, mapping, place.address, lines, nr);
}

static int map_locations(struct keep *k)
{
	uint32_t nr = k->to->nr_locations;
	struct place *known = calloc(nr + 1, sizeof(*known));

	if (!known)
		return -ENOMEM;
	for (uint32_t i = 1; i < nr; i++) {
		const struct csink_profile_location *location = &k->to->locations[i];

		known[i - 1] = (struct place){location->address, location->mapping, i,
					      first_line(k->to, location).function, first_line(k->to, location).line};
	}
	nr = nr ? nr - 1 : 0;
	qsort(known, nr, sizeof(*known), compare_places);
	for (uint32_t i = 1; i < k->from->nr_locations; i++)
		map_location(k, i, known, nr);
	free(known);
	return 0;
}

static int map_stacks(struct keep *k)
{
	uint32_t *ids = NULL, cap = 0;

	for (uint32_t i = 1; i < k->from->nr_stacks; i++) {
		const struct csink_profile_range *stack = &k->from->stacks[i];

		if (CSINK_GROW_TO(ids, cap, stack->nr)) {
			free(ids);
			return -ENOMEM;
		}
		for (uint32_t n = 0; n < stack->nr; n++)
			ids[n] = k->locations[k->from->stack_ids[stack->first + n]];
		k->stacks[i] = csink_profile_stack_add(k->to, ids, stack->nr);
	}
	free(ids);
	return 0;
}

/* ---- samples ---- */

/* The run, and whether it is a sample at all. */
static uint32_t labels_of(struct keep *k, uint32_t set, uint32_t run)
{
	csink_str_t key = csink_profile_str_find(k->from, CSINK_LABEL_PSEUDO);
	const struct csink_profile_label *pseudo = csink_profile_label_find(k->from, set, key);
	struct csink_profile_label labels[2] = {{.key = csink_profile_str(k->to, CSINK_LABEL_RUN), .num = run}};

	if (pseudo)
		labels[1] = (struct csink_profile_label){.key = text(k, key), .str = text(k, pseudo->str)};
	return csink_profile_labels_add(k->to, labels, pseudo ? 2 : 1);
}

static void add_samples(struct keep *k, uint32_t run)
{
	for (uint32_t i = 0; i < k->from->nr_samples; i++) {
		const struct csink_profile_sample *sample = &k->from->samples[i];
		const int64_t *values = csink_profile_values(k->from, i);

		memset(k->values, 0, k->to->nr_types * sizeof(*k->values));
		for (uint32_t t = 0; t < k->from->nr_types; t++)
			k->values[k->types[t]] = values[t];
		csink_profile_sample_add(k->to, k->stacks[sample->stack], labels_of(k, sample->labels, run), k->values);
	}
	k->to->duration_ns += k->from->duration_ns;
}

int csink_gate_keep(struct csink_profile *to, const struct csink_profile *from, uint32_t run)
{
	struct keep k = {.to = to, .from = from};
	int err = 0;

	k.mappings = calloc(from->nr_mappings + 1, sizeof(uint32_t));
	k.functions = calloc(from->nr_functions + 1, sizeof(uint32_t));
	k.locations = calloc(from->nr_locations + 1, sizeof(uint32_t));
	k.stacks = calloc(from->nr_stacks + 1, sizeof(uint32_t));
	k.types = calloc(from->nr_types + 1, sizeof(uint32_t));
	if (!k.mappings || !k.functions || !k.locations || !k.stacks || !k.types)
		err = -ENOMEM;
	if (!err && !to->nr_types)
		err = copy_head(&k);
	if (!err)
		err = find_types(&k);
	k.values = err ? NULL : calloc(to->nr_types + 1, sizeof(int64_t));
	if (!err) {
		map_mappings(&k);
		map_functions(&k);
		err = map_locations(&k);
	}
	if (!err)
		err = k.values ? map_stacks(&k) : -ENOMEM;
	if (!err) {
		add_samples(&k, run);
		err = csink_merge_comments(to, from);
	}
	free(k.mappings);
	free(k.functions);
	free(k.locations);
	free(k.stacks);
	free(k.types);
	free(k.values);
	return err ? err : csink_profile_error(to);
}
