/* Change points of a history: see history_changes.h. */
#include "launcher/gate/history_changes.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "include/internal/grow.h"
#include "launcher/base/search.h"
#include "launcher/gate/stats/change_points.h"
#include "launcher/gate/stats/stats.h"

#define IN_ERRORS (2 * 1.959963984540054) /* standard errors in a 95 % interval */
#define LEAST_OF_TREND 6
#define LEVEL 15U
#define LEAST_BESIDE 2 /* points on either side of a change: put_together() takes two of each */

struct shifts {
	struct csink_history_shift *all;
	uint32_t nr, cap;
};

static bool same_anchor(const struct csink_history *h, const struct csink_history_series *s, uint32_t a, uint32_t b)
{
	return !strcmp(h->lines[s->points[a].line].anchor, h->lines[s->points[b].line].anchor);
}

double csink_history_trend(const struct csink_history *h, const struct csink_history_series *s)
{
	double values[CSINK_SCAN_WINDOW];
	uint32_t first = s->nr_points - 1, n;

	while (first > 0 && s->nr_points - first < CSINK_SCAN_WINDOW && same_anchor(h, s, first - 1, first))
		first--;
	n = s->nr_points - first;
	if (n < LEAST_OF_TREND)
		return NAN;
	for (uint32_t i = 0; i < n; i++)
		values[i] = log(s->points[first + i].ratio);
	return exp(csink_hodges_lehmann_two(values, n / 2, values + n / 2, n - n / 2));
}

/* ---- one series ---- */

/* A change's place and size, once all points until the next change are known: by up to LEVEL of them on either side. */
static void measure(struct csink_history_shift *shift, const double *values, uint32_t start, uint32_t end)
{
	uint32_t from = CSINK_MAX(start, shift->first - CSINK_MIN(shift->first, LEVEL));
	uint32_t to = CSINK_MIN(end, shift->first + LEVEL);

	shift->first = from + csink_split_at(values + from, to - from, LEAST_BESIDE);
	shift->ratio = exp(
		csink_hodges_lehmann_two(values + from, shift->first - from, values + shift->first, to - shift->first));
}

static int scan_series(const struct csink_history *h, uint32_t index, struct shifts *shifts)
{
	const struct csink_history_series *s = &h->series[index];
	CSINK_AUTO_FREE double *values = calloc(s->nr_points, sizeof(*values));
	CSINK_AUTO_FREE double *errors = calloc(s->nr_points, sizeof(*errors));
	struct csink_history_shift *open = NULL; /* the last one, while its level lasts */
	uint32_t start = 0, begun = 0;           /* begun: where the level before it begins */
	struct csink_scan scan;

	if (!values || !errors)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->nr_points; i++) {
		const struct csink_history_point *point = &s->points[i];

		values[i] = log(point->ratio);
		errors[i] = point->low > 0 ? (log(point->high) - log(point->low)) / IN_ERRORS : NAN;
		if (i && !same_anchor(h, s, i - 1, i)) {
			if (open)
				measure(open, values, begun, i);
			open = NULL;
			start = i;
		}
		if (!csink_scan_end(values + start, errors + start, i + 1 - start, &scan))
			continue;
		if (open)
			measure(open, values, begun, i + 1 - scan.after);
		if (CSINK_GROW(shifts->all, shifts->nr, shifts->cap))
			return -ENOMEM;
		begun = start;
		start = i + 1 - scan.after;
		open = &shifts->all[shifts->nr++];
		*open = (struct csink_history_shift){index, start, i, scan.z, exp(scan.shift)};
	}
	if (open)
		measure(open, values, begun, s->nr_points);
	return 0;
}

/* ---- what belongs together ---- */

static int compare_shifts(const void *a, const void *b)
{
	const struct csink_history_shift *left = a, *right = b;

	return CSINK_COMPARE(fabs(right->z), fabs(left->z)) ?: CSINK_COMPARE(left->series, right->series)
								       ?: CSINK_COMPARE(left->first, right->first);
}

CSINK_COMPARE_BY(compare_changes, struct csink_history_change, line, of_case)

static int add_shift(struct csink_history_change *change, const struct csink_history_shift *shift, uint32_t found)
{
	if (csink_grow_uncapped((void **)&change->shifts, change->nr_shifts, sizeof(*change->shifts)))
		return -ENOMEM;
	change->shifts[change->nr_shifts++] = *shift;
	change->found = CSINK_MIN(change->found, found);
	return 0;
}

/* The clearest shift of a case names the line; others that are at most one line off are of the same change. */
static int put_together(const struct csink_history *h, const struct csink_history_shift *shift,
			struct csink_history_changes *out)
{
	const struct csink_history_series *s = &h->series[shift->series];
	const struct csink_history_point *points = s->points;
	uint32_t line = points[shift->first].line, found = points[shift->found].line;

	for (uint32_t i = 0; i < out->nr; i++) {
		struct csink_history_change *change = &out->all[i];

		if (change->of_case == s->of_case && line + 1 >= change->line && line <= change->line + 1)
			return add_shift(change, shift, found);
	}
	if (csink_grow_uncapped((void **)&out->all, out->nr, sizeof(*out->all)))
		return -ENOMEM;
	out->all[out->nr++] = (struct csink_history_change){
		.of_case = s->of_case,
		.line = line,
		.before = points[shift->first - 2].line,
		.after = points[shift->first + 1].line,
		.found = found,
		.is_slower = csink_history_is_worse(s, shift->ratio),
	};
	return add_shift(&out->all[out->nr - 1], shift, found);
}

int csink_history_changes_find(struct csink_history *h, bool figures, struct csink_history_changes *out)
{
	struct shifts shifts = {0};
	int err = 0;

	*out = (struct csink_history_changes){0};
	for (uint32_t i = 0; !err && i < h->nr_series; i++) {
		if (figures || h->series[i].is_function || csink_history_is_main(&h->series[i]))
			err = scan_series(h, i, &shifts);
	}
	if (shifts.nr)
		qsort(shifts.all, shifts.nr, sizeof(*shifts.all), compare_shifts);
	for (uint32_t i = 0; !err && i < shifts.nr; i++) {
		struct csink_history_series *s = &h->series[shifts.all[i].series];

		s->points[shifts.all[i].first].is_changed = true;
		s->nr_changes++;
		err = put_together(h, &shifts.all[i], out);
	}
	free(shifts.all);
	if (err)
		csink_history_changes_free(out);
	else if (out->nr)
		qsort(out->all, out->nr, sizeof(*out->all), compare_changes);
	return err;
}

void csink_history_changes_free(struct csink_history_changes *changes)
{
	for (uint32_t i = 0; i < changes->nr; i++)
		free(changes->all[i].shifts);
	free(changes->all);
	*changes = (struct csink_history_changes){0};
}
