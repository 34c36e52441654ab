/* What functions cost in the ranks of a parallel job: the figures of made-up profiles, exactly. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/profile/facts.h"
#include "launcher/profile/profile.h"
#include "launcher/profile/rank_stats.h"
#include "tests/unit/tap.h"

static struct csink_profile *p;
static struct csink_rank_stats stats;

static void begin(void)
{
	p = csink_profile_create();
	csink_profile_type_add(p, "cpu", "nanoseconds");
}

static uint32_t location(const char *name)
{
	struct csink_profile_function function = {.name = csink_profile_str(p, name)};
	struct csink_profile_line line = {0};

	function.system_name = function.name;
	line.function = csink_profile_function_add(p, &function);
	return csink_profile_location_add(p, 0, 0, &line, 1);
}

/* Time of a function below main(), in a rank; -1: in none. */
static void add(const char *name, int64_t rank, int64_t value)
{
	const uint32_t stack[] = {location(name), location("main")};
	struct csink_profile_label label = {.key = csink_profile_str(p, CSINK_LABEL_RANK), .num = rank};

	csink_profile_sample_add(p, csink_profile_stack_add(p, stack, 2),
				 rank < 0 ? 0 : csink_profile_labels_add(p, &label, 1), &value);
}

static const struct csink_rank_row *row(const char *name)
{
	for (uint32_t i = 0; i < stats.nr_rows; i++)
		if (!strcmp(stats.rows[i].key->name, name))
			return &stats.rows[i];
	return NULL;
}

static bool is_near(double a, double b)
{
	return fabs(a - b) < 1e-9 * fmax(1, fabs(b));
}

static void end(void)
{
	csink_rank_stats_free(&stats);
	csink_profile_free(p);
}

static void test_figures(void)
{
	const struct csink_spread *s;

	begin();
	for (int rank = 3; rank >= 0; rank--)
		add("compute", rank, 100 * (rank + 1));
	add("wait", 2, 8);
	add("launch", -1, 5);
	csink_profile_fact_add(p, CSINK_FACT_RANKS, "6");
	is_num(csink_rank_stats_build(&stats, p, 0, CSINK_BY_FUNCTION), 0, "statistics of four ranks are made");
	is_num(stats.nr_ranks, 4, "four ranks are found");
	is_num(stats.size, 6, "of the six that the job has");
	is_num(stats.no_rank, 5, "time of no rank is apart");
	s = &row("compute")->self;
	ok(s->nr == 4 && s->sum == 1000, "1:2:3:4 is in four ranks, 1000 in all");
	ok(s->min == 100 && s->min_rank == 0, "the least is rank 0's");
	ok(s->max == 400 && s->max_rank == 3, "the most is rank 3's");
	ok(is_near(s->mean, 250), "the mean is 250");
	ok(is_near(s->stddev, sqrt(12500)), "the standard deviation is that of the population");
	ok(is_near(s->imbalance, 0.6), "the imbalance is 60 %%");
	is_num(s->lost, 600, "three ranks wait for 600 in all");
	s = &row("wait")->self;
	ok(s->nr == 1 && s->sum == 8 && is_near(s->mean, 2), "ranks without a function count as 0 in the mean");
	ok(s->min == 0 && s->min_rank == 0, "and in the least: the first of them");
	ok(is_near(s->imbalance, 3) && s->lost == 24, "and in the imbalance and the lost time");
	ok(is_near(s->stddev, sqrt(12)), "and in the standard deviation");
	is_str(stats.rows[0].key->name, "compute", "the row that loses most is the first");
	s = &row("main")->total;
	ok(s->nr == 4 && s->max == 400 && s->sum == 1008 && row("main")->self.nr == 0, "callers have a total");
	ok(row("launch")->self.nr == 0 && row("launch")->self.max_rank == 0, "a function of no rank has nothing");
	end();
}

static void test_rows(void)
{
	const int64_t value = 7;
	struct csink_profile_label label;
	uint32_t stack[3], at;

	begin();
	label = (struct csink_profile_label){.key = csink_profile_str(p, CSINK_LABEL_RANK), .num = 1000000};
	at = location("again");
	stack[0] = stack[1] = stack[2] = at;
	csink_profile_sample_add(p, csink_profile_stack_add(p, stack, 3), csink_profile_labels_add(p, &label, 1),
				 &value);
	add("once", 5, 1);
	is_num(csink_rank_stats_build(&stats, p, 0, CSINK_BY_FUNCTION), 0, "ranks need not begin at 0");
	is_num(row("again")->total.max, 7, "recursion counts once");
	is_num(row("again")->total.max_rank, 1000000, "the rank is the label's");
	is_num(row("again")->total.min_rank, 5, "the rank without it is named");
	is_num(stats.size, 0, "the size of the job is not known");
	csink_rank_stats_free(&stats);
	is_num(csink_rank_stats_build(&stats, p, 0, CSINK_BY_PHASE), 0, "rows may be those of labels");
	ok(stats.nr_rows == 1 && stats.rows[0].self.sum == 8, "which have all");
	end();
}

static void test_filtered(void)
{
	bool keep[] = {true, false};

	begin();
	add("left", 0, 10);
	add("out", 1, 20);
	csink_profile_keep(p, keep);
	is_num(csink_rank_stats_build(&stats, p, 0, CSINK_BY_FUNCTION), 0, "a filtered profile has statistics");
	is_num(stats.nr_ranks, 2, "a rank whose samples were left out is still a rank");
	ok(is_near(row("left")->self.mean, 5), "and counts in the mean");
	end();
}

static void test_none(void)
{
	begin();
	add("alone", -1, 3);
	is_num(csink_rank_stats_build(&stats, p, 0, CSINK_BY_FUNCTION), -ENOENT, "without ranks there are none");
	ok(!stats.rows && !stats.ranks, "and nothing is left");
	end();
	begin();
	add("large", 0, INT64_MAX / 2 + 5);
	add("large", 1, 1);
	add("large", 2, 1);
	add("wide", 0, INT64_MAX / 2);
	add("wide", 1, INT64_MAX / 2 - 1);
	is_num(csink_rank_stats_build(&stats, p, 0, CSINK_BY_FUNCTION), 0, "large values have statistics");
	is_num(row("large")->self.lost, INT64_MAX, "which do not overflow");
	is_num(row("wide")->self.lost, INT64_MAX / 2 + 1, "and are exact where the product alone does not fit");
	end();
	begin();
	add("least", 0, INT64_MIN);
	add("least", 0, INT64_MIN);
	add("least", 1, INT64_MAX);
	add("most", 0, INT64_MAX);
	add("most", 1, INT64_MAX);
	add("most", 2, INT64_MAX);
	add("negative", 0, INT64_MIN);
	is_num(csink_rank_stats_build(&stats, p, 0, CSINK_BY_FUNCTION), 0, "the largest values have statistics");
	is_num(row("least")->self.lost, INT64_MAX, "what is lost is the largest number where none is large enough");
	is_num(row("negative")->self.lost, INT64_MAX, "also where the sum has no opposite");
	end();
	begin();
	for (int rank = 0; rank < 3; rank++) {
		add("equal", rank, 1000000000000000);
		add("near", rank, 1000000000000000 + rank);
		add("half", rank, rank < 2 ? 1000000000000000 : 0);
	}
	is_num(csink_rank_stats_build(&stats, p, 0, CSINK_BY_FUNCTION), 0, "days of time have statistics");
	ok(row("equal")->self.stddev == 0, "equal times have no deviation");
	ok(is_near(row("near")->self.stddev, sqrt(2.0 / 3)), "and a nanosecond is one");
	ok(is_near(row("half")->self.stddev, 1e15 * sqrt(2) / 3), "as is a rank that has none");
	end();
}

/* Other programs may have such a label with a text. */
static void test_text(void)
{
	const int64_t value = 4;
	struct csink_profile_label label;
	uint32_t at;

	begin();
	label = (struct csink_profile_label){.key = csink_profile_str(p, CSINK_LABEL_RANK),
					     .str = csink_profile_str(p, "gold")};
	at = location("named");
	csink_profile_sample_add(p, csink_profile_stack_add(p, &at, 1), csink_profile_labels_add(p, &label, 1), &value);
	is_num(csink_rank_stats_build(&stats, p, 0, CSINK_BY_FUNCTION), -ENOENT, "a text is no rank");
	ok(!csink_profile_has_ranks(p), "and a profile with such has none");
	add("ranked", 7, 1);
	is_num(csink_rank_stats_build(&stats, p, 0, CSINK_BY_FUNCTION), 0, "beside a rank");
	ok(stats.nr_ranks == 1 && stats.ranks[0] == 7, "that one is the only one");
	is_num(stats.no_rank, 4, "and the text's time is of no rank");
	end();
}

int main(void)
{
	test_figures();
	test_rows();
	test_filtered();
	test_none();
	test_text();
	return done();
}
