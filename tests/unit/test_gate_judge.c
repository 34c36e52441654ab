/* The gate's judgement on runs that are made up, with noise, so that the truth is known. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "launcher/commands/gate/gate_result.h"
#include "launcher/gate/looks.h"
#include "tests/unit/tap.h"

#define NR_FUNCTIONS 12

/* What a made-up program spends in each function, on both sides; f0 calls all others. */
struct program {
	double old[NR_FUNCTIONS], now[NR_FUNCTIONS];
	double noise;       /* of one function in one run, relative */
	double speed_noise; /* of a run's speed */
	double first;       /* the first run of the old side takes so many times as long */
	double outliers;    /* the chance that a function takes up to three times as long in a run */
	double unseen;      /* the chance that f11 has no samples in a run */
	bool unpaired, exact;
};

static const double shares[NR_FUNCTIONS] = {2, 25, 20, 12, 10, 8, 7, 6, 4, 3, 2, 1};
static struct csink_random dice;

static double uniform(void)
{
	return ((double)(csink_random_next(&dice) >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(void)
{
	return csink_normal_quantile(uniform());
}

static struct program plain(void)
{
	struct program program = {.noise = 0.03, .speed_noise = 0.08, .first = 1};

	for (int f = 0; f < NR_FUNCTIONS; f++)
		program.old[f] = program.now[f] = shares[f] * 1e6;
	return program;
}

static void add_run(struct csink_gate_data *data, const struct program *program, enum csink_gate_side side)
{
	struct csink_gate_run *run = csink_gate_run_add(data, side);
	double speed = program->exact ? 1 : exp(program->speed_noise * normal()), sum = 0;
	char name[8];

	if (data->nr_runs == 1 && side == CSINK_GATE_OLD)
		speed *= program->first;
	for (int f = 0; f < NR_FUNCTIONS; f++) {
		double value = side == CSINK_GATE_OLD ? program->old[f] : program->now[f];
		int64_t index;

		snprintf(name, sizeof(name), "f%d", f);
		index = csink_gate_function_find(&data->functions, name, "program");
		csink_gate_weights_grow(&run->weights, data->functions.nr);
		if (!program->exact)
			value *= speed * exp(program->noise * normal());
		if (uniform() < program->outliers)
			value *= 1 + 2 * uniform();
		if (f == 11 && uniform() < program->unseen)
			value = 0;
		run->weights.self[index] = value;
		sum += value;
		if (f && value > 0)
			csink_gate_call_add(&data->functions, 0, (uint32_t)index, side, value);
	}
	run->weights.sum = sum;
	run->weights.nr_samples = 1000;
	run->metrics[csink_gate_metric_find(data, "cpu", "CPU time", "nanoseconds")] = sum;
}

static void add_runs(struct csink_gate_data *data, const struct program *program, uint32_t nr)
{
	data->paired = !program->unpaired;
	data->exact = program->exact;
	for (uint32_t i = 0; i < nr; i++) {
		add_run(data, program, CSINK_GATE_OLD);
		add_run(data, program, CSINK_GATE_NEW);
	}
}

static const struct csink_gate_row *row_of(const struct csink_gate_data *data, const struct csink_gate_verdicts *v,
					   const char *name)
{
	for (uint32_t i = 0; i < v->nr_rows; i++) {
		const struct csink_gate_row *row = &v->rows[i];

		if (row->function >= 0 && !strcmp(data->functions.all[row->function].name, name))
			return row;
		if (row->metric >= 0 && !strcmp(data->metrics[row->metric].name, name))
			return row;
	}
	return NULL;
}

/* Many gates of one program, and what came of them. */
struct outcome {
	uint32_t named, others, command, improved; /* gates in which that was so */
	uint32_t drifts;                           /* gates in which the machine seems 5 % slower or faster */
};

static struct outcome judge_many(const struct program *program, uint32_t gates, uint32_t runs, double threshold,
				 const char *name)
{
	struct csink_gate_rules rules = {.threshold = threshold, .min_share = 0.01, .alpha = 0.01};
	struct outcome outcome = {0};

	for (uint32_t gate = 0; gate < gates; gate++) {
		struct csink_gate_data data = {0};
		struct csink_gate_verdicts v;
		bool named = false, others = false, improved = false, command = false;

		rules.seed = gate + 1;
		add_runs(&data, program, runs);
		csink_gate_judge(&data, &rules, 0, &v);
		for (uint32_t i = 0; i < v.nr_rows; i++) {
			const struct csink_gate_row *row = &v.rows[i];
			bool is_it = row->function >= 0 && !strcmp(data.functions.all[row->function].name, name);

			named |= is_it && row->verdict == CSINK_GATE_REGRESSED;
			others |= row->function >= 0 && !is_it && row->verdict == CSINK_GATE_REGRESSED;
			command |= row->metric >= 0 && row->verdict == CSINK_GATE_REGRESSED;
			improved |= row->verdict == CSINK_GATE_IMPROVED;
		}
		outcome.named += named;
		outcome.others += others;
		outcome.command += command;
		outcome.improved += improved;
		outcome.drifts += fabs(v.speed - 1) > 0.05;
		csink_gate_verdicts_free(&v);
		csink_gate_data_free(&data);
	}
	return outcome;
}

static void test_false_alarms(void)
{
	struct program program = plain();
	struct outcome outcome = judge_many(&program, 100, 12, 0.001, "none");

	/* Of 100 gates one may be wrong; that 5 or more are has a chance of 0.3 %. */
	ok(outcome.others < 5 && outcome.command < 5,
	   "nothing changed, 100 gates, almost no threshold: %u blame a function, %u the command", outcome.others,
	   outcome.command);
	program.unpaired = true;
	outcome = judge_many(&program, 10, 12, 0.001, "none");
	ok(outcome.others < 2 && outcome.command < 2,
	   "nothing changed, 10 gates without pairs: %u blame a function, %u the command", outcome.others,
	   outcome.command);
}

static void test_power(void)
{
	struct program program = plain();
	struct outcome outcome;

	program.now[3] *= 1.1;
	outcome = judge_many(&program, 40, 13, 0.01, "f3");
	ok(outcome.named >= 38, "10 %% slower, 12 %% of the time: named in %u of 40", outcome.named);
	ok(outcome.others <= 1, "10 %% slower: another function is blamed in %u", outcome.others);
	program.unpaired = true;
	outcome = judge_many(&program, 10, 13, 0.01, "f3");
	ok(outcome.named >= 9 && outcome.others <= 1,
	   "10 %% slower without pairs: named in %u of 10, another function in %u", outcome.named, outcome.others);
	/* Three fifths of the time are one function: the others must not look as if they had got faster. */
	program = plain();
	program.old[1] = 150e6;
	program.now[1] = 165e6;
	outcome = judge_many(&program, 40, 13, 0.01, "f1");
	ok(outcome.named >= 38 && outcome.others <= 1, "most of the time in the slower one: named in %u of 40",
	   outcome.named);
	ok(outcome.improved <= 1, "most of the time in the slower one: another function improves in %u",
	   outcome.improved);
	/* A function that got much faster makes no others slower. */
	program = plain();
	program.now[1] /= 3;
	outcome = judge_many(&program, 40, 13, 0.01, "none");
	ok(outcome.others < 4 && outcome.improved >= 39, "one function much faster: %u blame others, %u name it",
	   outcome.others, outcome.improved);
}

/* What disturbs single functions in single runs, and functions of which short runs have no sample. */
static void test_short(void)
{
	struct program program = plain();
	struct outcome outcome;

	program.outliers = 0.05;
	program.now[3] *= 1.1;
	outcome = judge_many(&program, 40, 48, 0.01, "f3");
	ok(outcome.named >= 36 && outcome.others <= 2,
	   "10 %% slower, each 20th value up to 3 times as large, 48 pairs: named in %u of 40, others blamed in %u",
	   outcome.named, outcome.others);
	program = plain();
	program.unseen = 0.2;
	program.old[11] = 6e6;
	program.now[11] = 9e6;
	outcome = judge_many(&program, 20, 120, 0.01, "f11");
	ok(outcome.named >= 19 && outcome.others <= 1,
	   "half as much again, no samples in a fifth of the runs: named in %u of 20, others blamed in %u",
	   outcome.named, outcome.others);
	program.now[11] = program.old[11];
	outcome = judge_many(&program, 40, 60, 0.001, "none");
	ok(outcome.others <= 2, "no samples in a fifth of the runs, nothing changed: %u of 40 blame a function",
	   outcome.others);
}

/* Three quarters of the time are one function, which changes. */
static void test_most(void)
{
	struct program program = plain();
	struct outcome outcome;

	program.speed_noise = 0.03;
	program.old[1] = 225e6;
	program.now[1] = 450e6;
	outcome = judge_many(&program, 40, 16, 0.05, "f1");
	ok(outcome.named == 40 && !outcome.others && !outcome.improved,
	   "75 %% of the time in a function that doubles: named in %u of 40, others blamed in %u, others faster in %u",
	   outcome.named, outcome.others, outcome.improved);
	is_num(outcome.drifts, 0, "a function with 75 % of the time doubles: that is no drift of the machine");
	program.first = 8;
	outcome = judge_many(&program, 40, 16, 0.05, "f1");
	ok(outcome.named >= 38 && !outcome.others && !outcome.improved,
	   "one run 8 times slower: named in %u of 40, others blamed in %u, others faster in %u", outcome.named,
	   outcome.others, outcome.improved);
	program.first = 1;
	program.now[1] = 112e6;
	outcome = judge_many(&program, 40, 16, 0.05, "none");
	ok(!outcome.others && outcome.improved == 40,
	   "75 %% of the time in a function that takes half: %u of 40 blame others, %u name it", outcome.others,
	   outcome.improved);
	is_num(outcome.drifts, 0, "a function with 75 % of the time takes half: that is no drift of the machine");
	/* So much of the time that the rest says too little. */
	program.old[1] = 2000e6;
	program.now[1] = 1000e6;
	outcome = judge_many(&program, 40, 16, 0.05, "none");
	ok(outcome.others <= 1 && outcome.improved == 40,
	   "95 %% of the time in a function that takes half: %u of 40 blame others, %u name it", outcome.others,
	   outcome.improved);
}

static void add_value(struct csink_gate_data *data, struct csink_gate_run *run, int64_t owner, int64_t function,
		      double value)
{
	struct csink_gate_weights *weights = &run->weights;

	csink_gate_weights_grow(weights, data->functions.nr);
	value *= exp(0.03 * normal());
	weights->self[function] += value;
	weights->sum += value;
	if (owner < 0)
		return;
	weights->parts = realloc(weights->parts, (weights->nr_parts + 1) * sizeof(*weights->parts));
	weights->parts[weights->nr_parts++] = (struct csink_gate_part){(uint32_t)owner, (uint32_t)function, value};
}

/* Four interpreted functions of equal cost; most of it is in the interpreter, in two functions. */
static void add_interpreted(struct csink_gate_data *data, enum csink_gate_side side, double change)
{
	struct csink_gate_run *run = csink_gate_run_add(data, side);

	for (int i = 0; i < 4; i++) {
		char name[8] = {(char)('a' + i)};
		int64_t owner = csink_gate_interpreted_find(&data->functions, side, name, "script", i + 1);
		double times = side == CSINK_GATE_NEW && !i ? change : 1;

		add_value(data, run, owner, owner, 5e6 * times);
		add_value(data, run, owner, csink_gate_function_find(&data->functions, "allocate", "interpreter"),
			  10e6 * times);
		add_value(data, run, owner, csink_gate_function_find(&data->functions, "evaluate", "interpreter"),
			  10e6 * times);
	}
	add_value(data, run, -1, csink_gate_function_find(&data->functions, "load", "interpreter"), 8e6);
	run->metrics[csink_gate_metric_find(data, "cpu", "CPU time", "nanoseconds")] = run->weights.sum;
}

static void test_interpreted(void)
{
	struct csink_gate_rules rules = {.threshold = 0.05, .min_share = 0.01, .alpha = 0.01, .seed = 1};
	struct csink_gate_data data = {.paired = true};
	struct csink_gate_verdicts v;

	for (int i = 0; i < 16; i++) {
		add_interpreted(&data, CSINK_GATE_OLD, 2);
		add_interpreted(&data, CSINK_GATE_NEW, 2);
	}
	csink_gate_judge(&data, &rules, 0, &v);
	is_num(row_of(&data, &v, "a")->verdict, CSINK_GATE_REGRESSED, "an interpreted function that doubles is named");
	ok(fabs(row_of(&data, &v, "a")->ratio - 2) < 0.1, "an interpreted function that doubles: by %g",
	   row_of(&data, &v, "a")->ratio);
	is_num(row_of(&data, &v, "b")->verdict, CSINK_GATE_UNCHANGED, "another interpreted function is unchanged");
	is_num(row_of(&data, &v, "load")->verdict, CSINK_GATE_UNCHANGED,
	       "what the interpreter does for itself is unchanged");
	ok(fabs(v.speed - 1) < 0.05, "what the interpreter does for a slower function is no drift of the machine: %g",
	   v.speed);
	csink_gate_verdicts_free(&v);
	csink_gate_data_free(&data);
}

static void test_all_slower(void)
{
	struct csink_gate_rules rules = {.threshold = 0.05, .min_share = 0.01, .alpha = 0.01, .seed = 1};
	struct program program = plain();
	struct csink_gate_data data = {0};
	struct csink_gate_verdicts v;

	for (int f = 0; f < NR_FUNCTIONS; f++)
		program.now[f] *= 1.5;
	add_runs(&data, &program, 14);
	csink_gate_judge(&data, &rules, 0, &v);
	is_num(row_of(&data, &v, "cpu")->verdict, CSINK_GATE_REGRESSED, "all slower: the command is a regression");
	ok(isnan(v.speed), "all slower: the machine's drift is unknown");
	is_num(row_of(&data, &v, "f1")->verdict, CSINK_GATE_REGRESSED, "functions are judged by their cost then");
	ok(row_of(&data, &v, "f1")->by_cost, "all slower: the row is judged by cost");
	csink_gate_verdicts_free(&v);
	csink_gate_data_free(&data);
}

static void test_moved(void)
{
	struct csink_gate_rules rules = {.threshold = 0.05, .min_share = 0.01, .alpha = 0.01, .seed = 1};
	struct program program = plain();
	struct csink_gate_data data = {0};
	struct csink_gate_verdicts v;

	/* f2 is split: half of it is f11 now. */
	program.old[11] = 0;
	program.now[11] = program.now[2] = program.old[2] / 2;
	add_runs(&data, &program, 20);
	csink_gate_judge(&data, &rules, 0, &v);
	is_num(row_of(&data, &v, "f11")->verdict, CSINK_GATE_UNCHANGED, "half of a split function is no regression");
	is_num(row_of(&data, &v, "f2")->verdict, CSINK_GATE_UNCHANGED,
	       "the other half of a split function is no improvement");
	ok(row_of(&data, &v, "f11")->note && strstr(row_of(&data, &v, "f11")->note, "f11 got slower, f2 faster"),
	   "a split function's note names what moved");
	csink_gate_verdicts_free(&v);
	csink_gate_data_free(&data);
	/* The halves cost half as much again. */
	program.now[11] = program.now[2] = program.old[2] * 0.75;
	add_runs(&data, &program, 20);
	csink_gate_judge(&data, &rules, 0, &v);
	is_num(row_of(&data, &v, "f11")->verdict, CSINK_GATE_REGRESSED, "a split that costs more is a regression");
	csink_gate_verdicts_free(&v);
	csink_gate_data_free(&data);
	/* All of it is somewhere else, under another name. */
	program.now[2] = 0;
	program.now[11] = program.old[2];
	add_runs(&data, &program, 20);
	csink_gate_judge(&data, &rules, 0, &v);
	is_num(row_of(&data, &v, "f11")->verdict, CSINK_GATE_UNCHANGED, "a function with a new name is no regression");
	csink_gate_verdicts_free(&v);
	csink_gate_data_free(&data);
	/* What is simply new is one. */
	program.now[2] = program.old[2];
	add_runs(&data, &program, 20);
	csink_gate_judge(&data, &rules, 0, &v);
	is_num(row_of(&data, &v, "f11")->verdict, CSINK_GATE_REGRESSED,
	       "work that was not there before is a regression");
	ok(isinf(row_of(&data, &v, "f11")->ratio), "new work has an infinite ratio");
	csink_gate_verdicts_free(&v);
	csink_gate_data_free(&data);
}

/* The verdict on f3, which got 20 % slower, where f1 takes 10 % more in some of 20 pairs and as much less in the
 * others: all of one rank. */
static enum csink_gate_verdict beside_neighbour(int nr_slower)
{
	struct csink_gate_rules rules = {.threshold = 0.05, .min_share = 0.01, .alpha = 0.01, .seed = 1};
	struct program program = plain();
	struct csink_gate_data data = {0};
	struct csink_gate_verdicts v;
	enum csink_gate_verdict verdict;

	program.noise = program.speed_noise = 0;
	program.now[3] *= 1.2;
	for (int i = 0; i < 20; i++) {
		program.now[1] = program.old[1] * (i < nr_slower ? 1.1 : 1 / 1.1);
		add_runs(&data, &program, 1);
	}
	csink_gate_judge(&data, &rules, 0, &v);
	verdict = row_of(&data, &v, "f3")->verdict;
	csink_gate_verdicts_free(&v);
	csink_gate_data_free(&data);
	return verdict;
}

static void test_neighbour(void)
{
	is_num(beside_neighbour(0), CSINK_GATE_UNCHANGED, "cost that a neighbour lost in all pairs has moved");
	is_num(beside_neighbour(3), CSINK_GATE_REGRESSED,
	       "a neighbour that is cheaper in 17 of 20 pairs (q = 0.015) does not explain a regression");
}

static void test_open(void)
{
	struct csink_gate_rules rules = {.threshold = 0.05, .min_share = 0.01, .alpha = 0.01, .seed = 1};
	struct program program = plain();
	struct csink_gate_data data = {0};
	struct csink_gate_verdicts v;

	is_num(csink_gate_judge(&data, &rules, 0, &v), -61, "no runs: no data");
	program.now[1] *= 2;
	program.noise = 0.001;
	add_runs(&data, &program, 2);
	csink_gate_judge(&data, &rules, 0, &v);
	is_num(row_of(&data, &v, "f1")->verdict, CSINK_GATE_INCONCLUSIVE, "two pairs are inconclusive, however clear");
	ok(row_of(&data, &v, "f1")->runs_needed >= 6, "the number of runs needed is given: %u",
	   row_of(&data, &v, "f1")->runs_needed);
	ok(row_of(&data, &v, "f1")->can_regress && v.nr_open > 0, "an inconclusive function may be a regression");
	ok(v.smallest_q > v.alpha && v.least_runs > 2 && v.steady_runs > v.least_runs,
	   "the smallest q is %g, and %u pairs are needed, %u where one may fail", v.smallest_q, v.least_runs,
	   v.steady_runs);
	csink_gate_verdicts_free(&v);
	add_runs(&data, &program, 10);
	csink_gate_judge(&data, &rules, 0, &v);
	is_num(row_of(&data, &v, "f1")->verdict, CSINK_GATE_REGRESSED, "twelve pairs show the regression");
	is_num(row_of(&data, &v, "f5")->verdict, CSINK_GATE_UNCHANGED, "twelve pairs settle the other functions");
	is_num(v.nr_open, 0, "twelve pairs leave no question open");
	ok(v.smallest_q < v.alpha && v.least_runs <= 12, "q can be small enough");
	csink_gate_verdicts_free(&v);
	csink_gate_data_free(&data);
}

/* Looking again and again, and stopping as soon as something is found, must not find more than once would. */
static void test_looks(void)
{
	struct csink_gate_rules rules = {.threshold = 0.001, .min_share = 0.01, .alpha = 0.01};
	struct program program = plain();
	uint32_t found = 0;

	for (uint32_t gate = 0; gate < 20; gate++) {
		struct csink_gate_data data = {0};
		struct csink_gate_looks looks = {0};
		bool any = false;

		rules.seed = gate + 1;
		for (uint32_t look = 1; look <= 4; look++) {
			struct csink_gate_verdicts v;

			add_runs(&data, &program, look == 1 ? 12 : 6);
			csink_gate_judge(&data, &rules, csink_gate_looks_level(&looks, rules.alpha, look / 4.0), &v);
			any |= v.counts[CSINK_GATE_REGRESSED] > 0;
			csink_gate_verdicts_free(&v);
		}
		found += any;
		csink_gate_data_free(&data);
	}
	ok(found <= 1, "four looks at nothing, 20 times: %u find something", found);
}

static void test_exact(void)
{
	struct csink_gate_rules rules = {.threshold = 0.01, .min_share = 0.01, .alpha = 0.01, .seed = 1};
	struct program program = plain();
	struct csink_gate_data data = {0};
	struct csink_gate_verdicts v;

	program.exact = true;
	program.now[4] *= 1.02;
	program.now[5] *= 1.005;
	program.now[6] *= 0.9;
	add_runs(&data, &program, 2);
	csink_gate_judge(&data, &rules, 0, &v);
	is_num(row_of(&data, &v, "f4")->verdict, CSINK_GATE_REGRESSED, "exact counts: 2 % more, found with two runs");
	ok(fabs(row_of(&data, &v, "f4")->ratio - 1.02) < 1e-9, "exact counts: the ratio is exact");
	is_num(row_of(&data, &v, "f5")->verdict, CSINK_GATE_UNCHANGED, "half a percent is below the threshold");
	is_num(row_of(&data, &v, "f6")->verdict, CSINK_GATE_IMPROVED, "a tenth less is an improvement");
	is_num(row_of(&data, &v, "f7")->verdict, CSINK_GATE_UNCHANGED,
	       "exact counts: a function without counts is unchanged");
	csink_gate_verdicts_free(&v);
	csink_gate_data_free(&data);
}

/* What a gate of these runs prints, in two formats. */
static char *printed(const struct csink_gate_data *data, uint64_t seed)
{
	struct csink_gate_rules rules = {.threshold = 0.05, .min_share = 0.01, .alpha = 0.01, .seed = seed};
	struct csink_gate_verdicts v;
	struct csink_gate_result result = {
		.commands = {"old", "new"}, .how = "vs", .data = data, .rules = &rules, .verdicts = &v, .engine = ""};
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	snprintf(result.unit, sizeof(result.unit), "nanoseconds");
	csink_gate_judge(data, &rules, 0, &v);
	csink_gate_print_tap(out, &result);
	/* The seed is printed in JSON, too: it is no difference. */
	rules.seed = 0;
	csink_gate_print_json(out, &result);
	csink_gate_print_markdown(out, &result);
	fclose(out);
	csink_gate_verdicts_free(&v);
	return text;
}

/* The same runs with the same seed: the same to the byte. More pairs than are counted in all ways, so that chance is
 * drawn. */
static void test_seed(bool unpaired)
{
	const char *what = unpaired ? "a baseline" : "pairs";
	struct program program = plain();
	struct csink_gate_data data = {0};
	char *first, *again, *other;

	program.unpaired = unpaired;
	program.now[3] *= 1.1;
	/* So seldom that pairs have no logarithms: then sums are permuted. */
	program.unseen = unpaired ? 0 : 0.6;
	program.old[11] = program.now[11] = 8e6;
	add_runs(&data, &program, unpaired ? 24 : CSINK_PERMUTE_EXACT + 2);
	first = printed(&data, 7);
	again = printed(&data, 7);
	other = printed(&data, 8);
	ok(strlen(first) > 3000 && strstr(first, "f3"), "%s: verdicts are printed", what);
	is_str(again, first, "the same runs and seed give the same output to the byte");
	ok(strcmp(strstr(other, "\nok 1"), strstr(first, "\nok 1")) != 0, "another seed gives other draws");
	free(first);
	free(again);
	free(other);
	csink_gate_data_free(&data);
}

int main(void)
{
	csink_random_init(&dice, 11);
	test_false_alarms();
	test_power();
	test_short();
	test_most();
	test_interpreted();
	test_all_slower();
	test_moved();
	test_neighbour();
	test_open();
	test_looks();
	test_exact();
	test_seed(false);
	test_seed(true);
	return done();
}
