/* The columns of --wall in made-up profiles, and the option --parallelism. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/profile/facts.h"
#include "launcher/profile/profile.h"
#include "launcher/profile/wall.h"
#include "tests/unit/tap.h"

static struct csink_profile *p;
static struct csink_wall wall;
static char why[256];

static void begin(const char *unit)
{
	p = csink_profile_create();
	csink_profile_type_add(p, "samples", "count");
	csink_profile_type_add(p, "event", unit);
	p->default_type = 1;
}

/* A sample of a thread, in a function; time_ns -1: without a time. */
static void add(int64_t tid, int64_t time_ns, const char *name, int64_t value)
{
	struct csink_profile_function function = {.name = csink_profile_str(p, name)};
	struct csink_profile_line line = {.function = csink_profile_function_add(p, &function)};
	uint32_t location = csink_profile_location_add(p, 0, 0, &line, 1);
	const struct csink_profile_label labels[] = {
		{.key = csink_profile_str(p, CSINK_LABEL_PID), .num = 1},
		{.key = csink_profile_str(p, CSINK_LABEL_TID), .num = tid},
		{.key = csink_profile_str(p, CSINK_LABEL_TIME), .num = time_ns},
	};

	csink_profile_sample_add(p, csink_profile_stack_add(p, &location, 1),
				 csink_profile_labels_add(p, labels, time_ns < 0 ? 2 : 3), (int64_t[]){1, value});
}

/* A thread's wait that another one ended: no value. */
static void add_release(int64_t tid, int64_t time_ns, int64_t releaser)
{
	const struct csink_profile_label labels[] = {
		{.key = csink_profile_str(p, CSINK_LABEL_PID), .num = 1},
		{.key = csink_profile_str(p, CSINK_LABEL_TID), .num = tid},
		{.key = csink_profile_str(p, CSINK_LABEL_TIME), .num = time_ns},
		{.key = csink_profile_str(p, CSINK_LABEL_RELEASER), .num = releaser},
	};

	csink_profile_sample_add(p, csink_profile_stack_add(p, NULL, 0), csink_profile_labels_add(p, labels, 4),
				 (int64_t[]){0, 0});
}

static int apply(uint32_t min, uint32_t max)
{
	return csink_wall_apply(p, &(struct csink_wall_range){min, max}, &wall, why, sizeof(why));
}

static int64_t sum(uint32_t type)
{
	int64_t all = 0;

	for (uint32_t i = 0; i < p->nr_samples; i++)
		all += csink_profile_values(p, i)[type];
	return all;
}

/* Two threads in turns of 3 ms, shorter than a gap that shows a wait. */
static void make_turns(bool has_releases)
{
	begin("nanoseconds");
	for (int i = 0; i < 20; i++) {
		for (int k = 0; k < 3; k++)
			add(1 + i % 2, (3 * i + k + 1) * 1000000LL, i % 2 ? "second" : "first", 1000000);
		if (has_releases && i)
			add_release(1 + i % 2, 3 * i * 1000000LL + 1000, 2 - i % 2);
	}
}

static void test_releases(void)
{
	make_turns(false);
	is_num(apply(0, 0), 0, "two threads in turns");
	ok(sum(wall.critical_type) < 40000000, "without releases, the path stays in one thread");
	csink_profile_free(p);
	make_turns(true);
	add_release(1, 5000000, 77);
	add_release(77, 5000000, 1);
	is_num(apply(0, 0), 0, "two threads in turns, with releases, two of a thread that has no sample");
	is_num(sum(wall.critical_type), 60000000, "with releases, the path has both");
	is_num(wall.nr_steps, 19, "and a step at each turn");
	is_num(sum(1), 60000000, "releases have no value");
	ok(wall.timed == 1, "nor any part in what has times");
	csink_profile_free(p);
}

static void test_columns(void)
{
	uint32_t *parallelism = NULL;

	begin("nanoseconds");
	csink_profile_fact_add(p, CSINK_FACT_CPUS, "2 online of 4");
	for (int i = 0; i < 10; i++)
		add(1, i * 1000000LL, "first", 1000000);
	for (int i = 10; i < 20; i++)
		add(1, i * 1000000LL, "both", 1000000), add(2, i * 1000000LL, "other", 1000000);
	add(1, -1, "untimed", 2000000);
	is_num(apply(0, 0), 0, "columns are made");
	is_num(p->nr_types, 4, "two of them");
	is_num(wall.nr_cpus, 2, "CPUs are those of the profile");
	is_num(sum(wall.wall_type), 21000000, "of two threads, each of the last samples has nothing beside it");
	is_num((int64_t)wall.weights_ns, 21000000, "the sum of the weights");
	is_num((int64_t)wall.ran_ns, 20000000, "the time that ran");
	ok(wall.timed > 0.937 && wall.timed < 0.938, "the part that has times");
	csink_wall_remove(p, &wall);
	ok(p->nr_types == 2 && sum(1) == 32000000 && sum(0) == 31, "columns are taken out again");
	is_num(csink_wall_parallelism(p, &parallelism), 0, "parallelism by sample");
	ok(parallelism[0] == 100 && parallelism[10] == 200 && parallelism[11] == 200 && !parallelism[p->nr_samples - 1],
	   "1, 2, and none where there is no time");
	free(parallelism);
	is_num(apply(1, 1), 0, "samples that ran alone");
	is_num(sum(1), 12000000, "those without a time, and with another thread beside, are taken out");
	ok(strstr(csink_profile_fact(p, CSINK_FACT_FILTER, 0), "--parallelism 1: 37.50 % of all") != NULL,
	   "and what is left is reported");
	csink_profile_free(p);
}

static void test_no_clock(void)
{
	begin("count");
	for (int i = 0; i < 10; i++)
		add(1, i * 1000000LL, "f", 2500);
	is_num(apply(0, 0), 0, "an event that is no clock");
	is_num(sum(wall.wall_type), 10000000, "its samples get the time between them");
	csink_profile_free(p);
}

static void test_refused(void)
{
	begin("nanoseconds");
	is_num(apply(0, 0), -ENODATA, "a profile without samples");
	add(1, -1, "f", 1);
	is_num(apply(0, 0), -ENODATA, "a profile without times");
	is_num(p->nr_types, 2, "it gets no columns");
	add(1, 5, "f", 0);
	is_num(apply(0, 0), -ENODATA, "samples that cost nothing");
	add(1, 6, "f", 10);
	is_num(apply(0, 0), 0, "one sample with a time");
	ok(sum(wall.wall_type) == 10 && sum(wall.critical_type) == 10, "has all of both columns");
	csink_wall_remove(p, &wall);
	add(1, INT64_MAX, "f", INT64_MAX), add(2, 0, "f", 1);
	is_num(apply(0, 0), 0, "damaged times and values");
	is_num(apply(2, 3), -ENODATA, "a range without samples");
	is_str(why, "no sample passes --parallelism 2-3", "and its message");
	csink_profile_free(p);
}

static void test_range(void)
{
	static const char *const bad[] = {"",      "0", "01", "3-1", "1-",    "-1",          "1-0",
					  "1-2-3", "x", "1x", " 1",  "65536", "99999999999", "+1"};
	struct csink_wall_range range;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		ok(csink_wall_range_parse(bad[i], &range) == -EINVAL, "'%s' is no range", bad[i]);
	ok(!csink_wall_range_parse("7", &range) && range.min == 7 && range.max == 7, "a number is a range");
	ok(!csink_wall_range_parse("1-65535", &range) && range.min == 1 && range.max == 65535, "the widest range");
}

int main(void)
{
	test_releases();
	test_columns();
	test_no_clock();
	test_refused();
	test_range();
	return done();
}
