/*
 * Lays a sum out by content: every kind of part in its order (merge_rank.c), without what nothing refers to any more,
 * and objects one behind the other in the address space.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/grow.h"
#include "launcher/profile/merge_impl.h"

#define FIRST_ADDRESS 0x100000000ULL
#define PAGE 4096ULL

struct ordering {
	const struct csink_merge *m;
	const struct csink_profile *sum;
	struct csink_profile *out;
	struct csink_merge_ranks ranks;
	uint32_t *out_mappings, *out_functions, *out_locations; /* ids there, by ids in the sum */
};

static csink_str_t copy_text(struct ordering *o, csink_str_t id)
{
	return csink_profile_strn(o->out, o->sum->strings[id].text, o->sum->strings[id].len);
}

static bool has_value(const struct ordering *o, uint32_t sample)
{
	const int64_t *values = csink_profile_values(o->sum, sample);
	uint32_t i;

	for (i = 0; i < o->sum->nr_types && !values[i]; i++)
		;
	return i < o->sum->nr_types;
}

/* Mark what samples lead to, in the arrays that ids of the output go into. */
static void mark(struct ordering *o)
{
	const struct csink_profile *sum = o->sum;
	uint32_t i, k, line;

	for (i = 0; i < sum->nr_samples; i++) {
		const struct csink_profile_range *stack = &sum->stacks[sum->samples[i].stack];

		if (!has_value(o, i))
			continue;
		for (k = 0; k < stack->nr; k++)
			o->out_locations[sum->stack_ids[stack->first + k]] = 1;
	}
	for (i = 1; i < sum->nr_locations; i++) {
		const struct csink_profile_location *location = &sum->locations[i];

		if (!o->out_locations[i])
			continue;
		o->out_mappings[location->mapping] = 1;
		for (line = 0; line < location->nr_lines; line++)
			o->out_functions[sum->lines[location->first_line + line].function] = 1;
	}
	o->out_mappings[0] = 0;
	o->out_functions[0] = 0;
	if (o->m->program)
		o->out_mappings[o->m->program] = 1;
}

static void lay_out_mappings(struct ordering *o)
{
	uint64_t next = FIRST_ADDRESS;
	uint32_t i, id;

	for (i = 0; i < o->ranks.mappings.nr; i++) {
		struct csink_profile_mapping m;

		id = o->ranks.mappings.ids[i];
		if (!o->out_mappings[id])
			continue;
		m = o->sum->mappings[id];
		m.start = next;
		m.limit += next;
		next = CSINK_ALIGN_UP(m.limit + 1, PAGE);
		m.file = copy_text(o, m.file);
		m.build_id = copy_text(o, m.build_id);
		o->out_mappings[id] = csink_profile_mapping_add(o->out, &m);
	}
}

static void lay_out_functions(struct ordering *o)
{
	uint32_t i, id;

	for (i = 0; i < o->ranks.functions.nr; i++) {
		struct csink_profile_function function;

		id = o->ranks.functions.ids[i];
		if (!o->out_functions[id])
			continue;
		function = o->sum->functions[id];
		function.name = copy_text(o, function.name);
		function.system_name = copy_text(o, function.system_name);
		function.file = copy_text(o, function.file);
		o->out_functions[id] = csink_profile_function_add(o->out, &function);
	}
}

static int lay_out_locations(struct ordering *o)
{
	struct csink_profile_line *lines = NULL;
	uint32_t i, k, id, added, room = 0;

	for (i = 0; i < o->ranks.locations.nr; i++) {
		const struct csink_profile_location *from;
		uint32_t mapping;

		id = o->ranks.locations.ids[i];
		from = &o->sum->locations[id];
		if (!o->out_locations[id])
			continue;
		if (CSINK_GROW_TO(lines, room, from->nr_lines)) {
			free(lines);
			return -ENOMEM;
		}
		for (k = 0; k < from->nr_lines; k++) {
			lines[k] = o->sum->lines[from->first_line + k];
			lines[k].function = o->out_functions[lines[k].function];
		}
		mapping = o->out_mappings[from->mapping];
		added = csink_profile_location_add(o->out, mapping,
						   from->address + (mapping ? o->out->mappings[mapping].start : 0),
						   lines, from->nr_lines);
		if (added)
			o->out->locations[added].is_folded = from->is_folded;
		o->out_locations[id] = added;
	}
	free(lines);
	return 0;
}

static uint32_t lay_out_labels(struct ordering *o, uint32_t set)
{
	const struct csink_profile_range *range = &o->sum->label_sets[set];
	struct csink_profile_label *labels = calloc(range->nr + 1, sizeof(*labels));
	uint32_t i, id;

	if (!labels) {
		o->out->error = -ENOMEM;
		return 0;
	}
	for (i = 0; i < range->nr; i++) {
		labels[i] = o->sum->labels[range->first + i];
		labels[i].key = copy_text(o, labels[i].key);
		labels[i].str = copy_text(o, labels[i].str);
		labels[i].num_unit = copy_text(o, labels[i].num_unit);
	}
	id = csink_profile_labels_add(o->out, labels, range->nr);
	free(labels);
	return id;
}

static uint32_t lay_out_stack(struct ordering *o, uint32_t stack)
{
	const struct csink_profile_range *range = &o->sum->stacks[stack];
	uint32_t *ids = calloc(range->nr + 1, sizeof(*ids)), i, id;

	if (!ids) {
		o->out->error = -ENOMEM;
		return 0;
	}
	for (i = 0; i < range->nr; i++)
		ids[i] = o->out_locations[o->sum->stack_ids[range->first + i]];
	id = csink_profile_stack_add(o->out, ids, range->nr);
	free(ids);
	return id;
}

static void lay_out_samples(struct ordering *o, int64_t *values)
{
	uint32_t i, k, id;

	for (i = 0; i < o->ranks.samples.nr && !csink_profile_error(o->out); i++) {
		id = o->ranks.samples.ids[i];
		if (!has_value(o, id))
			continue;
		for (k = 0; k < o->sum->nr_types; k++)
			values[k] = csink_profile_values(o->sum, id)[o->ranks.types.ids[k]];
		csink_profile_sample_add(o->out, lay_out_stack(o, o->sum->samples[id].stack),
					 lay_out_labels(o, o->sum->samples[id].labels), values);
	}
}

static int lay_out_types(struct ordering *o)
{
	for (uint32_t i = 0; i < o->sum->nr_types; i++) {
		uint32_t id = o->ranks.types.ids[i];
		const struct csink_profile_type *type = &o->sum->types[id];

		if (csink_profile_type_add(o->out, csink_profile_text(o->sum, type->name),
					   csink_profile_text(o->sum, type->unit)) < 0)
			return -ENOMEM;
		if (id == o->sum->default_type)
			o->out->default_type = i;
	}
	return 0;
}

static void lay_out_rest(struct ordering *o)
{
	const struct csink_profile *facts = o->m->facts, *sum = o->sum;
	uint32_t i;

	for (i = 0; i < facts->nr_comments; i++)
		csink_profile_comment_add(o->out,
					  csink_profile_str(o->out, csink_profile_text(facts, facts->comments[i])));
	o->out->time_ns = sum->time_ns;
	o->out->duration_ns = sum->duration_ns;
	o->out->period = sum->period;
	o->out->period_type.name = copy_text(o, sum->period_type.name);
	o->out->period_type.unit = copy_text(o, sum->period_type.unit);
	o->out->drop_frames = copy_text(o, sum->drop_frames);
	o->out->keep_frames = copy_text(o, sum->keep_frames);
}

static int lay_out(struct ordering *o)
{
	int64_t *values = calloc(o->sum->nr_types + 1, sizeof(*values));
	int err = -ENOMEM;

	o->out = csink_profile_create();
	o->out_mappings = calloc(o->sum->nr_mappings, sizeof(*o->out_mappings));
	o->out_functions = calloc(o->sum->nr_functions, sizeof(*o->out_functions));
	o->out_locations = calloc(o->sum->nr_locations, sizeof(*o->out_locations));
	if (values && o->out && o->out_mappings && o->out_functions && o->out_locations)
		err = lay_out_types(o);
	if (!err) {
		mark(o);
		lay_out_mappings(o);
		lay_out_functions(o);
		err = lay_out_locations(o);
	}
	if (!err) {
		lay_out_samples(o, values);
		lay_out_rest(o);
		err = csink_profile_error(o->out);
	}
	free(values);
	return err;
}

int csink_merge_finish(const struct csink_merge *m, struct csink_profile **out)
{
	struct ordering o = {.m = m, .sum = m->sum};
	int err = csink_merge_rank(m, &o.ranks);

	if (!err)
		err = lay_out(&o);
	csink_merge_ranks_free(&o.ranks);
	free(o.out_mappings);
	free(o.out_functions);
	free(o.out_locations);
	if (err)
		csink_profile_free(o.out);
	else
		*out = o.out;
	return err;
}
