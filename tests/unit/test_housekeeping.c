/*
 * The agent's timer queue (preload/agent/sampler/housekeeping.h) on a clock that is set by hand: what is emitted
 * periodically and at the end, and when. Each event writes what was taken away before.
 */
#include <dlfcn.h>

#include "include/internal/share.h"
#include "preload/agent/sampler/engine.h"
#include "preload/agent/sampler/housekeeping.h"
#include "preload/agent/sampler/plan.h"
#include "preload/agent/sampler/process.h"
#include "preload/agent/sampler/thread.h"
#include "tests/unit/tap.h"
#include "tests/unit/walk_setup.h"

#define MS 1000000ULL

static uint64_t now_ns = 1000 * MS;

static uint64_t the_clock(void)
{
	return now_ns;
}

static void poll_at(uint64_t ms)
{
	now_ns = ms * MS;
	csink_housekeeping_poll(now_ns);
}

/* Take the clocks away, and see afterwards whether they have come back. */
static void forget(void)
{
	csink_own_recording.header->end_monotonic_ns = csink_own_recording.header->cpu_end_ns = 0;
}

static bool is_emitted(void)
{
	return csink_own_recording.header->end_monotonic_ns && csink_own_recording.header->cpu_end_ns;
}

static bool is_known(const char *library, const char *function)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	struct csink_module module;

	return handle && csink_modules_find((uintptr_t)dlsym(handle, function), &module);
}

/* The object is one of the C library's that nothing needs. */
static void test_emit(void)
{
	csink_housekeeping_init(the_clock);
	forget();
	poll_at(1099);
	ok(!is_emitted(), "nothing is emitted before its time");
	ok(!is_known("libBrokenLocale.so.1", "__ctype_get_mb_cur_max"), "an object that was loaded is not known yet");
	poll_at(1100);
	ok(is_emitted(), "the clocks are emitted when they are due");
	ok(is_known("libBrokenLocale.so.1", "__ctype_get_mb_cur_max"), "and objects that were loaded");
	forget();
	poll_at(1199);
	ok(!is_emitted(), "nothing is emitted between two times");
	poll_at(1200);
	ok(is_emitted(), "the clocks are emitted periodically");
	forget();
	poll_at(5050);
	ok(is_emitted(), "a program that slept emits at its first sample");
	forget();
	poll_at(5099);
	ok(!is_emitted(), "times that were missed are not made up for");
	poll_at(5100);
	ok(is_emitted(), "delays do not accumulate");
}

static void test_last(void)
{
	forget();
	csink_housekeeping_last();
	ok(is_emitted(), "the end of an image emits at once, between two times");
	forget();
	poll_at(5199);
	ok(!is_emitted(), "the last emission is one");
	poll_at(5200);
	ok(is_emitted(), "after an exec that failed, emission goes on");
	for (int i = 0; i < 100; i++) {
		forget();
		csink_housekeeping_last();
		if (!is_emitted())
			break;
	}
	ok(is_emitted(), "a hundred ends of an image emit a hundred times");
}

static uint64_t period(void)
{
	return csink_plan.events[0].attr.sample_period;
}

/* So many samples of 10 us each, one a millisecond: 1 %. */
static void take_samples(int nr)
{
	for (int i = 0; i < nr; i++)
		csink_housekeeping_account(10000, MS);
}

/* Four seconds, from a second on. */
static void take_cheap_seconds(uint64_t from)
{
	for (uint64_t s = from + 1; s <= from + 4; s++) {
		take_samples(100);
		poll_at(s * 1000);
	}
}

static void test_govern(void)
{
	now_ns = 10000 * MS;
	csink_plan.nr_events = csink_plan.nr_groups = csink_plan.groups[0] = 1;
	csink_plan.events[0].attr.sample_period = MS;
	csink_engine_state.engine = CSINK_ENGINE_SIGTRAP;
	csink_plan.budget = csink_share_parse("1.1%");
	csink_housekeeping_init(the_clock);
	take_samples(1000);
	poll_at(11000);
	is_num(period(), MS, "within the budget nothing changes");
	csink_plan.budget = csink_share_parse("0.9");
	take_samples(1000);
	poll_at(11999);
	is_num(period(), MS, "the budget is not judged before its time");
	poll_at(12000);
	is_num(period(), 4 * MS, "beyond the budget the rate is lowered");
	ok(csink_own_recording.header->rates[0].asked == MS && csink_own_recording.header->rates[0].now == 4 * MS &&
		   csink_own_recording.header->rates[0].why == CSINK_RATE_BUDGET,
	   "the recording has from what to what, and why");
	take_samples(10);
	poll_at(13000);
	is_num(period(), 4 * MS, "ten samples are too few to judge by");
	take_samples(10);
	poll_at(14000);
	is_num(period(), 16 * MS, "they count when there are more");
	take_samples(100);
	csink_housekeeping_account(900 * MS, MS);
	csink_plan.budget = csink_share_parse("2%");
	poll_at(15000);
	is_num(period(), 16 * MS, "a sample in which its thread was switched away is not taken for its cost");
	for (uint64_t s = 16; s < 19; s++) {
		take_samples(100);
		poll_at(s * 1000);
	}
	is_num(period(), 16 * MS, "samples that are cheap for three seconds change nothing");
	csink_plan.budget = csink_share_parse("5%");
	take_samples(100);
	poll_at(19000);
	is_num(period(), 16 * MS, "nor for four, where four times as many would take too much");
	csink_plan.budget = csink_share_parse("7%");
	take_cheap_seconds(19);
	is_num(period(), 4 * MS, "samples that are cheap for four seconds: the rate rises again");
	take_cheap_seconds(23);
	ok(period() == MS && csink_own_recording.header->rates[0].now == MS, "up to the one that was asked for");
	is_num(csink_own_recording.header->rates[0].why, CSINK_RATE_REGAINED, "the recording has that it was lower");
	take_cheap_seconds(27);
	is_num(period(), MS, "and no further");
	csink_plan.budget = csink_share_parse("0.1%");
	take_samples(100);
	poll_at(32000);
	ok(period() == 4 * MS && csink_own_recording.header->rates[0].asked == MS &&
		   csink_own_recording.header->rates[0].why == CSINK_RATE_BUDGET,
	   "and it is lowered again");
	csink_plan.rates[0].why = CSINK_RATE_MEASURED;
	take_samples(100);
	poll_at(33000);
	is_num(period(), 16 * MS, "a rate that was lowered for another reason is lowered");
	csink_plan.budget = csink_share_parse("7%");
	take_cheap_seconds(33);
	is_num(period(), 16 * MS, "and does not rise");
}

/* The timer engine: a frequency, and what of it the threads' timers are set by. */
static void test_govern_timer(void)
{
	csink_plan.rates[0] = (struct csink_rec_rate){0};
	csink_plan.events[0].attr.freq = 1;
	csink_plan.events[0].attr.sample_freq = 997;
	csink_engine_state.engine = CSINK_ENGINE_TIMER;
	csink_plan.budget = csink_share_parse("0.1%");
	take_samples(100);
	poll_at(40000);
	ok(csink_plan.events[0].attr.sample_freq == 249 && csink_engine_state.period_ns == CSINK_NS_PER_S / 249,
	   "the timer engine is slowed");
	csink_plan.budget = csink_share_parse("7%");
	take_cheap_seconds(40);
	ok(csink_plan.events[0].attr.sample_freq == 997 && csink_engine_state.period_ns == CSINK_NS_PER_S / 997,
	   "and comes back to what was asked for");
	for (int i = 0; i < 5; i++) {
		csink_plan.budget = csink_share_parse("0.1%");
		take_samples(100);
		poll_at(50000 + 1000 * (uint64_t)i);
	}
	ok(csink_plan.events[0].attr.sample_freq == 3 && csink_own_recording.header->rates[0].now == 3,
	   "no frequency becomes 0");
}

static void test_share(void)
{
	static const struct {
		const char *text;
		uint32_t share;
	} rows[] = {{"1%", 1000}, {"1", 1000},    {"0.5%", 500}, {"0.001%", 1}, {"99.999%", 99999},
		    {"0", 0},     {"0.0001%", 0}, {"100%", 0},   {"", 0},       {"%", 0},
		    {".5", 0},    {"-1%", 0},     {"1%%", 0},    {"1x", 0},     {"4294968%", 0}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		ok(csink_share_parse(rows[i].text) == rows[i].share, "the share '%s' is %u", rows[i].text,
		   rows[i].share);
}

int main(void)
{
	static struct csink_thread self;

	if (setup_modules()) {
		printf("Bail out! no recording\n");
		return 1;
	}
	csink_own_recording = setup_rec;
	csink_self = &self;
	test_emit();
	test_last();
	test_govern();
	test_govern_timer();
	test_share();
	return done();
}
