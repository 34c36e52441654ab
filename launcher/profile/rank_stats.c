/* See rank_stats.h. Samples are visited rank by rank, so that one value of each row is enough. */
#include "launcher/profile/rank_stats.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "launcher/base/search.h"
#include "launcher/profile/facts.h"

/* What a row has in the rank that is being visited. */
struct current {
	int64_t self, total;
	uint32_t sample; /* + 1: the last one in total */
	bool is_listed;
};

struct visit {
	struct csink_rank_stats *stats;
	const struct csink_profile *p;
	uint32_t type;
	struct current *current; /* by row */
	uint32_t *listed;        /* the rows with something */
	uint32_t nr_listed;
};

struct of_rank {
	int64_t rank;
	uint32_t sample;
};

CSINK_COMPARE_BY(compare_of_rank, struct of_rank, rank, sample)

/* ---- one rank ---- */

static struct current *current_of(struct visit *v, uint32_t row)
{
	if (!v->current[row].is_listed)
		v->listed[v->nr_listed++] = row;
	v->current[row].is_listed = true;
	return &v->current[row];
}

static void add_total(struct visit *v, uint32_t row, uint32_t sample, int64_t value)
{
	struct current *current = current_of(v, row);

	if (current->sample != sample + 1) /* recursion counts once */
		current->total = csink_add(current->total, value);
	current->sample = sample + 1;
}

static void add_sample(struct visit *v, uint32_t sample)
{
	const struct csink_rows *keys = &v->stats->keys;
	const struct csink_profile_sample *of = &v->p->samples[sample];
	const struct csink_profile_range *stack = &v->p->stacks[of->stack];
	int64_t value = csink_profile_values(v->p, sample)[v->type];
	uint32_t self;

	if (keys->of_labels) {
		self = keys->of_labels[of->labels];
		add_total(v, self, sample, value);
	} else {
		if (!stack->nr)
			return;
		CSINK_EACH_ROW(keys, v->p, stack, at)
		add_total(v, *at, sample, value);
		self = keys->ids[keys->spans[v->p->stack_ids[stack->first]].first];
	}
	v->current[self].self = csink_add(v->current[self].self, value);
}

/* The value of a rank, the index-th. */
static void add_value(struct csink_spread *spread, int64_t value, uint32_t index, int64_t rank)
{
	double from_mean = (double)value - spread->mean;

	if (!value)
		return;
	spread->nr_first += spread->nr_first == index;
	if (!spread->nr || value < spread->min) {
		spread->min = value;
		spread->min_rank = rank;
	}
	if (!spread->nr || value > spread->max) {
		spread->max = value;
		spread->max_rank = rank;
	}
	spread->nr++;
	spread->sum = csink_add(spread->sum, value);
	/* Of squares alone, those of large and equal values would not cancel out. */
	spread->mean += from_mean / spread->nr;
	spread->squares += from_mean * ((double)value - spread->mean);
}

static void end_rank(struct visit *v, int64_t rank)
{
	uint32_t index = v->stats->nr_ranks++;

	v->stats->ranks[index] = rank;
	for (uint32_t i = 0; i < v->nr_listed; i++) {
		struct current *current = &v->current[v->listed[i]];
		struct csink_rank_row *row = &v->stats->rows[v->listed[i]];

		add_value(&row->self, current->self, index, rank);
		add_value(&row->total, current->total, index, rank);
		*current = (struct current){0};
	}
	v->nr_listed = 0;
}

/* ---- all ranks ---- */

static void finish(const struct csink_rank_stats *stats, struct csink_spread *spread)
{
	double nr = stats->nr_ranks, nr_absent = nr - spread->nr;
	__int128 lost;

	if (spread->nr_first < stats->nr_ranks) {
		int64_t absent = stats->ranks[spread->nr_first];

		if (!spread->nr || spread->min > 0) {
			spread->min = 0;
			spread->min_rank = absent;
		}
		if (!spread->nr || spread->max < 0) {
			spread->max = 0;
			spread->max_rank = absent;
		}
	}
	spread->squares += spread->mean * spread->mean * spread->nr * nr_absent / nr;
	spread->stddev = sqrt(CSINK_MAX(spread->squares, 0) / nr);
	spread->mean = (double)spread->sum / nr;
	spread->imbalance = spread->mean > 0 ? (double)spread->max / spread->mean - 1 : 0;
	/* Exact, but for what no clock counts. */
	lost = (__int128)spread->max * stats->nr_ranks - spread->sum;
	spread->lost = lost > INT64_MAX ? INT64_MAX : lost < INT64_MIN ? INT64_MIN : (int64_t)lost;
}

static int compare_rows(const void *a, const void *b)
{
	const struct csink_rank_row *left = a, *right = b;
	int order = CSINK_COMPARE(right->self.lost, left->self.lost) ?: CSINK_COMPARE(right->self.sum, left->self.sum);

	order = order ?: CSINK_COMPARE(right->total.lost, left->total.lost)
			 ?: CSINK_COMPARE(right->total.sum, left->total.sum);
	return order ?: strcmp(left->key->name, right->key->name) ?: strcmp(left->key->module, right->key->module);
}

/* The samples that have a rank, in its order. A rank whose samples a filter left out is a rank: label sets stay. */
static int list(struct csink_rank_stats *stats, const struct csink_profile *p, uint32_t type, struct of_rank **out,
		uint32_t *nr_out)
{
	struct of_rank *all = calloc((size_t)p->nr_samples + p->nr_label_sets + 1, sizeof(*all));
	uint32_t nr = 0;

	if (!all)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->nr_label_sets; i++) {
		const struct csink_profile_label *label = csink_profile_rank_find(p, i);

		if (label)
			all[nr++] = (struct of_rank){label->num, UINT32_MAX};
	}
	for (uint32_t i = 0; i < p->nr_samples; i++) {
		const struct csink_profile_label *label = csink_profile_rank_find(p, p->samples[i].labels);

		if (label)
			all[nr++] = (struct of_rank){label->num, i};
		else
			stats->no_rank = csink_add(stats->no_rank, csink_profile_values(p, i)[type]);
	}
	qsort(all, nr, sizeof(*all), compare_of_rank);
	*out = all;
	*nr_out = nr;
	return nr ? 0 : -ENOENT;
}

static int visit_all(struct visit *v)
{
	CSINK_AUTO_FREE struct of_rank *all = NULL;
	struct csink_rank_stats *stats = v->stats;
	uint32_t nr = 0, nr_rows = stats->keys.nr_keys;
	int err = list(stats, v->p, v->type, &all, &nr);

	if (err)
		return err;
	v->current = calloc(nr_rows + 1UL, sizeof(*v->current));
	v->listed = calloc(nr_rows + 1UL, sizeof(*v->listed));
	stats->rows = calloc(nr_rows + 1UL, sizeof(*stats->rows));
	stats->ranks = calloc(nr + 1UL, sizeof(*stats->ranks));
	if (!v->current || !v->listed || !stats->rows || !stats->ranks)
		return -ENOMEM;
	stats->nr_rows = nr_rows;
	for (uint32_t i = 0; i < nr_rows; i++)
		stats->rows[i] =
			(struct csink_rank_row){.key = &stats->keys.keys[i], .self.max_rank = -1, .total.max_rank = -1};
	for (uint32_t i = 0; i < nr; i++) {
		if (all[i].sample != UINT32_MAX)
			add_sample(v, all[i].sample);
		if (i + 1 == nr || all[i + 1].rank != all[i].rank)
			end_rank(v, all[i].rank);
	}
	for (uint32_t i = 0; i < nr_rows; i++) {
		finish(stats, &stats->rows[i].self);
		finish(stats, &stats->rows[i].total);
	}
	qsort(stats->rows, nr_rows, sizeof(*stats->rows), compare_rows);
	return 0;
}

int csink_rank_stats_build(struct csink_rank_stats *stats, const struct csink_profile *p, uint32_t type,
			   enum csink_by by)
{
	struct visit v = {.stats = stats, .p = p, .type = type};
	const char *size = csink_profile_fact(p, CSINK_FACT_RANKS, 0);
	int err;

	*stats = (struct csink_rank_stats){.size = size ? strtoll(size, NULL, 10) : 0};
	err = csink_rows_build(&stats->keys, p, by) ?: visit_all(&v);
	free(v.current);
	free(v.listed);
	if (err)
		csink_rank_stats_free(stats);
	return err;
}

void csink_rank_stats_free(struct csink_rank_stats *stats)
{
	csink_rows_free(&stats->keys);
	free(stats->rows);
	free(stats->ranks);
	*stats = (struct csink_rank_stats){0};
}
