/* See parallelism.h. */
#include "launcher/profile/parallelism.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "launcher/base/search.h"

#define NONE UINT32_MAX

/* A thread whose samples are further apart than this many periods did not run between them. */
#define RAN_PERIODS 2.5

/* Shares of a thread that runs are added in these units, so that adding and taking away leaves no rounding. */
#define WHOLE (1LL << 20)

static int compare_instants(const void *a, const void *b)
{
	const struct csink_instant *left = a, *right = b;

	return CSINK_COMPARE(left->time_ns, right->time_ns) ?: CSINK_COMPARE(left->thread, right->thread)
							    ?: CSINK_COMPARE(left->sample, right->sample);
}

static int compare_by_thread(const void *a, const void *b)
{
	const struct csink_instant *left = a, *right = b;

	return CSINK_COMPARE(left->thread, right->thread) ?: CSINK_COMPARE(left->time_ns, right->time_ns);
}

/* From one time to a later one. Damaged times may be further apart than an int64_t can say. */
static uint64_t gap_between(const struct csink_instant *from, const struct csink_instant *to)
{
	return (uint64_t)to->time_ns - (uint64_t)from->time_ns;
}

int64_t csink_instants_median_gap(const struct csink_instants *instants)
{
	CSINK_AUTO_FREE uint64_t *gaps = malloc((instants->nr + 1UL) * sizeof(*gaps));
	uint32_t nr = 0;

	if (!gaps)
		return 0;
	if (instants->nr)
		qsort(instants->all, instants->nr, sizeof(*instants->all), compare_by_thread);
	for (uint32_t i = 1; i < instants->nr; i++) {
		const struct csink_instant *at = &instants->all[i];

		if (at->thread == at[-1].thread && at->time_ns != at[-1].time_ns)
			gaps[nr++] = gap_between(at - 1, at);
	}
	if (!nr)
		return 0;
	qsort(gaps, nr, sizeof(*gaps), csink_compare_u64);
	return (int64_t)CSINK_MIN(gaps[nr / 2], (uint64_t)INT64_MAX);
}

/* ---- parallelism ---- */

/* What part of the time a thread ran between two of its samples. */
static int64_t share_of(const struct csink_instants *instants, uint64_t gap)
{
	double periods = (double)gap / (double)instants->period_ns;

	if (periods > RAN_PERIODS)
		return 0;
	return periods <= 1 ? WHOLE : (int64_t)(WHOLE / periods);
}

/*
 * Go through time with the sum of the shares of all threads.
 * @next    by sample: the next one of its thread, or NONE.
 * @shares  by thread, 0 at first.
 */
static void add_shares(struct csink_instants *instants, const uint32_t *next, int64_t *shares)
{
	struct csink_instant *all = instants->all;
	double most = CSINK_MAX(instants->nr_cpus, 1);
	int64_t sum = 0;

	for (uint32_t first = 0, end; first < instants->nr; first = end) {
		for (end = first; end < instants->nr && all[end].time_ns == all[first].time_ns; end++) {
			int64_t *share = &shares[all[end].thread];

			sum -= *share;
			*share = next[end] == NONE ? 0 : share_of(instants, gap_between(&all[end], &all[next[end]]));
			sum += *share;
		}
		for (uint32_t i = first; i < end; i++) {
			double others = (double)(sum - shares[all[i].thread]) / WHOLE;

			all[i].parallelism = fmin(1 + others, most);
		}
	}
}

/* The time that samples cover: each stands for what ends with it. */
static double covered_ns(const struct csink_instants *instants)
{
	double first = (double)INT64_MAX, sum = 0; /* first: of the time that is counted already */

	for (uint32_t i = instants->nr; i-- > 0;) {
		const struct csink_instant *at = &instants->all[i];
		double end = fmin((double)at->time_ns, first), start = (double)at->time_ns - (double)at->cpu_ns;

		if (start >= end)
			continue;
		sum += end - start;
		first = start;
	}
	return sum;
}

/* ---- the critical path ---- */

/* The samples of each thread, and the releases that ended its waits, both in order of time. */
struct threads {
	uint32_t *first;    /* by thread, and one more: its first one in samples */
	uint32_t *samples;  /* indices of instants */
	uint32_t *releases; /* by thread, and one more: its first one in the instants' releases */
};

static int compare_releases(const void *a, const void *b)
{
	const struct csink_release *left = a, *right = b;

	return CSINK_COMPARE(left->waiter, right->waiter) ?: CSINK_COMPARE(left->time_ns, right->time_ns)
							  ?: CSINK_COMPARE(left->releaser, right->releaser);
}

/* From counts of each thread's to where they begin. */
static void add_up(uint32_t *counts, uint32_t nr)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i <= nr; i++) {
		uint32_t count = counts[i];

		counts[i] = sum;
		sum += count;
	}
}

static void list_threads(struct csink_instants *instants, struct threads *threads)
{
	for (uint32_t i = 0; i < instants->nr; i++)
		threads->first[instants->all[i].thread]++;
	for (uint32_t i = 0; i < instants->nr_releases; i++)
		threads->releases[instants->releases[i].waiter]++;
	add_up(threads->first, instants->nr_threads);
	add_up(threads->releases, instants->nr_threads);
	for (uint32_t i = 0; i < instants->nr; i++)
		threads->samples[threads->first[instants->all[i].thread]++] = i;
	for (uint32_t i = instants->nr_threads; i > 0; i--) /* each is where the next one's begin */
		threads->first[i] = threads->first[i - 1];
	threads->first[0] = 0;
	if (instants->nr_releases)
		qsort(instants->releases, instants->nr_releases, sizeof(*instants->releases), compare_releases);
}

/* A thread's last sample that is not later; NONE. */
static uint32_t sample_at(const struct csink_instants *instants, const struct threads *threads, uint32_t thread,
			  int64_t time_ns)
{
	uint32_t low = threads->first[thread], high = threads->first[thread + 1];

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (instants->all[threads->samples[middle]].time_ns <= time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low > threads->first[thread] ? threads->samples[low - 1] : NONE;
}

/* What ended a thread's last wait before a time, if that was after its sample `at`; NULL. */
static const struct csink_release *released(const struct csink_instants *instants, const struct threads *threads,
					    uint32_t thread, uint32_t at, int64_t time_ns)
{
	uint32_t low = threads->releases[thread], high = threads->releases[thread + 1];
	const struct csink_release *last;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (instants->releases[middle].time_ns < time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	last = low > threads->releases[thread] ? &instants->releases[low - 1] : NULL;
	return last && (at == NONE || last->time_ns > instants->all[at].time_ns) ? last : NULL;
}

/* The last sample that was taken before a thread woke whose first sample is at a time. That stands for one period at
 * most, and for half of one on average. */
static uint32_t ran_before(const struct csink_instants *instants, int64_t time_ns)
{
	uint64_t least = (uint64_t)instants->period_ns / 2;
	uint32_t low = 0, high = instants->nr;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		int64_t at_ns = instants->all[middle].time_ns;

		if (at_ns < time_ns && (uint64_t)time_ns - (uint64_t)at_ns >= least)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? low - 1 : NONE;
}

/* Did a third thread run as well, when the thread of j led to another one? */
static bool is_doubtful(const struct csink_instants *instants, uint32_t thread, uint32_t j)
{
	const struct csink_instant *all = instants->all;

	for (uint32_t k = j; k-- > 0 && gap_between(&all[k], &all[j]) <= (uint64_t)instants->period_ns;)
		if (all[k].thread != all[j].thread && all[k].thread != thread)
			return true;
	return false;
}

/* The sample before i on the path; NONE: it begins there. */
static uint32_t step_back(struct csink_instants *instants, const struct threads *threads, uint32_t before, uint32_t i)
{
	double most = fmax(CSINK_STREAK_GAP_NS, RAN_PERIODS * (double)instants->period_ns);
	uint32_t thread = instants->all[i].thread, at = before, to;
	int64_t time_ns = instants->all[i].time_ns;
	const struct csink_release *release;

	while ((release = released(instants, threads, thread, at, time_ns))) {
		thread = release->releaser;
		time_ns = release->time_ns;
		at = sample_at(instants, threads, thread, time_ns);
		instants->nr_steps++;
	}
	if (at != NONE && (double)((uint64_t)time_ns - (uint64_t)instants->all[at].time_ns) <= most)
		return at;
	to = ran_before(instants, time_ns);
	if (to != NONE && instants->all[to].thread != thread) {
		instants->nr_steps++;
		instants->nr_doubtful += is_doubtful(instants, thread, to);
	}
	return to;
}

/* From the last sample backwards. @before: by sample, the one before of its thread, or NONE. */
static int walk_back(struct csink_instants *instants, const uint32_t *before)
{
	CSINK_AUTO_FREE uint32_t *first = calloc(instants->nr_threads + 1UL, sizeof(*first));
	CSINK_AUTO_FREE uint32_t *releases = calloc(instants->nr_threads + 1UL, sizeof(*releases));
	CSINK_AUTO_FREE uint32_t *samples = malloc((instants->nr + 1UL) * sizeof(*samples));
	struct threads threads = {first, samples, releases};

	if (!first || !releases || !samples)
		return -ENOMEM;
	list_threads(instants, &threads);
	for (uint32_t i = instants->nr ? instants->nr - 1 : NONE; i != NONE;
	     i = step_back(instants, &threads, before[i], i)) {
		instants->all[i].is_critical = true;
		instants->critical_ns += (double)instants->all[i].cpu_ns;
	}
	return 0;
}

/* ---- both ---- */

/* Fill before[] and next[], by sample, with the neighbours of its thread. @last: by thread. */
static void link_threads(const struct csink_instants *instants, uint32_t *before, uint32_t *next, uint32_t *last)
{
	for (uint32_t i = 0; i < instants->nr_threads; i++)
		last[i] = NONE;
	for (uint32_t i = 0; i < instants->nr; i++) {
		uint32_t thread = instants->all[i].thread;

		before[i] = last[thread];
		next[i] = NONE;
		if (last[thread] != NONE)
			next[last[thread]] = i;
		last[thread] = i;
	}
}

int csink_instants_compute(struct csink_instants *instants)
{
	CSINK_AUTO_FREE uint32_t *before = malloc((instants->nr + 1UL) * sizeof(*before));
	CSINK_AUTO_FREE uint32_t *next = malloc((instants->nr + 1UL) * sizeof(*next));
	CSINK_AUTO_FREE uint32_t *last = malloc((instants->nr_threads + 1UL) * sizeof(*last));
	CSINK_AUTO_FREE int64_t *shares = calloc(instants->nr_threads + 1UL, sizeof(*shares));

	instants->weights_ns = instants->cpu_ns = instants->critical_ns = 0;
	instants->nr_steps = instants->nr_doubtful = 0;
	instants->period_ns = CSINK_MAX(instants->period_ns, 1);
	if (!before || !next || !last || !shares)
		return -ENOMEM;
	if (instants->nr)
		qsort(instants->all, instants->nr, sizeof(*instants->all), compare_instants);
	for (uint32_t i = 0; i < instants->nr; i++)
		instants->all[i].is_critical = false;
	link_threads(instants, before, next, last);
	add_shares(instants, next, shares);
	for (uint32_t i = 0; i < instants->nr; i++) {
		instants->cpu_ns += (double)instants->all[i].cpu_ns;
		instants->weights_ns += (double)instants->all[i].cpu_ns / instants->all[i].parallelism;
	}
	instants->ran_ns = covered_ns(instants);
	return walk_back(instants, before);
}
