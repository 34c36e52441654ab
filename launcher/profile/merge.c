/*
 * See merge.h. Every part of a profile is looked up by content in the sum, and made if it is not there. In the end the
 * sum itself is added to an empty one, in the order of its contents (merge_order.c).
 */
#include "launcher/profile/merge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "launcher/base/search.h"
#include "launcher/profile/facts.h"
#include "launcher/profile/merge_impl.h"

#define FIRST_ADDRESS 0x100000000ULL
#define PAGE 4096ULL

/* From the ids of the profile that is being added to those of the sum. */
struct adding {
	struct csink_merge *m;
	const struct csink_profile *p;
	int64_t run; /* its number; -1: it is not kept apart */
	csink_str_t *strings;
	uint32_t *mappings, *functions, *locations, *stacks, *labels, *types;
	unsigned char *key; /* room for the largest location's content */
	uint32_t *ids;      /* room for the longest stack */
	int64_t *values;    /* one of each type of the sum */
};

struct csink_merge *csink_merge_create(uint32_t flags)
{
	struct csink_merge *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->flags = flags;
	m->sum = csink_profile_create();
	m->mapping_keys = csink_profile_create();
	m->location_keys = csink_profile_create();
	m->facts = csink_profile_create();
	if (m->sum && m->mapping_keys && m->location_keys && m->facts)
		return m;
	csink_merge_free(m);
	return NULL;
}

void csink_merge_free(struct csink_merge *m)
{
	if (!m)
		return;
	csink_profile_free(m->sum);
	csink_profile_free(m->mapping_keys);
	csink_profile_free(m->location_keys);
	csink_profile_free(m->facts);
	free(m);
}

int csink_merge_compare_texts(const struct csink_profile *p, csink_str_t a, csink_str_t b)
{
	return a == b ? 0 : strcmp(csink_profile_text(p, a), csink_profile_text(p, b));
}

int csink_merge_compare_mappings(const struct csink_profile *p, uint32_t a, uint32_t b)
{
	const struct csink_profile_mapping *left = &p->mappings[a], *right = &p->mappings[b];
	int order = csink_merge_compare_texts(p, left->file, right->file)
			    ?: csink_merge_compare_texts(p, left->build_id, right->build_id);

	return order ?: CSINK_COMPARE(left->offset, right->offset) ?: CSINK_COMPARE(left->limit, right->limit);
}

/* ---- parts ---- */

static csink_str_t string_of(struct adding *a, csink_str_t id)
{
	if (id && !a->strings[id])
		a->strings[id] = csink_profile_strn(a->m->sum, a->p->strings[id].text, a->p->strings[id].len);
	return a->strings[id];
}

static uint32_t mapping_of(struct adding *a, uint32_t id)
{
	struct csink_profile *sum = a->m->sum;
	struct csink_profile_mapping m = a->p->mappings[id];
	struct {
		csink_str_t file, build_id;
		uint64_t offset, size;
	} key = {.offset = m.offset};

	if (!id || a->mappings[id])
		return a->mappings[id];
	key.file = string_of(a, m.file);
	key.build_id = string_of(a, m.build_id);
	key.size = m.limit > m.start ? m.limit - m.start : 0;
	a->mappings[id] = csink_profile_strn(a->m->mapping_keys, (const char *)&key, sizeof(key));
	if (a->mappings[id] == sum->nr_mappings) {
		m.start = 0;
		m.limit = key.size;
		m.file = key.file;
		m.build_id = key.build_id;
		csink_profile_mapping_add(sum, &m);
		return a->mappings[id];
	}
	csink_profile_mapping_join(&sum->mappings[a->mappings[id]], &m);
	return a->mappings[id];
}

static uint32_t function_of(struct adding *a, uint32_t id)
{
	struct csink_profile_function function = a->p->functions[id];

	if (!id || a->functions[id])
		return a->functions[id];
	function.name = string_of(a, function.name);
	function.system_name = string_of(a, function.system_name);
	function.file = string_of(a, function.file);
	function.language = string_of(a, function.language);
	return a->functions[id] = csink_profile_function_add(a->m->sum, &function);
}

static uint32_t location_of(struct adding *a, uint32_t id)
{
	const struct csink_profile_location *from = &a->p->locations[id];
	struct csink_profile *sum = a->m->sum;
	struct {
		uint64_t address;
		uint32_t mapping, is_folded;
	} head = {.address = from->address, .is_folded = from->is_folded};
	struct csink_profile_line *lines = (struct csink_profile_line *)(a->key + sizeof(head));
	uint32_t i, added;

	if (a->locations[id])
		return a->locations[id];
	head.mapping = mapping_of(a, from->mapping);
	if (head.mapping)
		head.address -= a->p->mappings[from->mapping].start;
	memcpy(a->key, &head, sizeof(head));
	for (i = 0; i < from->nr_lines; i++) {
		lines[i] = a->p->lines[from->first_line + i];
		lines[i].reserved = 0;
		lines[i].function = function_of(a, lines[i].function);
	}
	a->locations[id] = csink_profile_strn(a->m->location_keys, (const char *)a->key,
					      sizeof(head) + from->nr_lines * sizeof(*lines));
	if (a->locations[id] == sum->nr_locations) {
		added = csink_profile_location_add(sum, head.mapping, head.address, lines, from->nr_lines);
		if (added)
			sum->locations[added].is_folded = head.is_folded;
	}
	return a->locations[id];
}

static uint32_t stack_of(struct adding *a, uint32_t id)
{
	const struct csink_profile_range *range = &a->p->stacks[id];
	uint32_t i;

	if (!id || a->stacks[id])
		return a->stacks[id];
	for (i = 0; i < range->nr; i++)
		a->ids[i] = location_of(a, a->p->stack_ids[range->first + i]);
	return a->stacks[id] = csink_profile_stack_add(a->m->sum, a->ids, range->nr);
}

/* ---- labels ---- */

static int compare_labels(const void *a, const void *b, void *context)
{
	const struct csink_profile_label *left = a, *right = b;
	const struct csink_profile *p = context;
	int order = csink_merge_compare_texts(p, left->key, right->key)
			    ?: csink_merge_compare_texts(p, left->str, right->str);

	order = order ?: CSINK_COMPARE(left->num, right->num);
	return order ?: csink_merge_compare_texts(p, left->num_unit, right->num_unit);
}

static bool is_kept(const struct adding *a, const struct csink_profile_label *label)
{
	const char *key = csink_profile_text(a->p, label->key);

	if (a->run >= 0)
		return !strcmp(key, CSINK_LABEL_PSEUDO);
	if (!strcmp(key, CSINK_LABEL_RANK) && !label->str)
		return a->m->flags & CSINK_MERGE_RANKS;
	return a->m->flags & CSINK_MERGE_IDS ||
	       (strcmp(key, CSINK_LABEL_PID) && strcmp(key, CSINK_LABEL_TID) && strcmp(key, CSINK_LABEL_TIME));
}

static uint32_t labels_of(struct adding *a, uint32_t id)
{
	const struct csink_profile_range *range = &a->p->label_sets[id];
	struct csink_profile_label *labels;
	uint32_t i, nr = 0;

	if ((!id && a->run < 0) || a->labels[id])
		return a->labels[id] - !!a->labels[id];
	labels = calloc(range->nr + 1, sizeof(*labels));
	if (!labels) {
		a->m->sum->error = -ENOMEM;
		return 0;
	}
	for (i = 0; i < range->nr; i++) {
		labels[nr] = a->p->labels[range->first + i];
		if (!is_kept(a, &labels[nr]))
			continue;
		labels[nr].key = string_of(a, labels[nr].key);
		labels[nr].str = string_of(a, labels[nr].str);
		labels[nr].num_unit = string_of(a, labels[nr].num_unit);
		labels[nr++].reserved = 0;
	}
	if (a->run >= 0)
		labels[nr++] = (struct csink_profile_label){.key = csink_profile_str(a->m->sum, CSINK_LABEL_RUN),
							    .num = a->run};
	qsort_r(labels, nr, sizeof(*labels), compare_labels, a->m->sum);
	a->labels[id] = csink_profile_labels_add(a->m->sum, labels, nr) + 1;
	free(labels);
	return a->labels[id] - 1;
}

/* ---- types ---- */

/* In an order, if one is given. */
static int add_types(struct adding *a, const uint32_t *order)
{
	struct csink_profile *sum = a->m->sum;
	uint32_t i, k, n;

	for (n = 0; n < a->p->nr_types; n++) {
		csink_str_t name, unit;

		i = order ? order[n] : n;
		name = string_of(a, a->p->types[i].name);
		unit = string_of(a, a->p->types[i].unit);
		for (k = 0; k < sum->nr_types && (sum->types[k].name != name || sum->types[k].unit != unit); k++)
			;
		if (k == sum->nr_types &&
		    csink_profile_type_append(sum, csink_profile_text(sum, name), csink_profile_text(sum, unit)) < 0)
			return -ENOMEM;
		a->types[i] = k;
	}
	return 0;
}

/* Counts of samples come last here: events say more. */
static int compare_types(const struct csink_profile *p, const struct csink_profile_type *a,
			 const struct csink_profile_type *b)
{
	int order =
		!strcmp(csink_profile_text(p, a->name), "samples") - !strcmp(csink_profile_text(p, b->name), "samples");

	order = order ?: csink_merge_compare_texts(p, a->name, b->name);
	return order ?: csink_merge_compare_texts(p, a->unit, b->unit);
}

/* The smallest that is not empty: the same whatever comes first. */
static void take_text(struct csink_profile *sum, csink_str_t *to, csink_str_t from)
{
	if (from && (!*to || csink_merge_compare_texts(sum, from, *to) < 0))
		*to = from;
}

/* What a profile has one of. */
static void add_scalars(struct adding *a)
{
	struct csink_profile *sum = a->m->sum;
	const struct csink_profile *p = a->p;
	struct csink_profile_type period = {string_of(a, p->period_type.name), string_of(a, p->period_type.unit)};

	if (p->time_ns && (!sum->time_ns || p->time_ns < sum->time_ns))
		sum->time_ns = p->time_ns;
	sum->duration_ns = csink_add(sum->duration_ns, p->duration_ns);
	sum->period = CSINK_MAX(sum->period, p->period);
	if (period.name && (!sum->period_type.name || compare_types(sum, &period, &sum->period_type) < 0))
		sum->period_type = period;
	take_text(sum, &sum->drop_frames, string_of(a, p->drop_frames));
	take_text(sum, &sum->keep_frames, string_of(a, p->keep_frames));
	if (p->default_type < p->nr_types) {
		uint32_t type = a->types[p->default_type];

		if (!a->m->is_begun || compare_types(sum, &sum->types[type], &sum->types[sum->default_type]) < 0)
			sum->default_type = type;
		a->m->is_begun = true;
	}
}

/* ---- all together ---- */

static int prepare(struct adding *a, const uint32_t *type_order)
{
	const struct csink_profile *p = a->p;

	a->strings = calloc(p->nr_strings, sizeof(*a->strings));
	a->mappings = calloc(p->nr_mappings, sizeof(*a->mappings));
	a->functions = calloc(p->nr_functions, sizeof(*a->functions));
	a->locations = calloc(p->nr_locations, sizeof(*a->locations));
	a->stacks = calloc(p->nr_stacks, sizeof(*a->stacks));
	a->labels = calloc(p->nr_label_sets, sizeof(*a->labels));
	a->types = calloc(p->nr_types + 1, sizeof(*a->types));
	a->key = calloc(1, 16 + (size_t)csink_profile_most_lines(p) * sizeof(struct csink_profile_line));
	a->ids = calloc((size_t)csink_profile_longest_stack(p) + 1, sizeof(*a->ids));
	if (!a->strings || !a->mappings || !a->functions || !a->locations || !a->stacks || !a->labels || !a->types ||
	    !a->key || !a->ids || add_types(a, type_order))
		return -ENOMEM;
	a->values = calloc(a->m->sum->nr_types + 1, sizeof(*a->values));
	return a->values ? 0 : -ENOMEM;
}

static void release(struct adding *a)
{
	free(a->strings);
	free(a->mappings);
	free(a->functions);
	free(a->locations);
	free(a->stacks);
	free(a->labels);
	free(a->types);
	free(a->key);
	free(a->ids);
	free(a->values);
}

static void add_sample(struct adding *a, uint32_t id)
{
	const struct csink_profile_sample *sample = &a->p->samples[id];
	const int64_t *from = csink_profile_values(a->p, id);

	memset(a->values, 0, a->m->sum->nr_types * sizeof(*a->values));
	for (uint32_t k = 0; k < a->p->nr_types; k++)
		a->values[a->types[k]] = csink_add(a->values[a->types[k]], from[k]);
	csink_profile_sample_add(a->m->sum, stack_of(a, sample->stack), labels_of(a, sample->labels), a->values);
}

static int error_of(const struct csink_merge *m)
{
	return csink_profile_error(m->sum) ?: csink_profile_error(m->mapping_keys) ?: csink_profile_error(m->location_keys);
}

static int add(struct csink_merge *m, const struct csink_profile *p, int64_t run)
{
	CSINK_AUTO(release) struct adding a = {.m = m, .p = p, .run = run};
	uint32_t program;
	int err = prepare(&a, NULL);

	if (err)
		return err;
	add_scalars(&a);
	for (uint32_t i = 0; i < p->nr_samples && !csink_profile_error(m->sum); i++)
		add_sample(&a, i);
	program = p->nr_mappings > 1 ? mapping_of(&a, 1) : 0;
	if (program && (!m->program || csink_merge_compare_mappings(m->sum, program, m->program) < 0))
		m->program = program;
	return csink_merge_facts(m, p) ?: error_of(m);
}

int csink_merge_add(struct csink_merge *m, const struct csink_profile *p)
{
	return add(m, p, -1);
}

int csink_merge_add_run(struct csink_merge *m, const struct csink_profile *p, uint32_t run)
{
	return add(m, p, run);
}

/* ---- the result ---- */

/* Objects one behind the other in the address space. */
static void place_mappings(struct csink_profile *p)
{
	uint64_t next = FIRST_ADDRESS;

	for (uint32_t i = 1; i < p->nr_mappings; i++) {
		p->mappings[i].start = next;
		p->mappings[i].limit += next;
		next = CSINK_ALIGN_UP(p->mappings[i].limit + 1, PAGE);
	}
	for (uint32_t i = 1; i < p->nr_locations; i++)
		p->locations[i].address += p->mappings[p->locations[i].mapping].start;
}

/* Add the parts of a sum to an empty one, each kind in its order. */
static void lay_out(struct adding *a, const struct csink_merge_ranks *ranks, const struct csink_profile *facts)
{
	struct csink_profile *out = a->m->sum;

	for (uint32_t i = 0; i < ranks->mappings.nr; i++)
		mapping_of(a, ranks->mappings.ids[i]);
	for (uint32_t i = 0; i < ranks->functions.nr; i++)
		function_of(a, ranks->functions.ids[i]);
	for (uint32_t i = 0; i < ranks->locations.nr; i++)
		location_of(a, ranks->locations.ids[i]);
	for (uint32_t i = 0; i < ranks->samples.nr && !csink_profile_error(out); i++)
		add_sample(a, ranks->samples.ids[i]);
	for (uint32_t i = 0; i < facts->nr_comments; i++)
		csink_profile_comment_add(out, csink_profile_str(out, csink_profile_text(facts, facts->comments[i])));
	add_scalars(a);
	place_mappings(out);
}

int csink_merge_finish(const struct csink_merge *m, struct csink_profile **out)
{
	struct csink_merge *ordered = csink_merge_create(CSINK_MERGE_IDS | CSINK_MERGE_RANKS);
	CSINK_AUTO(release) struct adding a = {.m = ordered, .p = m->sum, .run = -1};
	struct csink_merge_ranks ranks;
	int err = csink_merge_rank(m, &ranks) ?: (ordered ? 0 : -ENOMEM);

	err = err ?: prepare(&a, ranks.types.ids);
	if (!err) {
		lay_out(&a, &ranks, m->facts);
		err = error_of(ordered);
	}
	if (!err) {
		*out = ordered->sum;
		ordered->sum = NULL;
	}
	csink_merge_ranks_free(&ranks);
	csink_merge_free(ordered);
	return err;
}
