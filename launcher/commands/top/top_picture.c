/*
 * A picture: see top_picture.h. Both of its profiles are made from one moment, so that they name everything alike, and
 * the interval's is made from differences of counts that only grow, so that none is negative.
 */
#include "launcher/commands/top/top_picture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "launcher/base/message.h"
#include "launcher/base/search.h"
#include "launcher/commands/top/top_source.h"
#include "launcher/profile/facts.h"
#include "launcher/profile/profile.h"

const char *const csink_top_view_words[] = {"function", "thread", "phase"};
const char *const csink_top_sort_words[] = {"self", "total", "all-self", "all-total", "name"};

/* ---- making ---- */

/* CPU time if it was counted: of that one knows how much there could be. */
static void choose_type(struct csink_top_picture *picture)
{
	const struct csink_profile *all = picture->profiles[CSINK_TOP_ALL];
	const char *name = csink_profile_fact(all, CSINK_FACT_CPU_TYPE, 0);
	int type = name ? csink_profile_type_find(all, name) : -ENOENT;

	picture->is_time = type >= 0;
	type = type >= 0 ? type : (int)all->default_type;
	picture->event = csink_profile_text(all, all->types[type].name);
	picture->unit = csink_profile_text(all, all->types[type].unit);
	picture->types[CSINK_TOP_ALL] = (uint32_t)type;
	/* In both, the columns are those of all recordings. */
	type = csink_profile_type_find(picture->profiles[CSINK_TOP_LAST], picture->event);
	picture->types[CSINK_TOP_LAST] = (uint32_t)CSINK_MAX(type, 0);
}

static uint32_t number_of(const struct csink_profile *p, const char *key)
{
	const char *text = csink_profile_fact(p, key, 0);

	return text ? (uint32_t)strtoul(text, NULL, 10) : 0;
}

static int make_tables(struct csink_top_picture *picture)
{
	static const enum csink_by by[] = {CSINK_BY_FUNCTION, CSINK_BY_THREAD, CSINK_BY_PHASE};
	const struct csink_profile *const p[2] = {picture->profiles[0], picture->profiles[1]};
	int err = 0;

	for (uint32_t i = 0; i < CSINK_NR_TOP_VIEWS && !err; i++)
		err = csink_diff_build(&picture->tables[i], p, picture->types, by[i], false, CSINK_PER_RUN, NULL, 0);
	return err;
}

int csink_top_picture_make(struct csink_top_picture *picture, const struct csink_top_sight *sight)
{
	int err;

	*picture = (struct csink_top_picture){
		.profiles = {sight->last ? sight->last : csink_profile_create(), sight->all},
		.has_last = sight->last,
		.ns = {sight->ns[0], sight->ns[1]},
		.nr_unread = sight->nr_unread,
	};
	err = picture->profiles[CSINK_TOP_LAST] ? 0 : -ENOMEM;
	if (!err)
		choose_type(picture);
	if (!err)
		err = make_tables(picture);
	if (err) {
		csink_top_picture_free(picture);
		return err;
	}
	for (int i = 0; i < 2; i++) {
		picture->samples[i] = csink_profile_sum(picture->profiles[i], 0);
		picture->sums[i] = csink_profile_sum(picture->profiles[i], picture->types[i]);
	}
	picture->nr_processes = number_of(picture->profiles[CSINK_TOP_ALL], CSINK_FACT_PROCESSES);
	picture->nr_threads = number_of(picture->profiles[CSINK_TOP_ALL], CSINK_FACT_THREADS);
	return 0;
}

void csink_top_picture_free(struct csink_top_picture *picture)
{
	for (uint32_t i = 0; i < CSINK_NR_TOP_VIEWS; i++)
		csink_diff_free(&picture->tables[i]);
	for (uint32_t i = 0; i < 2; i++)
		csink_profile_free(picture->profiles[i]);
	*picture = (struct csink_top_picture){0};
}

/* ---- rows ---- */

static bool is_nothing(const struct csink_diff_row *row)
{
	return !row->self[0] && !row->self[1] && !row->total[0] && !row->total[1];
}

static int compare_rows(const void *a, const void *b, void *context)
{
	const struct csink_diff_row *left = a, *right = b;
	enum csink_top_sort by = *(enum csink_top_sort *)context;
	int which = by >= CSINK_TOP_ALL_SELF, order = is_nothing(left) - is_nothing(right);
	bool total_first = by == CSINK_TOP_TOTAL || by == CSINK_TOP_ALL_TOTAL;

	/* What is equal by the interval goes by all. */
	for (int i = 0; i < 2 && !order && by != CSINK_TOP_NAME; i++, which = !which) {
		int self = CSINK_COMPARE(right->self[which], left->self[which]);
		int total = CSINK_COMPARE(right->total[which], left->total[which]);

		order = total_first ? total ?: self : self ?: total;
	}
	return order ?: strcmp(left->name, right->name) ?: strcmp(left->module, right->module);
}

uint32_t csink_top_picture_sort(struct csink_top_picture *picture, enum csink_top_view view, enum csink_top_sort by)
{
	struct csink_diff *table = &picture->tables[view];
	uint32_t nr = table->nr_rows;

	if (nr)
		qsort_r(table->rows, nr, sizeof(*table->rows), compare_rows, &by);
	while (nr && is_nothing(&table->rows[nr - 1]))
		nr--;
	return nr;
}

double csink_top_percent(const struct csink_top_picture *picture, int which, int64_t value)
{
	double whole = picture->is_time ? (double)picture->ns[which] : (double)picture->sums[which];

	return whole > 0 ? 100.0 * (double)value / whole : 0;
}
