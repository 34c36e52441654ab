/* Permutation tests: see stats.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "launcher/gate/stats/stats.h"

#define MAX_WAYS 200000 /* to divide two samples, that are all tried */

/* How much smaller than the observed one a sum may be and still count as equal: what rounding does to it. */
static double slack_of(const double *values, uint32_t n)
{
	double size = 0;

	for (uint32_t i = 0; i < n; i++)
		size += fabs(values[i]);
	return size * 1e-12;
}

struct hits {
	double observed, slack;
	enum csink_tail tail;
	uint64_t nr, of;
};

static void judge(struct hits *hits, double sum)
{
	switch (hits->tail) {
	case CSINK_TAIL_GREATER:
		hits->nr += sum >= hits->observed - hits->slack;
		break;
	case CSINK_TAIL_LESS:
		hits->nr += sum <= hits->observed + hits->slack;
		break;
	case CSINK_TAIL_BOTH:
		hits->nr += fabs(sum) >= fabs(hits->observed) - hits->slack;
		break;
	}
	hits->of++;
}

/* How many random draws it takes, as far as is known. Where so many questions are asked at once that only very small
 * p-values count, CSINK_PERMUTE_DRAWS would set a limit that no number of runs overcomes; and what has had
 * CSINK_PERMUTE_HITS has a p-value above 0.05, which needs no more precision. To stop at a number of hits leaves
 * (hits + 1) / (draws + 1) a p-value (Besag and Clifford, 1991). */
static uint64_t enough(const struct hits *hits)
{
	if (hits->nr >= CSINK_PERMUTE_HITS)
		return hits->of;
	return hits->of >= CSINK_PERMUTE_DRAWS && hits->nr < CSINK_PERMUTE_RARE ? CSINK_PERMUTE_MORE
										: CSINK_PERMUTE_DRAWS;
}

/* ---- paired ---- */

/* All sums of d[0..n) with any signs, in order; room has place for 2^(n+1) of them. Each further value makes two of an
 * ordered list, which are merged. Returns where they are, within room. */
static const double *all_sums(const double *d, uint32_t n, double *room)
{
	double *from = room, *to = room + ((size_t)1 << n);

	from[0] = 0;
	for (uint32_t i = 0; i < n; i++) {
		size_t nr = (size_t)1 << i, low = 0, high = 0;
		double step = fabs(d[i]), *swap = from;

		for (size_t k = 0; k < 2 * nr; k++) {
			if (high == nr || (low < nr && from[low] - step <= from[high] + step))
				to[k] = from[low++] - step;
			else
				to[k] = from[high++] + step;
		}
		from = to;
		to = swap;
	}
	return from;
}

/* How many sums of one of each list are as large as that. */
static uint64_t count_from(const double *a, size_t nr_a, const double *b, size_t nr_b, double least)
{
	uint64_t count = 0;

	/* The larger one is, the smaller the other may be. */
	for (size_t i = 0, k = nr_b; i < nr_a; i++) {
		while (k && a[i] + b[k - 1] >= least)
			k--;
		count += nr_b - k;
	}
	return count;
}

/* All 2^n signs at the price of 2^(n/2): the sums of both halves are made, and their sums only counted. Sums come in
 * pairs of either sign, so that one tail is the other's mirror. Returns false without memory. */
static bool try_all_signs(const double *d, uint32_t n, struct hits *hits)
{
	uint32_t half = n / 2;
	size_t nr_a = (size_t)1 << half, nr_b = (size_t)1 << (n - half);
	CSINK_AUTO_FREE double *room = csink_stats_memory(malloc((nr_a + nr_b) * 2 * sizeof(*room)));
	double observed = hits->observed;
	const double *a, *b;

	if (!room)
		return false;
	a = all_sums(d, half, room);
	b = all_sums(d + half, n - half, room + 2 * nr_a);
	hits->of = (uint64_t)nr_a * nr_b;
	if (hits->tail == CSINK_TAIL_LESS)
		observed = -observed;
	if (hits->tail == CSINK_TAIL_BOTH)
		observed = fabs(observed);
	hits->nr = count_from(a, nr_a, b, nr_b, observed - hits->slack);
	if (hits->tail == CSINK_TAIL_BOTH)
		hits->nr = observed > hits->slack ? 2 * hits->nr : hits->of;
	return true;
}

static void try_some_signs(const double *d, uint32_t n, struct hits *hits, struct csink_random *random)
{
	uint64_t nr = CSINK_PERMUTE_DRAWS;

	for (uint64_t draw = 0; draw < nr; draw++) {
		uint64_t bits = 0;
		double sum = 0;

		for (uint32_t i = 0; i < n; i++, bits >>= 1) {
			if (!(i & 63))
				bits = csink_random_next(random);
			sum += bits & 1 ? d[i] : -d[i];
		}
		judge(hits, sum);
		nr = enough(hits);
	}
}

double csink_permute_paired(const double *d, uint32_t n, enum csink_tail tail, struct csink_random *random)
{
	struct hits hits = {.tail = tail, .slack = slack_of(d, n)};

	if (!n)
		return NAN;
	for (uint32_t i = 0; i < n; i++)
		hits.observed += d[i];
	if (n <= CSINK_PERMUTE_EXACT && try_all_signs(d, n, &hits))
		return (double)hits.nr / (double)hits.of;
	try_some_signs(d, n, &hits, random);
	return (double)(hits.nr + 1) / (double)(hits.of + 1);
}

/* ---- two samples ---- */

static double ways_to_choose(uint32_t n, uint32_t k)
{
	double ways = 1;

	for (uint32_t i = 0; i < CSINK_MIN(k, n - k); i++)
		ways = ways * (n - i) / (i + 1);
	return ways;
}

/* All ways to take `left` more of values[from..n) for the second sample. */
static void choose(const double *values, uint32_t n, uint32_t from, uint32_t left, double sum, struct hits *hits)
{
	if (!left) {
		judge(hits, sum);
		return;
	}
	for (uint32_t i = from; i + left <= n; i++)
		choose(values, n, i + 1, left - 1, sum + values[i], hits);
}

static void choose_some(double *values, uint32_t n, uint32_t k, struct hits *hits, struct csink_random *random)
{
	uint64_t nr = CSINK_PERMUTE_DRAWS;

	for (uint64_t draw = 0; draw < nr; draw++) {
		double sum = 0;

		for (uint32_t i = 0; i < k; i++) {
			uint32_t at = i + csink_random_below(random, n - i);
			double value = values[at];

			values[at] = values[i];
			values[i] = value;
			sum += value;
		}
		judge(hits, sum);
		nr = enough(hits);
	}
}

double csink_permute_two(const double *a, uint32_t nr_a, const double *b, uint32_t nr_b, enum csink_tail tail,
			 struct csink_random *random)
{
	uint32_t n = nr_a + nr_b;
	CSINK_AUTO_FREE double *values = csink_stats_memory(malloc(sizeof(*values) * (n + 1)));
	struct hits hits = {.tail = tail};
	double mean = 0;
	bool exact;

	if (!values || !nr_a || !nr_b)
		return NAN;
	memcpy(values, a, nr_a * sizeof(*a));
	memcpy(values + nr_a, b, nr_b * sizeof(*b));
	/* With the common mean taken off, the sum of the second sample says all: its difference grows with it. */
	for (uint32_t i = 0; i < n; i++)
		mean += values[i] / n;
	for (uint32_t i = 0; i < n; i++)
		values[i] -= mean;
	for (uint32_t i = nr_a; i < n; i++)
		hits.observed += values[i];
	hits.slack = slack_of(values, n);
	exact = ways_to_choose(n, nr_b) <= MAX_WAYS;
	if (exact)
		choose(values, n, 0, nr_b, 0, &hits);
	else
		choose_some(values, n, nr_b, &hits, random);
	return (double)(hits.nr + !exact) / (double)(hits.of + !exact);
}

double csink_smallest_p(bool paired, uint32_t nr_a, uint32_t nr_b)
{
	double ways = paired ? pow(2, nr_a) : ways_to_choose(nr_a + nr_b, nr_b);
	bool exact = paired ? nr_a <= CSINK_PERMUTE_EXACT : ways <= MAX_WAYS;

	return exact ? 1 / ways : fmax(1 / ways, 1.0 / (CSINK_PERMUTE_MORE + 1));
}
