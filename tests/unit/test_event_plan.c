/* Which events are counted together, where nothing is short of counters; where they are is for tests/pmu to try. */
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
	       "all join the first one");
	is_str(plan("cycles,instructions"), "{cycles,instructions}",
	       "so do hardware events, if they fit or cannot be had");
	is_str(plan("{task-clock},page-faults"), "{task-clock},{page-faults}", "a single one in braces stays alone");
	is_str(plan("{task-clock,cs},{page-faults,dummy}"), "{task-clock,context-switches},{page-faults,dummy}",
	       "groups are as the user wrote them");
	is_str(plan("task-clock,{page-faults,dummy},cs"), "{task-clock,context-switches},{page-faults,dummy}",
	       "others join each other around them, and become neighbours");
}

static void test_rates(void)
{
	is_str(plan("task-clock,page-faults:period=1,cs"), "{task-clock,context-switches},{page-faults:period=1}",
	       "one that says how often it is sampled leads a group of its own");
	is_str(plan("task-clock:period=1000000,page-faults"), "{task-clock:period=1000000,page-faults}",
	       "but the first one, which others join");
	is_str(plan("page-faults:period=1,cs:period=1"), "{page-faults:period=1},{context-switches:period=1}",
	       "two of them are two groups");
}

static void test_again(void)
{
	static const char *const lists[] = {"task-clock,page-faults:period=1,cs", "{task-clock},{cs},dummy",
					    "cycles,cs"};

	for (size_t i = 0; i < 3; i++) {
		char first[sizeof(printed)];

		strcpy(first, plan(lists[i]));
		is_str(plan(first), first, "a plan is read back, and planned again, as it is");
		ok(specs[0].braced, "and known to be one");
	}
}

int main(void)
{
	test_groups();
	test_rates();
	test_again();
	return done();
}
