/*
 * Adds samples up by row (report_table.h, rows.h). A row's stamp says whether a sample was counted there already, which
 * is what keeps recursion from counting twice.
 */
#include "launcher/output/report_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "launcher/base/search.h"
#include "launcher/profile/facts.h"
#include "launcher/profile/profile.h"

/* ---- adding up ---- */

static void add_total(struct csink_row *row, uint32_t sample, int64_t value)
{
	if (row->stamp != sample + 1)
		row->total = csink_add(row->total, value);
	row->stamp = sample + 1;
}

/* The row that the sample's own time goes to, after the totals of all; NULL: none. */
static struct csink_row *add_totals(struct csink_report_table *table, const struct csink_profile *p, uint32_t sample,
				    int64_t value)
{
	const struct csink_profile_range *stack = &p->stacks[p->samples[sample].stack];
	const struct csink_rows *keys = &table->keys;

	if (keys->of_labels) {
		struct csink_row *row = &table->rows[keys->of_labels[p->samples[sample].labels]];

		add_total(row, sample, value);
		return row;
	}
	CSINK_EACH_ROW(keys, p, stack, at)
	add_total(&table->rows[*at], sample, value);
	return stack->nr ? &table->rows[keys->ids[keys->spans[p->stack_ids[stack->first]].first]] : NULL;
}

static void add_sample(struct csink_report_table *table, const struct csink_profile *p, uint32_t type, uint32_t sample,
		       bool is_pseudo)
{
	const int64_t *values = csink_profile_values(p, sample);
	struct csink_row *row = add_totals(table, p, sample, values[type]);

	for (uint32_t i = 0; i < p->nr_types; i++) {
		table->sums[i] = csink_add(table->sums[i], values[i]);
		table->pseudo_sums[i] = csink_add(table->pseudo_sums[i], is_pseudo ? values[i] : 0);
		if (row)
			row->extra[i] = csink_add(row->extra[i], values[i]);
	}
	if (row)
		row->is_pseudo |= is_pseudo && !table->keys.of_labels;
}

/* ---- the table ---- */

static int compare_rows(const void *a, const void *b)
{
	const struct csink_row *left = a, *right = b;
	int order = CSINK_COMPARE(right->first, left->first) ?: CSINK_COMPARE(right->self, left->self)
							      ?: CSINK_COMPARE(right->total, left->total);

	return order ?: strcmp(left->name, right->name) ?: strcmp(left->module, right->module);
}

static int build(struct csink_report_table *table, const struct csink_profile *p, uint32_t type)
{
	csink_str_t pseudo = csink_profile_str_find(p, CSINK_LABEL_PSEUDO);

	table->nr_rows = table->keys.nr_keys;
	table->sums = calloc(p->nr_types, sizeof(*table->sums));
	table->pseudo_sums = calloc(p->nr_types, sizeof(*table->pseudo_sums));
	table->rows = calloc(table->nr_rows + 1, sizeof(*table->rows));
	table->extras = calloc(table->nr_rows + 1, p->nr_types * sizeof(*table->extras));
	if (!table->sums || !table->pseudo_sums || !table->rows || !table->extras)
		return -ENOMEM;
	for (uint32_t i = 0; i < table->nr_rows; i++) {
		const struct csink_row_key *key = &table->keys.keys[i];

		table->rows[i] = (struct csink_row){.name = key->name,
						    .module = key->short_module,
						    .file = key->file,
						    .line = key->line,
						    .is_inlined = key->seen_inlined && !key->seen_plain,
						    .extra = table->extras + (size_t)i * p->nr_types};
	}
	for (uint32_t i = 0; i < p->nr_samples; i++)
		add_sample(table, p, type, i, csink_profile_label_find(p, p->samples[i].labels, pseudo) != NULL);
	for (uint32_t i = 0; i < table->nr_rows; i++)
		table->rows[i].self = table->rows[i].extra[type];
	qsort(table->rows, table->nr_rows, sizeof(*table->rows), compare_rows);
	return 0;
}

int csink_report_table_build_by(struct csink_report_table *table, const struct csink_profile *p, uint32_t type,
				enum csink_by by)
{
	int err;

	memset(table, 0, sizeof(*table));
	err = p->nr_types ? csink_rows_build(&table->keys, p, by) ?: build(table, p, type) : -EINVAL;
	if (err)
		csink_report_table_free(table);
	return err;
}

void csink_report_table_sort(struct csink_report_table *table, uint32_t type)
{
	for (uint32_t i = 0; i < table->nr_rows; i++)
		table->rows[i].first = table->rows[i].extra[type];
	qsort(table->rows, table->nr_rows, sizeof(*table->rows), compare_rows);
}

void csink_report_table_free(struct csink_report_table *table)
{
	csink_rows_free(&table->keys);
	free(table->rows);
	free(table->sums);
	free(table->pseudo_sums);
	free(table->extras);
	memset(table, 0, sizeof(*table));
}
