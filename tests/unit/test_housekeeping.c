/*
 * The agent's timer queue (preload/agent/sampler/housekeeping.h) on a clock that is set by hand: what is emitted
 * periodically and at the end, and when. Each event writes what was taken away before.
 */
#include <dlfcn.h>

#include "preload/agent/sampler/housekeeping.h"
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

static void test_emit(void)
{
	csink_housekeeping_init(the_clock);
	forget();
	poll_at(1099);
	ok(!is_emitted(), "nothing is emitted before its time");
	ok(!is_known("libelf.so.1", "elf_begin"), "an object that was loaded is not known yet");
	poll_at(1100);
	ok(is_emitted(), "the clocks are emitted when they are due");
	ok(is_known("libelf.so.1", "elf_begin"), "and objects that were loaded");
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
	return done();
}
