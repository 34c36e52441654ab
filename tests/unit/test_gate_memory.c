/*
 * The gate's judgement where memory is lacking: whichever allocation fails, the answer is an error or the verdict that
 * there is with memory, never another one. malloc and calloc are this program's own: each allocation fails in turn.
 */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/gate/gate.h"
#include "tests/unit/tap.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
int main(void)
{
	printf("1..0 # SKIP the sanitizer has a malloc of its own\n");
	return 0;
}
#else

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t nr, size_t size);
void *__libc_realloc(void *old, size_t size);

static long nr_allocations, fails_at = -1; /* -1: none; counted from 0 */
static bool fails_on;                      /* and all later ones */

static bool is_failing(void)
{
	long nr = nr_allocations++;

	return fails_at >= 0 && (nr == fails_at || (fails_on && nr > fails_at));
}

void *malloc(size_t size)
{
	return is_failing() ? NULL : __libc_malloc(size);
}

void *calloc(size_t nr, size_t size)
{
	return is_failing() ? NULL : __libc_calloc(nr, size);
}

void *realloc(void *old, size_t size)
{
	return is_failing() ? NULL : __libc_realloc(old, size);
}

/* Two functions, of which one takes a half more, in runs that vary a little. */
static void add_runs(struct csink_gate_data *data, uint32_t nr, bool paired)
{
	struct csink_random dice;

	csink_random_init(&dice, 7);
	data->paired = paired;
	for (uint32_t i = 0; i < 2 * nr; i++) {
		struct csink_gate_run *run = csink_gate_run_add(data, (enum csink_gate_side)(i & 1));

		run->weights.nr_samples = 1000;
		for (int f = 0; f < 5; f++) {
			const char name[] = {'f', (char)('0' + f), 0};
			int64_t at = csink_gate_function_find(&data->functions, name, "program");
			double value = 1e6 * (f == 1 && i & 1 ? 1.5 : 1) * (1 + csink_random_below(&dice, 100) / 1e4);

			csink_gate_weights_grow(&run->weights, data->functions.nr);
			run->weights.self[at] = value;
			run->weights.sum += value;
			if (f)
				csink_gate_call_add(&data->functions, 0, (uint32_t)at, (enum csink_gate_side)(i & 1),
						    value);
		}
		run->metrics[csink_gate_metric_find(data, "cpu", "CPU time", "nanoseconds")] = run->weights.sum;
	}
}

/* The verdicts and figures of two judgements are the same. */
static bool is_same(const struct csink_gate_verdicts *a, const struct csink_gate_verdicts *b)
{
	bool same = a->nr_rows == b->nr_rows;

	for (uint32_t i = 0; same && i < a->nr_rows; i++)
		same = a->rows[i].verdict == b->rows[i].verdict && a->rows[i].q == b->rows[i].q &&
		       a->rows[i].interval.low == b->rows[i].interval.low &&
		       a->rows[i].interval.high == b->rows[i].interval.high;
	return same;
}

static void test(uint32_t nr, bool paired, const char *what)
{
	const struct csink_gate_rules rules = {.threshold = 0.05, .min_share = 0.01, .alpha = 0.01, .seed = 1};
	struct csink_gate_verdicts right, v;
	struct csink_gate_data data = {0};
	long all, nr_errors = 0, nr_other = 0;
	int err;

	fails_at = -1;
	add_runs(&data, nr, paired);
	nr_allocations = 0;
	is_num(csink_gate_judge(&data, &rules, 0, &right), 0, "with memory there is a verdict");
	all = nr_allocations;
	ok(right.counts[CSINK_GATE_REGRESSED] > 0, "%s: a regression", what);
	for (int rest = 0; rest < 2; rest++) {
		/* The bootstrap allocates in each of its draws: a prime's multiples meet all places of it. */
		for (long k = 0; k < all; k += k < 200 || k > all - 50 ? 1 : 97) {
			nr_allocations = 0;
			fails_on = rest;
			fails_at = k;
			err = csink_gate_judge(&data, &rules, 0, &v);
			fails_at = -1;
			nr_errors += err == -ENOMEM;
			if (err && err != -ENOMEM)
				nr_other++;
			if (!err && !is_same(&right, &v))
				nr_other++;
			if (!err)
				csink_gate_verdicts_free(&v);
		}
		ok(nr_errors > 0, "%s: allocations that fail%s are met", what, rest ? ", and all later ones," : "");
		is_num(nr_other, 0, "each failed allocation is an error, or changes no result");
	}
	err = csink_gate_judge(&data, &rules, 0, &v);
	ok(!err && is_same(&right, &v), "%s: a failure leaves nothing behind", what);
	csink_gate_verdicts_free(&v);
	csink_gate_verdicts_free(&right);
	csink_gate_data_free(&data);
}

int main(void)
{
	test(8, true, "pairs");
	test(8, false, "two sides apart");
	return done();
}
#endif
