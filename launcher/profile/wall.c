/* See wall.h. From a profile's samples to instants, and back to its columns. */
#include "launcher/profile/wall.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "include/internal/grow.h"
#include "launcher/base/message.h"
#include "launcher/base/search.h"
#include "launcher/profile/facts.h"
#include "launcher/profile/parallelism.h"
#include "launcher/profile/profile.h"

#define MAX_PARALLELISM 65535u
#define UNKNOWN_CPUS 65535u /* no limit */

enum { KEY_RUN, KEY_RANK, KEY_PID, KEY_TID, KEY_TIME, KEY_RELEASER, NR_KEYS };

/* The labels that distinguish threads, then the time, and of a wait who ended it. */
static const char *const key_names[NR_KEYS] = {
	[KEY_RUN] = CSINK_LABEL_RUN, [KEY_RANK] = CSINK_LABEL_RANK, [KEY_PID] = CSINK_LABEL_PID,
	[KEY_TID] = CSINK_LABEL_TID, [KEY_TIME] = CSINK_LABEL_TIME, [KEY_RELEASER] = CSINK_LABEL_RELEASER,
};

struct timed {
	int64_t keys[KEY_TIME];
	uint32_t instant;
};

struct wall_work {
	const struct csink_profile *p;
	uint32_t type; /* the event that sampled */
	csink_str_t keys[NR_KEYS];
	struct csink_instants instants;
	struct timed *timed;
};

/* ---- the option ---- */

/* Reads digits. Returns the end, or NULL: no number in range. */
static const char *parse_number(const char *text, uint32_t *number)
{
	*number = 0;
	if (*text < '1' || *text > '9')
		return NULL;
	while (*text >= '0' && *text <= '9' && *number <= MAX_PARALLELISM)
		*number = *number * 10 + (uint32_t)(*text++ - '0');
	return *number <= MAX_PARALLELISM ? text : NULL;
}

int csink_wall_range_parse(const char *text, struct csink_wall_range *range)
{
	const char *at = parse_number(text, &range->min);

	range->max = range->min;
	if (at && *at == '-')
		at = parse_number(at + 1, &range->max);
	return at && !*at && range->min <= range->max ? 0 : -EINVAL;
}

/* ---- samples become instants ---- */

/* The event that sampled first; in other programs' profiles the one that the report is by. */
static uint32_t sampled_type(const struct csink_profile *p)
{
	const char *leader = csink_profile_fact(p, CSINK_FACT_LEADER, 0);
	int type = leader ? csink_profile_type_find(p, leader) : -ENOENT;

	return type < 0 ? p->default_type : (uint32_t)type;
}

static uint32_t cpus_of(const struct csink_profile *p)
{
	const char *cpus = csink_profile_fact(p, CSINK_FACT_CPUS, 0);
	uint32_t nr;

	return cpus && parse_number(cpus, &nr) ? nr : 0;
}

static int64_t label_number(const struct csink_profile *p, uint32_t labels, csink_str_t key)
{
	const struct csink_profile_label *label = csink_profile_label_find(p, labels, key);

	return !label ? -1 : label->str ? label->str : label->num;
}

static bool add_instant(struct wall_work *w, uint32_t sample)
{
	const struct csink_profile *p = w->p;
	uint32_t labels = p->samples[sample].labels, nr = w->instants.nr;
	int64_t value = csink_profile_values(p, sample)[w->type];
	const struct csink_profile_label *time = csink_profile_label_find(p, labels, w->keys[KEY_TIME]);

	if (!time || time->str || value <= 0)
		return false;
	for (uint32_t i = 0; i < KEY_TIME; i++)
		w->timed[nr].keys[i] = label_number(p, labels, w->keys[i]);
	w->timed[nr].instant = nr;
	w->instants.all[nr] = (struct csink_instant){.time_ns = time->num, .cpu_ns = value, .sample = sample};
	w->instants.nr++;
	return true;
}

static int compare_timed(const void *a, const void *b)
{
	const struct timed *left = a, *right = b;

	for (uint32_t i = 0; i < KEY_TIME; i++)
		if (left->keys[i] != right->keys[i])
			return CSINK_COMPARE(left->keys[i], right->keys[i]);
	return 0;
}

static void number_threads(struct wall_work *w)
{
	qsort(w->timed, w->instants.nr, sizeof(*w->timed), compare_timed);
	for (uint32_t i = 0; i < w->instants.nr; i++) {
		w->instants.nr_threads += !i || compare_timed(&w->timed[i - 1], &w->timed[i]);
		w->instants.all[w->timed[i].instant].thread = w->instants.nr_threads - 1;
	}
}

/* Numbers a thread as its samples are. False: it has none. */
static bool find_thread(const struct wall_work *w, const struct timed *keys, uint32_t *thread)
{
	const struct timed *found = bsearch(keys, w->timed, w->instants.nr, sizeof(*w->timed), compare_timed);

	if (found)
		*thread = w->instants.all[found->instant].thread;
	return found;
}

/* Waits that ended at a time, by which thread: samples without a value. */
static int take_releases(struct wall_work *w)
{
	const struct csink_profile *p = w->p;
	uint32_t cap = 0;

	for (uint32_t i = 0; w->keys[KEY_RELEASER] && i < p->nr_samples; i++) {
		uint32_t labels = p->samples[i].labels;
		const struct csink_profile_label *time = csink_profile_label_find(p, labels, w->keys[KEY_TIME]);
		const struct csink_profile_label *by = csink_profile_label_find(p, labels, w->keys[KEY_RELEASER]);
		struct csink_release release;
		struct timed keys;

		if (!time || time->str || !by || by->str)
			continue;
		release.time_ns = time->num;
		for (uint32_t k = 0; k < KEY_TIME; k++)
			keys.keys[k] = label_number(p, labels, w->keys[k]);
		if (!find_thread(w, &keys, &release.waiter))
			continue;
		keys.keys[KEY_TID] = by->num;
		if (find_thread(w, &keys, &release.releaser) &&
		    !CSINK_APPEND(w->instants.releases, w->instants.nr_releases, cap, release))
			return -ENOMEM;
	}
	return 0;
}

static int compare_values(const void *a, const void *b)
{
	const struct csink_instant *left = a, *right = b;

	return CSINK_COMPARE(left->cpu_ns, right->cpu_ns);
}

/* The period in ns. Of an event that is no clock, values become time: as much as the median gap for the median value.
 */
static void scale_values(struct wall_work *w)
{
	struct csink_instants *instants = &w->instants;
	const struct csink_profile_type *type = &w->p->types[w->type];
	int64_t median, gap;

	qsort(instants->all, instants->nr, sizeof(*instants->all), compare_values);
	median = instants->all[instants->nr / 2].cpu_ns;
	instants->period_ns = median;
	if (!strcmp(csink_profile_text(w->p, type->unit), "nanoseconds"))
		return;
	gap = csink_instants_median_gap(instants);
	instants->period_ns = gap ? gap : 1;
	for (uint32_t i = 0; i < instants->nr; i++) {
		double ns = (double)instants->all[i].cpu_ns / (double)median * (double)instants->period_ns;

		instants->all[i].cpu_ns = (int64_t)fmax(1, fmin(ns, 0x1p62));
	}
}

/* Returns 0 with at least one instant, -ENODATA or -ENOMEM. */
static int take_instants(struct wall_work *w, double *timed)
{
	const struct csink_profile *p = w->p;
	double with = 0, sum = 0;
	int err;

	for (uint32_t i = 0; i < NR_KEYS; i++)
		w->keys[i] = csink_profile_str_find(p, key_names[i]);
	if (!w->keys[KEY_TIME] || w->type >= p->nr_types)
		return -ENODATA;
	w->instants.all = malloc((p->nr_samples + 1UL) * sizeof(*w->instants.all));
	w->timed = malloc((p->nr_samples + 1UL) * sizeof(*w->timed));
	if (!w->instants.all || !w->timed)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->nr_samples; i++) {
		double value = (double)csink_profile_values(p, i)[w->type];

		sum += value;
		with += add_instant(w, i) ? value : 0;
	}
	if (!w->instants.nr)
		return -ENODATA;
	*timed = sum > 0 ? fmin(with / sum, 1) : 1;
	number_threads(w);
	err = take_releases(w);
	scale_values(w);
	return err;
}

static void work_free(struct wall_work *w)
{
	free(w->instants.all);
	free(w->instants.releases);
	free(w->timed);
}

/* ---- and columns ---- */

static int add_columns(const struct wall_work *w, struct csink_profile *p, struct csink_wall *wall)
{
	int wall_type = csink_profile_type_append(p, CSINK_WALL_TYPE, "nanoseconds");
	int critical_type = csink_profile_type_append(p, CSINK_CRITICAL_TYPE, "nanoseconds");

	if (wall_type < 0 || critical_type < 0)
		return -ENOMEM;
	wall->wall_type = (uint32_t)wall_type;
	wall->critical_type = (uint32_t)critical_type;
	for (uint32_t i = 0; i < w->instants.nr; i++) {
		const struct csink_instant *at = &w->instants.all[i];
		int64_t *values = p->values + (size_t)at->sample * p->nr_types;

		values[wall_type] = (int64_t)((double)at->cpu_ns / at->parallelism + 0.5);
		values[critical_type] = at->is_critical ? at->cpu_ns : 0;
	}
	return 0;
}

/* Returns 0, -ENODATA or -ENOMEM. */
static int compute(struct wall_work *w, struct csink_wall *wall)
{
	memset(wall, 0, sizeof(*wall));
	wall->nr_cpus = cpus_of(w->p);
	w->type = sampled_type(w->p);
	w->instants.nr_cpus = wall->nr_cpus ? wall->nr_cpus : UNKNOWN_CPUS;
	return take_instants(w, &wall->timed) ?: csink_instants_compute(&w->instants);
}

static int narrow(const struct wall_work *w, struct csink_profile *p, const struct csink_wall_range *range, char *why,
		  size_t why_len)
{
	CSINK_AUTO_FREE bool *keep = calloc(p->nr_samples + 1UL, sizeof(*keep));
	double before = (double)csink_profile_sum(p, p->default_type);
	char text[32];

	if (!keep)
		return csink_why(-ENOMEM, why, why_len, "no memory");
	for (uint32_t i = 0; i < w->instants.nr; i++) {
		double parallelism = round(w->instants.all[i].parallelism);

		keep[w->instants.all[i].sample] = parallelism >= range->min && parallelism <= range->max;
	}
	csink_profile_keep(p, keep);
	snprintf(text, sizeof(text), range->min == range->max ? "%u" : "%u-%u", range->min, range->max);
	csink_profile_fact_add(p, CSINK_FACT_FILTER, "--parallelism %s: %.2f %% of all", text,
			       before > 0 ? 100 * (double)csink_profile_sum(p, p->default_type) / before : 0);
	if (csink_profile_error(p))
		return csink_why(-ENOMEM, why, why_len, "no memory");
	return p->nr_samples ? 0 : csink_why(-ENODATA, why, why_len, "no sample passes --parallelism %s", text);
}

int csink_wall_apply(struct csink_profile *p, const struct csink_wall_range *range, struct csink_wall *wall, char *why,
		     size_t why_len)
{
	CSINK_AUTO(work_free) struct wall_work w = {.p = p};
	int err = compute(&w, wall);

	if (err == -ENODATA)
		return csink_why(
			err, why, why_len,
			"the profile has no times of samples: countersink run --wall (or --timeline) records them");
	err = err ? err : add_columns(&w, p, wall);
	if (err)
		return csink_why(err, why, why_len, "no memory");
	wall->weights_ns = w.instants.weights_ns;
	wall->ran_ns = w.instants.ran_ns;
	wall->cpu_ns = w.instants.cpu_ns;
	wall->critical_ns = w.instants.critical_ns;
	wall->nr_steps = w.instants.nr_steps;
	wall->nr_doubtful = w.instants.nr_doubtful;
	return range->max ? narrow(&w, p, range, why, why_len) : 0;
}

int csink_wall_parallelism(const struct csink_profile *p, uint32_t **hundredths)
{
	CSINK_AUTO(work_free) struct wall_work w = {.p = p};
	struct csink_wall wall;
	int err = compute(&w, &wall);

	if (err)
		return err;
	*hundredths = calloc(p->nr_samples + 1UL, sizeof(**hundredths));
	if (!*hundredths)
		return -ENOMEM;
	for (uint32_t i = 0; i < w.instants.nr; i++)
		(*hundredths)[w.instants.all[i].sample] = (uint32_t)(100 * w.instants.all[i].parallelism + 0.5);
	return 0;
}

void csink_wall_remove(struct csink_profile *p, const struct csink_wall *wall)
{
	uint32_t nr = wall->wall_type;

	for (uint32_t i = 0; i < p->nr_samples; i++)
		memmove(p->values + (size_t)i * nr, p->values + (size_t)i * p->nr_types, nr * sizeof(*p->values));
	p->nr_types = nr;
}
