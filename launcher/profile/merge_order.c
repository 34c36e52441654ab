/*
 * Lays a sum out by content: every kind of part is sorted, what nothing refers to any more is left out, and objects are
 * put one behind the other in the address space.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "launcher/profile/merge_impl.h"

#define FIRST_ADDRESS 0x100000000ULL
#define PAGE 4096ULL

/* The place of each id among its kind, from 0; and the ids by place. */
struct ranks {
	uint32_t *of, *ids, nr;
};

struct ordering {
	const struct csink_merge *m;
	const struct csink_profile *sum;
	struct csink_profile *out;
	struct ranks strings, mappings, functions, locations, stacks, labels, samples;
	uint32_t *types; /* by place */
	uint32_t *out_mappings, *out_functions, *out_locations;
};

typedef int (*compare_fn)(const void *a, const void *b, void *context);

static int rank(struct ordering *o, struct ranks *r, uint32_t nr, compare_fn compare)
{
	uint32_t i;

	r->of = calloc(nr + 1, sizeof(*r->of));
	r->ids = calloc(nr + 1, sizeof(*r->ids));
	if (!r->of || !r->ids)
		return -ENOMEM;
	r->nr = nr;
	for (i = 0; i < nr; i++)
		r->ids[i] = i;
	qsort_r(r->ids, nr, sizeof(*r->ids), compare, o);
	for (i = 0; i < nr; i++)
		r->of[r->ids[i]] = i;
	return 0;
}

static void release(struct ranks *r)
{
	free(r->of);
	free(r->ids);
}

#define ORDER(a, b)                                                                                                    \
	do {                                                                                                           \
		if ((a) != (b))                                                                                        \
			return (a) < (b) ? -1 : 1;                                                                     \
	} while (0)

static int compare_strings(const void *a, const void *b, void *context)
{
	const struct ordering *o = context;
	const struct csink_profile_string *left = &o->sum->strings[*(const uint32_t *)a],
					  *right = &o->sum->strings[*(const uint32_t *)b];
	int order = memcmp(left->text, right->text, CSINK_MIN(left->len, right->len));

	if (order)
		return order;
	ORDER(left->len, right->len);
	return 0;
}

/* The program first, as readers expect. */
static int compare_mappings(const void *a, const void *b, void *context)
{
	const struct ordering *o = context;
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

	ORDER(left != 0, right != 0);
	ORDER(left != o->m->program, right != o->m->program);
	return csink_merge_compare_mappings(o->sum, left, right);
}

static int compare_functions(const void *a, const void *b, void *context)
{
	const struct ordering *o = context;
	const uint32_t *string = o->strings.of;
	const struct csink_profile_function *left = &o->sum->functions[*(const uint32_t *)a],
					    *right = &o->sum->functions[*(const uint32_t *)b];

	ORDER(string[left->name], string[right->name]);
	ORDER(string[left->system_name], string[right->system_name]);
	ORDER(string[left->file], string[right->file]);
	ORDER(left->start_line, right->start_line);
	return 0;
}

static int compare_locations(const void *a, const void *b, void *context)
{
	const struct ordering *o = context;
	const struct csink_profile_location *left = &o->sum->locations[*(const uint32_t *)a],
					    *right = &o->sum->locations[*(const uint32_t *)b];
	const struct csink_profile_line *left_line = o->sum->lines + left->first_line,
					*right_line = o->sum->lines + right->first_line;
	uint32_t i;

	ORDER(o->mappings.of[left->mapping], o->mappings.of[right->mapping]);
	ORDER(left->address, right->address);
	ORDER(left->nr_lines, right->nr_lines);
	for (i = 0; i < left->nr_lines; i++) {
		ORDER(o->functions.of[left_line[i].function], o->functions.of[right_line[i].function]);
		ORDER(left_line[i].line, right_line[i].line);
	}
	ORDER(left->is_folded, right->is_folded);
	return 0;
}

static int compare_stacks(const void *a, const void *b, void *context)
{
	const struct ordering *o = context;
	const struct csink_profile_range *left = &o->sum->stacks[*(const uint32_t *)a],
					 *right = &o->sum->stacks[*(const uint32_t *)b];
	const uint32_t *left_id = o->sum->stack_ids + left->first, *right_id = o->sum->stack_ids + right->first;
	uint32_t i, nr = CSINK_MIN(left->nr, right->nr);

	for (i = 0; i < nr; i++)
		ORDER(o->locations.of[left_id[i]], o->locations.of[right_id[i]]);
	ORDER(left->nr, right->nr);
	return 0;
}

static int compare_label_sets(const void *a, const void *b, void *context)
{
	const struct ordering *o = context;
	const uint32_t *string = o->strings.of;
	const struct csink_profile_range *left = &o->sum->label_sets[*(const uint32_t *)a],
					 *right = &o->sum->label_sets[*(const uint32_t *)b];
	uint32_t i, nr = CSINK_MIN(left->nr, right->nr);

	for (i = 0; i < nr; i++) {
		const struct csink_profile_label *l = &o->sum->labels[left->first + i],
						 *r = &o->sum->labels[right->first + i];

		ORDER(string[l->key], string[r->key]);
		ORDER(string[l->str], string[r->str]);
		ORDER(l->num, r->num);
		ORDER(string[l->num_unit], string[r->num_unit]);
	}
	ORDER(left->nr, right->nr);
	return 0;
}

static int compare_samples(const void *a, const void *b, void *context)
{
	const struct ordering *o = context;
	const struct csink_profile_sample *left = &o->sum->samples[*(const uint32_t *)a],
					  *right = &o->sum->samples[*(const uint32_t *)b];

	ORDER(o->stacks.of[left->stack], o->stacks.of[right->stack]);
	ORDER(o->labels.of[left->labels], o->labels.of[right->labels]);
	return 0;
}

/* Sample counts come first, as everywhere. */
static int compare_types(const void *a, const void *b, void *context)
{
	const struct ordering *o = context;
	const struct csink_profile_type *left = &o->sum->types[*(const uint32_t *)a],
					*right = &o->sum->types[*(const uint32_t *)b];

	ORDER(strcmp(csink_profile_text(o->sum, left->name), "samples") != 0,
	      strcmp(csink_profile_text(o->sum, right->name), "samples") != 0);
	ORDER(o->strings.of[left->name], o->strings.of[right->name]);
	ORDER(o->strings.of[left->unit], o->strings.of[right->unit]);
	return 0;
}

static int rank_all(struct ordering *o)
{
	const struct csink_profile *sum = o->sum;

	if (rank(o, &o->strings, sum->nr_strings, compare_strings) ||
	    rank(o, &o->mappings, sum->nr_mappings, compare_mappings) ||
	    rank(o, &o->functions, sum->nr_functions, compare_functions) ||
	    rank(o, &o->locations, sum->nr_locations, compare_locations) ||
	    rank(o, &o->stacks, sum->nr_stacks, compare_stacks) ||
	    rank(o, &o->labels, sum->nr_label_sets, compare_label_sets))
		return -ENOMEM;
	return rank(o, &o->samples, sum->nr_samples, compare_samples);
}

/* ---- laying out ---- */

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

		for (k = 0; k < stack->nr && has_value(o, i); k++)
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

	for (i = 0; i < o->mappings.nr; i++) {
		struct csink_profile_mapping m;

		id = o->mappings.ids[i];
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

	for (i = 0; i < o->functions.nr; i++) {
		struct csink_profile_function function;

		id = o->functions.ids[i];
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
	struct csink_profile_line *lines = NULL, *grown;
	uint32_t i, k, id, added, room = 0;

	for (i = 0; i < o->locations.nr; i++) {
		const struct csink_profile_location *from;
		uint32_t mapping;

		id = o->locations.ids[i];
		from = &o->sum->locations[id];
		if (!o->out_locations[id])
			continue;
		if (from->nr_lines > room) {
			room = from->nr_lines * 2;
			grown = reallocarray(lines, room, sizeof(*lines));
			if (!grown) {
				free(lines);
				return -ENOMEM;
			}
			lines = grown;
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

	for (i = 0; i < o->samples.nr && !csink_profile_error(o->out); i++) {
		id = o->samples.ids[i];
		if (!has_value(o, id))
			continue;
		for (k = 0; k < o->sum->nr_types; k++)
			values[k] = csink_profile_values(o->sum, id)[o->types[k]];
		csink_profile_sample_add(o->out, lay_out_stack(o, o->sum->samples[id].stack),
					 lay_out_labels(o, o->sum->samples[id].labels), values);
	}
}

static int lay_out_types(struct ordering *o)
{
	const struct csink_profile_type *type;
	uint32_t i;

	for (i = 0; i < o->sum->nr_types; i++)
		o->types[i] = i;
	qsort_r(o->types, o->sum->nr_types, sizeof(*o->types), compare_types, o);
	for (i = 0; i < o->sum->nr_types; i++) {
		type = &o->sum->types[o->types[i]];
		if (csink_profile_type_add(o->out, csink_profile_text(o->sum, type->name),
					   csink_profile_text(o->sum, type->unit)) < 0)
			return -ENOMEM;
		if (o->types[i] == o->sum->default_type)
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
	o->types = calloc(o->sum->nr_types + 1, sizeof(*o->types));
	o->out_mappings = calloc(o->sum->nr_mappings, sizeof(*o->out_mappings));
	o->out_functions = calloc(o->sum->nr_functions, sizeof(*o->out_functions));
	o->out_locations = calloc(o->sum->nr_locations, sizeof(*o->out_locations));
	if (values && o->out && o->types && o->out_mappings && o->out_functions && o->out_locations)
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

int csink_merge_order(const struct csink_merge *m, struct csink_profile **out)
{
	struct ordering o = {.m = m, .sum = m->sum};
	int err = rank_all(&o);

	if (!err)
		err = lay_out(&o);
	release(&o.strings);
	release(&o.mappings);
	release(&o.functions);
	release(&o.locations);
	release(&o.stacks);
	release(&o.labels);
	release(&o.samples);
	free(o.types);
	free(o.out_mappings);
	free(o.out_functions);
	free(o.out_locations);
	if (err)
		csink_profile_destroy(o.out);
	else
		*out = o.out;
	return err;
}
