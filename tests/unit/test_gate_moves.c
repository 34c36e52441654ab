/* Where a slower command's time went, of runs whose profiles are made up. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "launcher/commands/gate/gate_result.h"
#include "launcher/profile/profile.h"
#include "tests/unit/tap.h"

static struct csink_random dice;

/* A stack of functions of one letter, outermost first, and the time in it on each side. */
struct spent {
	const char *stack;
	int64_t ns[2];
};

static uint32_t place_of(struct csink_profile *p, char name)
{
	char text[2] = {name, '\0'};
	struct csink_profile_function function = {.name = csink_profile_str(p, text)};
	struct csink_profile_line line = {.function = csink_profile_function_add(p, &function)};

	return csink_profile_location_add(p, 0, (uint64_t)name, &line, 1);
}

/* A run of one side, each stack a bit off. */
static void add_run(struct csink_gate_data *data, const struct spent *spent, uint32_t nr, enum csink_gate_side side)
{
	struct csink_gate_run *run = csink_gate_run_add(data, side);
	struct csink_profile *p = csink_profile_create();
	int64_t sum = 0;

	csink_profile_type_add(p, "task-clock", "nanoseconds");
	for (uint32_t i = 0; i < nr; i++) {
		int64_t value = spent[i].ns[side] * (int64_t)(980 + csink_random_below(&dice, 41)) / 1000;
		uint32_t ids[16], depth = (uint32_t)strlen(spent[i].stack);

		for (uint32_t k = 0; k < depth; k++)
			ids[k] = place_of(p, spent[i].stack[depth - 1 - k]);
		csink_profile_sample_add(p, csink_profile_stack_add(p, ids, depth), 0, &value);
		sum += value;
	}
	csink_gate_take(&data->functions, p, NULL, -1, side, &run->weights);
	run->metrics[csink_gate_metric_find(data, "cpu", "CPU time", "nanoseconds")] = (double)sum;
	csink_profile_free(p);
}

static void judge(struct csink_gate_data *data, const struct spent *spent, uint32_t nr, struct csink_gate_verdicts *v)
{
	struct csink_gate_rules rules = {.threshold = 0.05, .min_share = 0.01, .alpha = 0.01, .seed = 1};

	data->paired = true;
	for (int i = 0; i < 16; i++) {
		add_run(data, spent, nr, CSINK_GATE_OLD);
		add_run(data, spent, nr, CSINK_GATE_NEW);
	}
	csink_gate_judge(data, &rules, 0, v);
}

static const char *name_of(const struct csink_gate_data *data, const struct csink_gate_move *move)
{
	return data->functions.all[move->function].name;
}

/* What the gate prints of it, in a line. */
static const char *sentence(const struct csink_gate_data *data, const struct csink_gate_verdicts *v,
			    const struct csink_gate_row *row)
{
	struct csink_gate_result r = {.data = data, .verdicts = v, .unit = "nanoseconds"};
	static char text[2048];

	return csink_gate_where(&r, row, text, sizeof(text)) < 0 ? "nothing" : text;
}

static void end(struct csink_gate_data *data, struct csink_gate_verdicts *v)
{
	csink_gate_verdicts_free(v);
	csink_gate_data_free(data);
}

/* An interpreter, i, whose program's function s got slower: in many of i's helpers, each a bit. */
static void test_spread(void)
{
	static const struct spent spent[] = {{"mir", {20000000, 20000000}},  {"mi", {30000000, 30000000}},
					     {"misia", {4000000, 6000000}},  {"misib", {4000000, 6000000}},
					     {"misic", {4000000, 6000000}},  {"misid", {3000000, 4500000}},
					     {"misi", {20000000, 30000000}}, {"mie", {15000000, 14000000}}};
	struct csink_gate_data data = {0};
	struct csink_gate_verdicts v;

	judge(&data, spent, CSINK_ARRAY_SIZE(spent), &v);
	is_num(v.moves.nr, CSINK_GATE_MAX_MOVES, "the maximum number of functions is named");
	is_str(name_of(&data, &v.moves.all[0]), "i", "the interpreter's function comes first, with most of the change");
	ok(fabs(v.moves.all[0].delta - 10e6) < 1e6 && v.moves.all[0].interval.low > 8e6 &&
		   v.moves.all[0].interval.high < 12e6,
	   "the largest function has its interval: %g (%g to %g)", v.moves.all[0].delta, v.moves.all[0].interval.low,
	   v.moves.all[0].interval.high);
	for (uint32_t i = 1; i < v.moves.nr; i++)
		ok(strchr("abcd", *name_of(&data, &v.moves.all[i])) && v.moves.all[i].delta > 0 &&
			   v.moves.all[i].delta <= v.moves.all[i - 1].delta,
		   "other functions follow, the largest first: %s", name_of(&data, &v.moves.all[i]));
	ok(fabs(v.moves.sum - 16.5e6) < 1e6, "the sum is the command's whole change");
	ok(v.moves.has_within, "an enclosing function that has most of the change is found");
	is_str(name_of(&data, &v.moves.within), "s",
	       "the enclosing function is the program's, which has no time of its own");
	ok(fabs(v.moves.within.delta - 17.5e6) < 1e6 && v.moves.within.interval.low > 15e6,
	   "the enclosing function has the whole change: %g", v.moves.within.delta);
	ok(strstr(sentence(&data, &v, NULL), " ms in all functions: i +10.") != NULL,
	   "the sentence has the sum and the functions: %s", sentence(&data, &v, NULL));
	ok(strstr(sentence(&data, &v, NULL), "; most of it, with what it calls, in s +17.") != NULL,
	   "the sentence has the enclosing function");
	is_str(sentence(&data, &v, &v.rows[v.nr_rows - 1]), "nothing", "a function's row has no sentence");
	end(&data, &v);
}

/* One function alone: it is named once. */
static void test_one(void)
{
	static const struct spent spent[] = {
		{"ma", {30000000, 60000000}}, {"mb", {50000000, 50000000}}, {"mc", {1000, 101000}}};
	struct csink_gate_data data = {0};
	struct csink_gate_verdicts v;

	judge(&data, spent, CSINK_ARRAY_SIZE(spent), &v);
	is_str(v.moves.nr ? name_of(&data, &v.moves.all[0]) : "none", "a", "one function got slower: it is named");
	for (uint32_t i = 0; i < v.moves.nr; i++)
		ok(strcmp(name_of(&data, &v.moves.all[i]), "c") != 0, "a negligible change is not named");
	ok(!v.moves.has_within, "a function that has the time itself has no enclosing one");
	end(&data, &v);
}

/* A faster function is named as well. */
static void test_faster(void)
{
	static const struct spent spent[] = {{"ma", {60000000, 30000000}}, {"mb", {50000000, 51000000}}};
	struct csink_gate_data data = {0};
	struct csink_gate_verdicts v;

	judge(&data, spent, CSINK_ARRAY_SIZE(spent), &v);
	ok(v.moves.nr == 1 && v.moves.all[0].interval.high < 0 && !strcmp(name_of(&data, &v.moves.all[0]), "a"),
	   "a function that got faster is named alone, without the one that got slower");
	ok(strstr(sentence(&data, &v, &v.rows[0]), "a -30.") || strstr(sentence(&data, &v, &v.rows[0]), "a -29."),
	   "a command that got faster has its functions named: %s", sentence(&data, &v, &v.rows[0]));
	end(&data, &v);
}

/* A function that calls itself has its time once. */
static void test_recursion(void)
{
	static const struct spent spent[] = {{"maaaab", {10000000, 10000000}}, {"maa", {20000000, 20000000}}};
	struct csink_gate_data data = {0};
	struct csink_gate_verdicts v;
	int64_t m, a, b;

	judge(&data, spent, CSINK_ARRAY_SIZE(spent), &v);
	is_num(v.moves.nr, 0, "without changes no function is named");
	is_str(sentence(&data, &v, NULL), "nothing", "without changes there is no sentence");
	m = csink_gate_function_find(&data.functions, "m", "");
	a = csink_gate_function_find(&data.functions, "a", "");
	b = csink_gate_function_find(&data.functions, "b", "");
	ok(fabs(data.runs[0].weights.total[a] - data.runs[0].weights.sum) < 1,
	   "a function that calls itself has the whole time once");
	ok(fabs(data.runs[0].weights.total[m] - data.runs[0].weights.sum) < 1,
	   "the caller of a recursive function has the whole time, too");
	ok(fabs(data.runs[0].weights.total[b] - data.runs[0].weights.self[b]) < 1,
	   "a leaf function's total is its own samples");
	end(&data, &v);
}

int main(void)
{
	csink_random_init(&dice, 5);
	test_spread();
	test_one();
	test_faster();
	test_recursion();
	return done();
}
