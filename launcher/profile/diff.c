/* See diff.h. */
#include "launcher/profile/diff.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "include/internal/grow.h"
#include "launcher/base/message.h"
#include "launcher/base/path.h"
#include "launcher/base/search.h"
#include "launcher/profile/short_paths.h"

const char *const csink_per_words[CSINK_NR_PERS] = {"run", "second", "total"};

struct comparing {
	struct csink_diff *diff;
	struct csink_profile *keys; /* contents of rows as strings of bytes; a string's id is the row + 1 */
	uint32_t side, type;
	const struct csink_profile *p;
	struct csink_rows rows;
	uint32_t *ours;   /* of each of its rows: row of the diff + 1 */
	uint32_t *stamps; /* of each row of the diff: the last sample that was counted, + 1 */
	char *text;       /* a stack */
	uint32_t text_size;
};

/* The row + 1 of a name in a module; 0 without memory. */
static uint32_t row_of(struct comparing *c, const char *name, const char *module)
{
	struct csink_diff *diff = c->diff;
	csink_str_t ids[2] = {csink_profile_str(diff->names, name), csink_profile_str(diff->names, module)};
	csink_str_t row = csink_profile_strn(c->keys, (const char *)ids, sizeof(ids));
	struct csink_diff_row added = {.name = csink_profile_text(diff->names, ids[0]),
				       .module = csink_profile_text(diff->names, ids[1])};

	if (row == diff->nr_rows + 1)
		return CSINK_APPEND(diff->rows, diff->nr_rows, diff->cap_rows, added);
	return row;
}

static int map_rows(struct comparing *c)
{
	uint32_t i;

	c->ours = calloc(c->rows.nr_keys + 1, sizeof(*c->ours));
	if (!c->ours)
		return -ENOMEM;
	for (i = 0; i < c->rows.nr_keys; i++) {
		const struct csink_row_key *key = &c->rows.keys[i];
		const char *name = c->rows.by == CSINK_BY_MODULE ? csink_base_name(key->name) : key->name;

		c->ours[i] = row_of(
			c, name, key->is_interpreted || c->rows.of_labels ? key->module : csink_base_name(key->module));
		if (!c->ours[i])
			return -ENOMEM;
	}
	return 0;
}

static void add(int64_t values[2], uint32_t side, int64_t value)
{
	values[side] = csink_add(values[side], value);
}

static int count_rows(struct comparing *c)
{
	uint32_t i;
	int err = map_rows(c);

	c->stamps = err ? NULL : calloc(c->diff->nr_rows + 1ULL, sizeof(*c->stamps));
	if (!c->stamps)
		return -ENOMEM;
	for (i = 0; i < c->p->nr_samples; i++) {
		const struct csink_profile_range *stack = &c->p->stacks[c->p->samples[i].stack];
		int64_t value = csink_profile_values(c->p, i)[c->type];
		bool is_self = true;

		if (c->rows.of_labels) {
			uint32_t row = c->ours[c->rows.of_labels[c->p->samples[i].labels]];

			add(c->diff->rows[row - 1].self, c->side, value);
			add(c->diff->rows[row - 1].total, c->side, value);
			continue;
		}
		CSINK_EACH_ROW(&c->rows, c->p, stack, at)
		{
			uint32_t row = c->ours[*at];

			if (is_self)
				add(c->diff->rows[row - 1].self, c->side, value);
			is_self = false;
			if (c->stamps[row - 1] != i + 1)
				add(c->diff->rows[row - 1].total, c->side, value);
			c->stamps[row - 1] = i + 1;
		}
	}
	return 0;
}

static int append(struct comparing *c, size_t *used, const char *text)
{
	size_t len = strlen(text);

	if (CSINK_GROW_TO(c->text, c->text_size, *used + len + 2))
		return -ENOMEM;
	if (*used)
		c->text[(*used)++] = ';';
	memcpy(c->text + *used, text, len + 1);
	*used += len;
	return 0;
}

static int count_stacks(struct comparing *c)
{
	uint32_t i, k, n, row;

	for (i = 0; i < c->p->nr_samples; i++) {
		const struct csink_profile_range *stack = &c->p->stacks[c->p->samples[i].stack], *span;
		int64_t value = csink_profile_values(c->p, i)[c->type];
		size_t used = 0;

		if (append(c, &used, ""))
			return -ENOMEM;
		for (k = stack->nr; k; k--) {
			span = &c->rows.spans[c->p->stack_ids[stack->first + k - 1]];
			for (n = span->nr; n; n--) {
				if (append(c, &used, c->rows.keys[c->rows.ids[span->first + n - 1]].name))
					return -ENOMEM;
			}
		}
		row = row_of(c, c->text, "");
		if (!row)
			return -ENOMEM;
		add(c->diff->rows[row - 1].self, c->side, value);
		add(c->diff->rows[row - 1].total, c->side, value);
	}
	return 0;
}

static int count_side(struct csink_diff *diff, struct csink_profile *keys, const struct csink_profile *p,
		      const struct csink_interpreted *found, uint32_t side, uint32_t type, enum csink_by by,
		      bool of_stacks)
{
	struct comparing c = {.diff = diff, .keys = keys, .p = p, .side = side, .type = type};
	uint32_t i;
	int err = csink_rows_build_found(&c.rows, p, by, found, side);

	for (i = 0; !err && i < p->nr_samples; i++)
		add(diff->sums, side, csink_profile_values(p, i)[type]);
	if (!err)
		err = of_stacks ? count_stacks(&c) : count_rows(&c);
	csink_rows_free(&c.rows);
	free(c.ours);
	free(c.stamps);
	free(c.text);
	return err ? err : csink_profile_error(diff->names);
}

/* ---- run length ---- */

static int normalise(struct csink_diff *diff, const struct csink_profile *const p[2], enum csink_diff_per per,
		     char *why, size_t why_len)
{
	uint32_t i;

	for (i = 0; i < 2; i++) {
		diff->factors[i] = 1;
		if (per == CSINK_PER_RUN)
			diff->factors[i] = 1.0 / (double)csink_profile_runs(p[i]);
		if (per == CSINK_PER_SECOND && p[i]->duration_ns <= 0)
			return csink_why(-ENODATA, why, why_len,
					 "profile %c has no duration: use --per total or --per run", 'A' + (char)i);
		if (per == CSINK_PER_SECOND)
			diff->factors[i] = 1e9 / (double)p[i]->duration_ns;
	}
	if (per == CSINK_PER_TOTAL && diff->sums[0] && diff->sums[1])
		diff->factors[1] = (double)diff->sums[0] / (double)diff->sums[1];
	return 0;
}

/* ---- order ---- */

static int compare_rows(const void *a, const void *b, void *context)
{
	const struct csink_diff_row *left = a, *right = b;
	bool left_has = left->self[0] || left->self[1], right_has = right->self[0] || right->self[1];
	int order = right_has - left_has; /* those that only call others come last */

	order = order ?: CSINK_COMPARE(fabs(csink_diff_change(context, right)), fabs(csink_diff_change(context, left)));
	return order ?: strcmp(left->name, right->name) ?: strcmp(left->module, right->module);
}

static int shorten_modules(struct csink_diff *diff)
{
	CSINK_AUTO_FREE const char **paths = calloc((size_t)diff->nr_rows + 1, sizeof(*paths));

	if (!paths)
		return -ENOMEM;
	for (uint32_t i = 0; i < diff->nr_rows; i++)
		paths[i] = diff->rows[i].module;
	csink_short_paths(paths, diff->nr_rows);
	for (uint32_t i = 0; i < diff->nr_rows; i++)
		diff->rows[i].module = paths[i];
	return 0;
}

int csink_diff_build(struct csink_diff *diff, const struct csink_profile *const p[2], const uint32_t types[2],
		     enum csink_by by, bool of_stacks, enum csink_diff_per per, char *why, size_t why_len)
{
	CSINK_AUTO(csink_profile_done) struct csink_profile *keys = csink_profile_create();
	CSINK_AUTO(csink_interpreted_free) struct csink_interpreted found = {0};
	int err = by == CSINK_BY_FUNCTION ? csink_interpreted_build(&found, p, 2) : 0;

	*diff = (struct csink_diff){.names = csink_profile_create()};
	if (!keys || !diff->names)
		err = -ENOMEM;
	for (uint32_t i = 0; i < 2 && !err; i++)
		err = count_side(diff, keys, p[i], &found, i, types[i], by, of_stacks);
	err = err ?: by < CSINK_BY_THREAD ? shorten_modules(diff) : 0;
	err = err ? csink_why(err, why, why_len, "no memory") : normalise(diff, p, per, why, why_len);
	if (err)
		csink_diff_free(diff);
	else if (diff->nr_rows)
		qsort_r(diff->rows, diff->nr_rows, sizeof(*diff->rows), compare_rows, diff);
	return err;
}

void csink_diff_free(struct csink_diff *diff)
{
	free(diff->rows);
	csink_profile_free(diff->names);
	*diff = (struct csink_diff){0};
}
