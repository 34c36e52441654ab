/*
 * Adds samples up by row (report_table.h, rows.h). A row's stamp says whether a sample was counted there already, which
 * is what keeps recursion from counting twice.
 */
#include "launcher/output/report_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "launcher/base/path.h"
#include "launcher/base/search.h"
#include "launcher/profile/facts.h"
#include "launcher/profile/profile.h"

struct build {
	struct csink_report_table *table;
	const struct csink_profile *p;
	uint32_t type; /* that is added up and sorted by */
	struct csink_rows rows;
	bool *are_pseudo; /* by row */
	struct sum {
		int64_t total;
		uint32_t stamp; /* the last sample that was counted, + 1 */
	} * sums;
	int64_t *selfs; /* nr_types a row */
};

/* ---- adding up ---- */

static void add_total(struct build *b, uint32_t row, uint32_t sample, int64_t value)
{
	if (b->sums[row].stamp == sample + 1)
		return;
	b->sums[row].stamp = sample + 1;
	b->sums[row].total = csink_add(b->sums[row].total, value);
}

/* The row that the sample's own time goes to, after the totals of all; UINT32_MAX: none. */
static uint32_t add_rows(struct build *b, uint32_t sample, int64_t value)
{
	const struct csink_profile *p = b->p;
	const struct csink_profile_range *stack = &p->stacks[p->samples[sample].stack];
	uint32_t self;

	if (b->rows.of_labels) {
		self = b->rows.of_labels[p->samples[sample].labels];
		add_total(b, self, sample, value);
		return self;
	}
	if (!stack->nr)
		return UINT32_MAX;
	self = b->rows.ids[b->rows.spans[p->stack_ids[stack->first]].first];
	CSINK_EACH_ROW(&b->rows, p, stack, at)
	add_total(b, *at, sample, value);
	return self;
}

static void add_sample(struct build *b, uint32_t sample, bool is_pseudo)
{
	const struct csink_profile *p = b->p;
	const int64_t *values = csink_profile_values(p, sample);
	uint32_t i, self = add_rows(b, sample, values[b->type]);

	for (i = 0; i < p->nr_types; i++) {
		b->table->sums[i] = csink_add(b->table->sums[i], values[i]);
		b->table->pseudo_sums[i] = csink_add(b->table->pseudo_sums[i], is_pseudo ? values[i] : 0);
	}
	if (self == UINT32_MAX)
		return;
	b->are_pseudo[self] |= is_pseudo && !b->rows.of_labels;
	for (i = 0; i < p->nr_types; i++) {
		int64_t *sum = &b->selfs[(size_t)self * p->nr_types + i];

		*sum = csink_add(*sum, values[i]);
	}
}

static void add_samples(struct build *b)
{
	csink_str_t pseudo = csink_profile_str_find(b->p, CSINK_LABEL_PSEUDO);

	for (uint32_t i = 0; i < b->p->nr_samples; i++)
		add_sample(b, i, csink_profile_label_find(b->p, b->p->samples[i].labels, pseudo) != NULL);
}

/* ---- the table ---- */

/* Names are copied: what they point into goes. */
static int make_rows(struct build *b)
{
	struct csink_report_table *table = b->table;
	const struct csink_row_key *key;
	struct csink_row *row;
	uint32_t i;

	table->rows = calloc(table->nr_rows + 1, sizeof(*table->rows));
	if (!table->rows)
		return -ENOMEM;
	for (i = 0; i < table->nr_rows; i++) {
		row = &table->rows[i];
		key = &b->rows.keys[i];
		row->module = strdup(csink_base_name(key->module));
		row->name = strdup(key->name);
		if (!row->module || !row->name)
			return -ENOMEM;
		row->is_pseudo = b->are_pseudo[i];
		row->is_inlined = key->seen_inlined && !key->seen_plain;
		row->extra = b->selfs + (size_t)i * b->p->nr_types;
		row->self = row->extra[b->type];
		row->total = b->sums[i].total;
	}
	return 0;
}

static int compare_rows(const void *a, const void *b)
{
	const struct csink_row *left = a, *right = b;
	int order = CSINK_COMPARE(right->self, left->self) ?: CSINK_COMPARE(right->total, left->total);

	return order ?: strcmp(left->name, right->name) ?: strcmp(left->module, right->module);
}

static int build(struct build *b, enum csink_by by)
{
	const struct csink_profile *p = b->p;
	int err = csink_rows_build(&b->rows, p, by);
	size_t nr = b->rows.nr_keys + (size_t)1;

	if (err)
		return err;
	b->table->nr_rows = b->rows.nr_keys;
	b->table->sums = calloc(p->nr_types + 1, sizeof(*b->table->sums));
	b->table->pseudo_sums = calloc(p->nr_types + 1, sizeof(*b->table->pseudo_sums));
	b->sums = calloc(nr, sizeof(*b->sums));
	b->are_pseudo = calloc(nr, sizeof(*b->are_pseudo));
	b->selfs = calloc(nr, CSINK_MAX(p->nr_types, 1) * sizeof(*b->selfs));
	b->table->extras = b->selfs;
	if (!b->table->sums || !b->table->pseudo_sums || !b->sums || !b->are_pseudo || !b->selfs)
		return -ENOMEM;
	add_samples(b);
	if (make_rows(b))
		return -ENOMEM;
	qsort(b->table->rows, b->table->nr_rows, sizeof(*b->table->rows), compare_rows);
	return 0;
}

int csink_report_table_build_by(struct csink_report_table *table, const struct csink_profile *p, uint32_t type,
				enum csink_by by)
{
	struct build b = {.table = table, .p = p, .type = type};
	int err;

	memset(table, 0, sizeof(*table));
	err = build(&b, by);
	csink_rows_free(&b.rows);
	free(b.sums);
	free(b.are_pseudo);
	if (err)
		csink_report_table_free(table);
	return err;
}

void csink_report_table_free(struct csink_report_table *table)
{
	uint32_t i;

	for (i = 0; table->rows && i < table->nr_rows; i++) {
		free(table->rows[i].name);
		free(table->rows[i].module);
	}
	free(table->rows);
	free(table->sums);
	free(table->pseudo_sums);
	free(table->extras);
	memset(table, 0, sizeof(*table));
}
