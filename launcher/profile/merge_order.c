/*
 * The order of a sum's parts by content, in which csink_merge_finish() lays them out: what refers to others is ordered
 * by their places. What nothing refers to any more is left out.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "launcher/base/search.h"
#include "launcher/profile/facts.h"
#include "launcher/profile/merge_impl.h"

typedef int (*compare_fn)(const void *a, const void *b, void *context);

static int rank(struct csink_merge_ranks *o, struct csink_ranks *r, uint32_t nr, compare_fn compare)
{
	r->of = calloc(nr + 1, sizeof(*r->of));
	r->used = calloc(nr + 1, sizeof(*r->used));
	r->ids = csink_sorted(nr, compare, o);
	if (!r->of || !r->ids || !r->used)
		return -ENOMEM;
	r->nr = nr;
	for (uint32_t i = 0; i < nr; i++)
		r->of[r->ids[i]] = i;
	return 0;
}

static int compare_strings(const void *a, const void *b, void *context)
{
	const struct csink_merge_ranks *o = context;
	const struct csink_profile_string *left = &o->sum->strings[*(const uint32_t *)a],
					  *right = &o->sum->strings[*(const uint32_t *)b];

	return memcmp(left->text, right->text, CSINK_MIN(left->len, right->len))
		       ?: CSINK_COMPARE(left->len, right->len);
}

/* The program first, as readers expect. */
static int compare_mappings(const void *a, const void *b, void *context)
{
	const struct csink_merge_ranks *o = context;
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b, program = o->m->program;

	return !right - !left ?: (right == program) - (left == program) ?: csink_merge_compare_mappings(o->sum, left, right);
}

static int compare_functions(const void *a, const void *b, void *context)
{
	const struct csink_merge_ranks *o = context;
	const uint32_t *string = o->strings.of;
	const struct csink_profile_function *left = &o->sum->functions[*(const uint32_t *)a],
					    *right = &o->sum->functions[*(const uint32_t *)b];
	int order = CSINK_COMPARE(string[left->name], string[right->name])
			    ?: CSINK_COMPARE(string[left->system_name], string[right->system_name]);

	order = order ?: CSINK_COMPARE(string[left->file], string[right->file])
			 ?: CSINK_COMPARE(string[left->language], string[right->language]);
	return order ?: CSINK_COMPARE(left->start_line, right->start_line);
}

static int compare_locations(const void *a, const void *b, void *context)
{
	const struct csink_merge_ranks *o = context;
	const struct csink_profile_location *left = &o->sum->locations[*(const uint32_t *)a],
					    *right = &o->sum->locations[*(const uint32_t *)b];
	const struct csink_profile_line *left_line = o->sum->lines + left->first_line,
					*right_line = o->sum->lines + right->first_line;
	const uint32_t *function = o->functions.of;
	int order = CSINK_COMPARE(o->mappings.of[left->mapping], o->mappings.of[right->mapping]);

	order = order ?: CSINK_COMPARE(left->address, right->address) ?: CSINK_COMPARE(left->nr_lines, right->nr_lines);
	for (uint32_t i = 0; i < left->nr_lines && !order; i++)
		order = CSINK_COMPARE(function[left_line[i].function], function[right_line[i].function])
				?: CSINK_COMPARE(left_line[i].line, right_line[i].line);
	return order ?: CSINK_COMPARE(left->is_folded, right->is_folded);
}

static int compare_stacks(const void *a, const void *b, void *context)
{
	const struct csink_merge_ranks *o = context;
	const struct csink_profile_range *left = &o->sum->stacks[*(const uint32_t *)a],
					 *right = &o->sum->stacks[*(const uint32_t *)b];
	const uint32_t *left_id = o->sum->stack_ids + left->first, *right_id = o->sum->stack_ids + right->first;
	int order = 0;

	for (uint32_t i = 0; i < CSINK_MIN(left->nr, right->nr) && !order; i++)
		order = CSINK_COMPARE(o->locations.of[left_id[i]], o->locations.of[right_id[i]]);
	return order ?: CSINK_COMPARE(left->nr, right->nr);
}

static int compare_label_sets(const void *a, const void *b, void *context)
{
	const struct csink_merge_ranks *o = context;
	const uint32_t *string = o->strings.of;
	const struct csink_profile_range *left = &o->sum->label_sets[*(const uint32_t *)a],
					 *right = &o->sum->label_sets[*(const uint32_t *)b];
	int order = 0;

	for (uint32_t i = 0; i < CSINK_MIN(left->nr, right->nr) && !order; i++) {
		const struct csink_profile_label *l = &o->sum->labels[left->first + i],
						 *r = &o->sum->labels[right->first + i];

		order = CSINK_COMPARE(string[l->key], string[r->key]) ?: CSINK_COMPARE(string[l->str], string[r->str]);
		order = order ?: CSINK_COMPARE(l->num, r->num) ?: CSINK_COMPARE(string[l->num_unit], string[r->num_unit]);
	}
	return order ?: CSINK_COMPARE(left->nr, right->nr);
}

static int compare_samples(const void *a, const void *b, void *context)
{
	const struct csink_merge_ranks *o = context;
	const struct csink_profile_sample *left = &o->sum->samples[*(const uint32_t *)a],
					  *right = &o->sum->samples[*(const uint32_t *)b];
	int stacks = CSINK_COMPARE(o->stacks.of[left->stack], o->stacks.of[right->stack]);

	return stacks ?: CSINK_COMPARE(o->labels.of[left->labels], o->labels.of[right->labels]);
}

/* Sample counts come first, as everywhere. */
static int compare_types(const void *a, const void *b, void *context)
{
	const struct csink_merge_ranks *o = context;
	const struct csink_profile_type *left = &o->sum->types[*(const uint32_t *)a],
					*right = &o->sum->types[*(const uint32_t *)b];
	int order = !strcmp(csink_profile_text(o->sum, right->name), "samples") -
		    !strcmp(csink_profile_text(o->sum, left->name), "samples");

	order = order ?: CSINK_COMPARE(o->strings.of[left->name], o->strings.of[right->name]);
	return order ?: CSINK_COMPARE(o->strings.of[left->unit], o->strings.of[right->unit]);
}

/* ---- what samples lead to ---- */

static void mark(struct csink_merge_ranks *o)
{
	const struct csink_profile *sum = o->sum;
	/* The end of a wait has no value, and is needed for the critical path. */
	csink_str_t releaser = o->m->flags & CSINK_MERGE_IDS ? csink_profile_str_find(sum, CSINK_LABEL_RELEASER) : 0;

	for (uint32_t i = 0; i < sum->nr_samples; i++) {
		const struct csink_profile_range *stack = &sum->stacks[sum->samples[i].stack];

		o->samples.used[i] = csink_profile_sample_counts(sum, i) ||
				     (releaser && csink_profile_label_find(sum, sum->samples[i].labels, releaser));
		for (uint32_t k = 0; k < stack->nr && o->samples.used[i]; k++)
			o->locations.used[sum->stack_ids[stack->first + k]] = true;
	}
	for (uint32_t i = 1; i < sum->nr_locations; i++) {
		const struct csink_profile_location *location = &sum->locations[i];

		if (!o->locations.used[i])
			continue;
		o->mappings.used[location->mapping] = true;
		for (uint32_t k = 0; k < location->nr_lines; k++)
			o->functions.used[sum->lines[location->first_line + k].function] = true;
	}
	o->mappings.used[o->m->program] = true;
	o->mappings.used[0] = o->functions.used[0] = false;
}

static void keep_used(struct csink_ranks *r)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < r->nr; i++) {
		if (r->used[r->ids[i]])
			r->ids[nr++] = r->ids[i];
	}
	r->nr = nr;
}

/* ---- all together ---- */

int csink_merge_rank(const struct csink_merge *m, struct csink_merge_ranks *o)
{
	const struct csink_profile *sum = m->sum;

	*o = (struct csink_merge_ranks){.m = m, .sum = sum};
	if (rank(o, &o->strings, sum->nr_strings, compare_strings) ||
	    rank(o, &o->mappings, sum->nr_mappings, compare_mappings) ||
	    rank(o, &o->functions, sum->nr_functions, compare_functions) ||
	    rank(o, &o->locations, sum->nr_locations, compare_locations) ||
	    rank(o, &o->stacks, sum->nr_stacks, compare_stacks) ||
	    rank(o, &o->labels, sum->nr_label_sets, compare_label_sets) ||
	    rank(o, &o->samples, sum->nr_samples, compare_samples) || rank(o, &o->types, sum->nr_types, compare_types))
		return -ENOMEM;
	mark(o);
	keep_used(&o->mappings);
	keep_used(&o->functions);
	keep_used(&o->locations);
	keep_used(&o->samples);
	return 0;
}

void csink_merge_ranks_free(struct csink_merge_ranks *o)
{
	struct csink_ranks *all[] = {&o->strings, &o->mappings, &o->functions, &o->locations,
				     &o->stacks,  &o->labels,   &o->samples,   &o->types};

	for (uint32_t i = 0; i < CSINK_ARRAY_SIZE(all); i++) {
		free(all[i]->of);
		free(all[i]->ids);
		free(all[i]->used);
	}
}
