/* The order of a sum's parts by content: what refers to others is ordered by their places. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "launcher/profile/merge_impl.h"

typedef int (*compare_fn)(const void *a, const void *b, void *context);

static int rank(struct csink_merge_ranks *o, struct csink_ranks *r, uint32_t nr, compare_fn compare)
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

#define ORDER(a, b)                                                                                                    \
	do {                                                                                                           \
		if ((a) != (b))                                                                                        \
			return (a) < (b) ? -1 : 1;                                                                     \
	} while (0)

static int compare_strings(const void *a, const void *b, void *context)
{
	const struct csink_merge_ranks *o = context;
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
	const struct csink_merge_ranks *o = context;
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

	ORDER(left != 0, right != 0);
	ORDER(left != o->m->program, right != o->m->program);
	return csink_merge_compare_mappings(o->sum, left, right);
}

static int compare_functions(const void *a, const void *b, void *context)
{
	const struct csink_merge_ranks *o = context;
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
	const struct csink_merge_ranks *o = context;
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
	const struct csink_merge_ranks *o = context;
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
	const struct csink_merge_ranks *o = context;
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
	const struct csink_merge_ranks *o = context;
	const struct csink_profile_sample *left = &o->sum->samples[*(const uint32_t *)a],
					  *right = &o->sum->samples[*(const uint32_t *)b];

	ORDER(o->stacks.of[left->stack], o->stacks.of[right->stack]);
	ORDER(o->labels.of[left->labels], o->labels.of[right->labels]);
	return 0;
}

/* Sample counts come first, as everywhere. */
static int compare_types(const void *a, const void *b, void *context)
{
	const struct csink_merge_ranks *o = context;
	const struct csink_profile_type *left = &o->sum->types[*(const uint32_t *)a],
					*right = &o->sum->types[*(const uint32_t *)b];

	ORDER(strcmp(csink_profile_text(o->sum, left->name), "samples") != 0,
	      strcmp(csink_profile_text(o->sum, right->name), "samples") != 0);
	ORDER(o->strings.of[left->name], o->strings.of[right->name]);
	ORDER(o->strings.of[left->unit], o->strings.of[right->unit]);
	return 0;
}

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
	return 0;
}

void csink_merge_ranks_free(struct csink_merge_ranks *o)
{
	struct csink_ranks *all[] = {&o->strings, &o->mappings, &o->functions, &o->locations,
				     &o->stacks,  &o->labels,   &o->samples,   &o->types};

	for (uint32_t i = 0; i < CSINK_ARRAY_SIZE(all); i++) {
		free(all[i]->of);
		free(all[i]->ids);
	}
}
