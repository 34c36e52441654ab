/* Which samples leave a thread no time: preload/agent/sampler/stuck.h, on times and registers that are made up. */
#include <string.h>

#include "include/internal/base.h"
#include "preload/agent/sampler/process.h"
#include "preload/agent/sampler/stuck.h"
#include "tests/unit/tap.h"

#define SAMPLES 100000

static struct csink_stuck stuck;
static ucontext_t place;

static void move(uint64_t to)
{
#if defined(__x86_64__)
	place.uc_mcontext.gregs[REG_RIP] = (greg_t)to;
#else
	place.uc_mcontext.pc = to;
#endif
}

/*
 * After how many samples a thread counts as stuck; 0: never. Each overflows gap_ns after the handler of the one before
 * has ended, @nr_crowded of each hundred before it has.
 */
static int stuck_after(int64_t gap_ns, int nr_crowded)
{
	memset(&stuck, 0, sizeof(stuck));
	for (int i = 1; i <= SAMPLES; i++) {
		uint64_t last_end_ns = csink_now_ns();
		int64_t after_ns = i * nr_crowded % 100 < nr_crowded ? -1000000000 : gap_ns;

		move((uint64_t)i);
		if (csink_stuck_watch(&stuck, &place, last_end_ns + (uint64_t)after_ns))
			return i;
	}
	return 0;
}

static void test_time(void)
{
	int after;

	is_num(stuck_after(1000000000, 0), 0, "a thread with a second between samples is never stuck");
	after = stuck_after(1000000000, 100);
	ok(after > 10 && after < 100, "a thread without time between samples is stuck after some tens of samples (%d)",
	   after);
	is_num(stuck_after(1000000000, 50), 0, "half of the samples may leave it none");
	memset(&stuck, 0, sizeof(stuck));
	for (int i = 0; i < 10; i++)
		csink_stuck_watch(&stuck, &place, 1);
	is_num(csink_stuck_watch(&stuck, &place, 1), false,
	       "ten samples in a row without time between them are not stuck");
}

static void test_place(void)
{
	uint64_t overflow_ns = csink_now_ns();
	int after = 0;

	/* At once, but in no time of the handler's: what a system call of the handler's own return looks like. */
	memset(&stuck, 0, sizeof(stuck));
	move(1);
	for (int i = 1; i <= SAMPLES && !after; i++) {
		if (csink_stuck_same_place(&stuck, &place, overflow_ns))
			after = i;
		overflow_ns = stuck.left_ns;
	}
	ok(after >= 100 && after <= 10000,
	   "a thread that stays at one place without time between samples is stuck (%d)", after);
	memset(&stuck, 0, sizeof(stuck));
	for (after = 0; after < SAMPLES && !csink_stuck_same_place(&stuck, &place, stuck.left_ns + 1000000); after++)
		;
	is_num(after, SAMPLES, "a thread that waits at one place, with time between samples, is not stuck");
}

static void test_throttled(void)
{
	int nr = 0;

	memset(&stuck, 0, sizeof(stuck));
	ok(!csink_stuck_throttled(&stuck, 1), "one throttling by the kernel does not reduce the rate");
	while (nr < 1000 && !csink_stuck_throttled(&stuck, 1))
		nr++;
	ok(nr < 10, "repeated throttling reduces the rate");
	ok(!csink_stuck_throttled(&stuck, 1), "the count of throttlings starts again after that");
}

int main(void)
{
	test_time();
	test_place();
	test_throttled();
	return done();
}
