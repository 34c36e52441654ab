/* Which events are counted together, where nothing is short of counters; where they are is for tests/pmu to try. */
#include <errno.h>
#include <linux/hw_breakpoint.h>

#include "include/internal/event.h"
#include "tests/unit/tap.h"

static struct csink_event_spec specs[CSINK_PLAN_MAX_EVENTS];
static char printed[2048];

/* The plan of a list, as it is handed on. */
static const char *plan(const char *list)
{
	struct csink_event_error err = {0};
	int nr = csink_events_parse(list, specs, CSINK_PLAN_MAX_EVENTS, &err);
	int ret = nr < 0 ? nr : csink_events_plan(specs, (uint32_t)nr, &err);

	if (ret < 0)
		snprintf(printed, sizeof(printed), "%d: %s", ret, err.line);
	else if (csink_events_print(specs, (uint32_t)nr, printed, sizeof(printed)) < 0)
		snprintf(printed, sizeof(printed), "too long");
	return printed;
}

static void test_groups(void)
{
	is_str(plan("task-clock"), "task-clock", "a single event needs no group");
	is_str(plan("task-clock,page-faults,cs"), "{task-clock,page-faults,context-switches}",
	       "events without a rate join the first one");
	is_str(plan("cycles,instructions"), "{cycles,instructions}",
	       "hardware events join the first one if they fit or do not open");
	is_str(plan("{task-clock},page-faults"), "{task-clock},{page-faults}", "a single one in braces stays alone");
	is_str(plan("{task-clock,cs},{page-faults,dummy}"), "{task-clock,context-switches},{page-faults,dummy}",
	       "groups are as the user wrote them");
	is_str(plan("task-clock,{page-faults,dummy},cs"), "{task-clock,context-switches},{page-faults,dummy}",
	       "events without a rate around a group join each other");
}

static void test_rates(void)
{
	is_str(plan("task-clock,page-faults:period=1,cs"), "{task-clock,context-switches},{page-faults:period=1}",
	       "an event with a rate leads a group of its own");
	is_str(plan("task-clock:period=1000000,page-faults"), "{task-clock:period=1000000,page-faults}",
	       "the first event with a rate is joined by others");
	is_str(plan("page-faults:period=1,cs:period=1"), "{page-faults:period=1},{context-switches:period=1}",
	       "two events with rates are two groups");
}

static void test_again(void)
{
	static const char *const lists[] = {"task-clock,page-faults:period=1,cs", "{task-clock},{cs},dummy",
					    "cycles,cs"};

	for (size_t i = 0; i < 3; i++) {
		char first[sizeof(printed)];

		strcpy(first, plan(lists[i]));
		is_str(plan(first), first, "a plan is read back, and planned again, as it is");
		ok(specs[0].braced, "a printed plan's group is known to be one");
	}
}

static char watched[16] __attribute__((aligned(8)));

/* The CPU's breakpoints are counters that every machine has: four on x86, some on ARM. */
static void test_room(void)
{
	struct csink_event_error err = {0};
	const char *rest;
	int ret;

	memset(specs, 0, sizeof(specs));
	for (uint32_t i = 0; i < 20; i++) {
		specs[i].attr = (struct perf_event_attr){.size = sizeof(specs[i].attr),
							 .type = PERF_TYPE_BREAKPOINT,
							 .bp_type = HW_BREAKPOINT_W,
							 .bp_addr = (uintptr_t)&watched[i % 2 * 8],
							 .bp_len = HW_BREAKPOINT_LEN_8};
		snprintf(specs[i].rec.name, sizeof(specs[i].rec.name), "watch-%u", i);
	}
	ret = csink_events_fit(specs, 2, &err);
	if (ret) { /* others hold them, or there are none */
		skip("a group with no room for all", "two breakpoints are too many here");
		return;
	}
	ret = csink_events_fit(specs, 20, &err);
	printf("# %s\n", err.line);
	is_num(ret, -E2BIG, "twenty breakpoints are more than any CPU has");
	ok(strstr(err.line, "what fits is {watch-0,watch-1,") != NULL, "the events that fit are named");
	rest = strstr(err.line, "}, and what does not is {watch-");
	ok(rest && strstr(rest, "watch-19}"), "the events that do not fit are named");
	ok(rest && !strstr(rest, "watch-0,"), "no event is listed both as fitting and as not fitting");
}

int main(void)
{
	test_room();
	test_groups();
	test_rates();
	test_again();
	return done();
}
