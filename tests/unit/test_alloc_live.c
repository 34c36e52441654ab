/* The table of sampled allocations, also with several threads at once; and when an allocation is sampled. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "preload/alloc/draw.h"
#include "preload/alloc/live.h"
#include "tests/unit/tap.h"

static const void *address(uint64_t n)
{
	return (const void *)(uintptr_t)(0x7f0000000000 + n * 48);
}

static uint32_t count_live(void)
{
	struct csink_live_item item;
	uint32_t at = 0, nr = 0;

	while (csink_live_next(&at, &item))
		nr++;
	return nr;
}

static void test_one_thread(void)
{
	struct csink_live_item item = {.bytes = 7, .row = 3, .made_ms = 1};
	uint32_t put = 0, right = 0;

	ok(!csink_live_put(address(1), &item) && !csink_live_take(address(1), &item),
	   "before it is made, nothing is in it");
	ok(csink_live_begin(), "the table is made");
	for (uint32_t i = 0; i < 100000; i++) {
		item.bytes = i;
		put += csink_live_put(address(i), &item);
	}
	is_num(put, 100000, "100,000 addresses have a place");
	is_num(count_live(), 100000, "all are listed");
	ok(csink_live_may_be(address(5)), "the filter has them");
	for (uint32_t i = 0; i < 100000; i++)
		right += csink_live_take(address(i), &item) && item.bytes == i && item.row == 3;
	is_num(right, 100000, "each is taken out as it was put in");
	is_num(count_live(), 0, "none is left");
	ok(!csink_live_take(address(5), &item), "what was taken is not there");
	item.bytes = 1;
	csink_live_put(address(9), &item);
	item.bytes = 2;
	ok(csink_live_put(address(9), &item) && count_live() == 1, "an address that is handed out again has one item");
	ok(csink_live_take(address(9), &item) && item.bytes == 2, "the later one");
}

static void test_full(void)
{
	struct csink_live_item item = {.bytes = 1};
	uint32_t put = 0;

	for (uint32_t i = 0; i < 1000000; i++)
		put += csink_live_put(address(i), &item);
	ok(put > 200000 && put <= 262144, "a full table refuses (%u of 1,000,000)", put);
	is_num(count_live(), put, "and has what it accepted");
	for (uint32_t i = 0; i < 1000000; i++)
		put -= csink_live_take(address(i), &item);
	is_num(put, 0, "all of it can be taken out");
}

enum { NR_THREADS = 4, NR_EACH = 20000 };
static _Atomic uint32_t nr_wrong;

static void *use(void *arg)
{
	uint64_t of = (uintptr_t)arg;

	for (uint64_t round = 0; round < 20; round++) {
		for (uint64_t i = 0; i < NR_EACH; i++) {
			struct csink_live_item item = {.bytes = of << 32 | i};

			if (!csink_live_put(address(of + i * NR_THREADS), &item))
				nr_wrong++;
		}
		for (uint64_t i = 0; i < NR_EACH; i++) {
			struct csink_live_item item;

			if (!csink_live_take(address(of + i * NR_THREADS), &item) || item.bytes != (of << 32 | i))
				nr_wrong++;
		}
	}
	return NULL;
}

static void test_threads(void)
{
	pthread_t ids[NR_THREADS];

	for (uintptr_t i = 0; i < NR_THREADS; i++)
		pthread_create(&ids[i], NULL, use, (void *)i);
	for (int i = 0; i < NR_THREADS; i++)
		pthread_join(ids[i], NULL);
	is_num(nr_wrong, 0, "threads that use neighbouring places find what they have put in");
	is_num(count_live(), 0, "and nothing of it is left");
}

static void test_draws(void)
{
	const double period = 512 << 10;
	double sum = 0, squares = 0, worst = 0;
	uint64_t state = 12345;
	int nr = 1000000;

	for (int i = 0; i < nr; i++) {
		double bytes = (double)csink_draw_bytes(&state, (uint64_t)period);

		sum += bytes;
		squares += bytes * bytes;
	}
	ok(fabs(sum / nr / period - 1) < 0.01, "the mean of a million draws is the period (%.4f)", sum / nr / period);
	ok(fabs(squares / nr / (2 * period * period) - 1) < 0.02,
	   "their squares are those of an exponential distribution");
	for (double x = 1e-7; x < 60; x *= 1.01)
		worst = fmax(worst, fabs(csink_sampled_share(x) / -expm1(-x) - 1));
	ok(worst < 1e-9, "1 - exp(-x) is right (%g)", worst);
	worst = 0;
	for (double u = 1; u > 1e-18; u *= 0.999) {
		uint64_t bits = (uint64_t)fmin(u * 0x1p64, 0x1p64 - 2048);

		worst = fmax(worst, fabs(csink_minus_log(bits) + log((double)bits * 0x1p-64)));
	}
	ok(worst < 1e-9, "-ln is right (%g)", worst);
	ok(csink_minus_log(0) > 44 && csink_minus_log(0) < 45, "also of the smallest number");
}

int main(void)
{
	test_one_thread();
	test_full();
	test_threads();
	test_draws();
	return done();
}
