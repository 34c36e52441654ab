/* Interpreted functions in a gate: which of the two sides' are one, in another directory, line, or script. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "launcher/gate/judge_impl.h"
#include "launcher/profile/profile.h"
#include "tests/unit/tap.h"

struct function {
	const char *file, *name;
	int64_t line;
};

static uint32_t location(struct csink_profile *p, const struct function *f)
{
	struct csink_profile_function function = {.name = csink_profile_str(p, f->name),
						  .system_name = csink_profile_str(p, f->name),
						  .file = f->file ? csink_profile_str(p, f->file) : 0,
						  .start_line = f->line};
	struct csink_profile_mapping mapping = {.file = function.file};
	struct csink_profile_line line = {.function = csink_profile_function_add(p, &function), .line = f->line + 1};

	return csink_profile_location_add(p, csink_profile_mapping_add(p, &mapping), 0, &line, 1);
}

/* A run in which the first function calls each of the others. The i-th has i milliseconds for itself. */
static void take_run(struct csink_gate_data *data, enum csink_gate_side side, const struct function *functions)
{
	struct csink_gate_run *run = csink_gate_run_add(data, side);
	struct csink_profile *p = csink_profile_create();
	uint32_t ids[16];

	csink_profile_type_add(p, "task-clock", "nanoseconds");
	for (int i = 0; functions[i].name; i++) {
		uint32_t stack[2];
		int64_t value = 1000000LL * i;

		ids[i] = location(p, &functions[i]);
		stack[0] = ids[i];
		stack[1] = ids[0];
		if (i)
			csink_profile_sample_add(p, csink_profile_stack_add(p, stack, 2), 0, &value);
	}
	ok(!csink_gate_take(&data->functions, p, NULL, -1, side, &run->weights), "a run of %s is taken",
	   functions[0].file);
	csink_profile_free(p);
}

/* What a function that begins at a line weighs in a run, in milliseconds; the weights of several are added. */
static double weight(const struct csink_gate_data *data, uint32_t run, const char *name, int64_t line)
{
	double sum = 0;

	for (uint32_t f = 0; f < data->functions.nr; f++) {
		if (!strcmp(data->functions.all[f].name, name) && data->functions.all[f].line == line)
			sum += csink_gate_weight(&data->runs[run].weights, f);
	}
	return sum / 1e6;
}

static uint32_t find(const struct csink_gate_data *data, const char *name, int64_t line)
{
	uint32_t f = 0;

	while (f < data->functions.nr &&
	       (strcmp(data->functions.all[f].name, name) != 0 || data->functions.all[f].line != line))
		f++;
	return f;
}

static double calls(const struct csink_gate_data *data, const char *name, int side)
{
	double sum = 0;

	for (uint32_t i = 0; i < data->functions.nr_edges; i++) {
		const struct csink_gate_edge *edge = &data->functions.edges[i];

		if (!strcmp(data->functions.all[edge->callee].name, name))
			sum += edge->weights[side];
	}
	return sum / 1e6;
}

static void test_versions(void)
{
	static const struct function old[] = {{"/x/a.py", "<module>", 0},
					      {"/x/a.py", "score", 3},
					      {"/x/u.py", "get", 5},
					      {"/x/v.py", "get", 5},
					      {"/x/a.py", "gone", 40},
					      {"<string>", "f", 1},
					      {0}},
				     new[] = {{"/y/b.py", "<module>", 0},
					      {"/y/b.py", "score", 4},
					      {"/y/u.py", "get", 7},
					      {"/y/v.py", "get", 5},
					      {"/y/b.py", "made", 50},
					      {"<string>", "f", 1},
					      {0}};
	struct csink_gate_data data = {0}, view;
	uint32_t nr, *joined;

	take_run(&data, CSINK_GATE_OLD, old);
	take_run(&data, CSINK_GATE_NEW, new);
	nr = data.functions.nr;
	take_run(&data, CSINK_GATE_OLD, old);
	is_num(data.functions.nr, nr, "another run of a side adds no function");
	if (!ok(!csink_gate_versions_join(&data, &view, &joined), "the sides are joined"))
		return;
	for (uint32_t run = 0; run < 3; run++) {
		ok(fabs(weight(&view, run, "score", 4) - 1) < 1e-9 && weight(&view, run, "score", 3) == 0,
		   "a function that moved has its weight at the line of the new side");
		ok(fabs(weight(&view, run, "get", 7) - 2) < 1e-9 && fabs(weight(&view, run, "get", 5) - 3) < 1e-9,
		   "functions of one name in two files stay apart");
		ok(fabs(weight(&view, run, "f", 1) - 5) < 1e-9, "a function without a file is matched by its name");
		ok(fabs(weight(&view, run, "gone", 40) + weight(&view, run, "made", 50) - 4) < 1e-9,
		   "functions of one side only are not matched");
	}
	ok(fabs(calls(&view, "score", 0) - 2) < 1e-9 && fabs(calls(&view, "score", 1) - 1) < 1e-9,
	   "calls are those of the joined function");
	ok(fabs(weight(&data, 0, "score", 3) - 1) < 1e-9, "the figures that were taken stay as they are");
	is_num(joined[find(&data, "score", 3)], find(&data, "score", 4), "it is known which function each one became");
	free(joined);
	csink_gate_versions_free(&view);
	csink_gate_data_free(&data);
}

/* ---- what is named ---- */

/* A run of which most time is the interpreter's: for a/util.py's work(), which takes as long as is given, and the same
 * again in a function of the interpreter; b/util.py's takes 15 ms, a function that works for none of them 5 ms. */
static void take_below(struct csink_gate_data *data, enum csink_gate_side side, int64_t ms)
{
	static const struct function functions[] = {
		{"/x/a/util.py", "work", 3}, {"/x/b/util.py", "work", 3}, {NULL, "execute", 0}, {NULL, "other", 0}};
	const int64_t values[] = {ms, 15, 3 * ms, 5};
	struct csink_gate_run *run = csink_gate_run_add(data, side);
	struct csink_profile *p = csink_profile_create();
	int metric = csink_gate_metric_find(data, "cpu", "CPU time", "nanoseconds");
	uint32_t work = location(p, &functions[0]);

	csink_profile_type_add(p, "task-clock", "nanoseconds");
	for (uint32_t i = 0; i < 4; i++) {
		uint32_t stack[2] = {i ? location(p, &functions[i]) : work, work};
		int64_t value = 1000000 * values[i];

		csink_profile_sample_add(p, csink_profile_stack_add(p, stack, i == 2 ? 2 : 1), 0, &value);
	}
	run->metrics[metric] = (double)(1000000 * (4 * ms + 20));
	csink_gate_take(&data->functions, p, NULL, -1, side, &run->weights);
	csink_profile_free(p);
}

static const char *function_of(const struct csink_gate_data *data, const struct csink_gate_verdicts *v, int64_t f,
			       char text[64])
{
	snprintf(text, 64, "%s in %s", data->functions.all[f].name, v->modules[f]);
	return text;
}

static void test_named(void)
{
	static const char *const rows[] = {"work in a/util.py", "work in b/util.py", "other in ", "execute in "};
	struct csink_gate_rules rules = {.threshold = 0.05, .min_share = 0.01, .alpha = 0.01, .seed = 1};
	struct csink_gate_data data = {.paired = true};
	struct csink_gate_verdicts v;
	char text[64];

	for (int i = 0; i < 12; i++) {
		take_below(&data, CSINK_GATE_OLD, 20);
		take_below(&data, CSINK_GATE_NEW, 40);
	}
	if (!ok(!csink_gate_judge(&data, &rules, 0, &v), "runs of interpreted and native functions are judged"))
		return;
	is_num(v.nr_rows, 5, "there is a row for the CPU time, and one for each function");
	for (uint32_t i = 0; i < 4 && v.nr_rows == 5; i++)
		is_str(function_of(&data, &v, v.rows[i + 1].function, text), rows[i],
		       "what an interpreter runs for a function comes last, files of one name have their directory");
	if (ok(v.moves.nr == 2, "two functions took the time"))
		is_str(function_of(&data, &v, v.moves.all[0].function, text), rows[0],
		       "the function that people wrote comes first, though the interpreter's took more");
	csink_gate_verdicts_free(&v);
	csink_gate_data_free(&data);
}

/* main() calls outer(), for which the interpreter works, and which calls inner(), which calls a library. */
static void test_folded(void)
{
	static const struct function functions[] = {{NULL, "copy", 0},
						    {"/x/util.py", "inner", 7},
						    {NULL, "execute", 0},
						    {"/x/util.py", "outer", 3},
						    {NULL, "main", 0}};
	struct csink_gate_data data = {.functions.folds_native = true};
	struct csink_gate_run *run = csink_gate_run_add(&data, CSINK_GATE_OLD);
	struct csink_profile *p = csink_profile_create();
	uint32_t ids[5];

	csink_profile_type_add(p, "task-clock", "nanoseconds");
	for (int i = 0; i < 5; i++)
		ids[i] = location(p, &functions[i]);
	/* What is innermost in turn: copy(), inner(), execute(), outer(), main(). */
	for (uint32_t i = 0; i < 5; i++) {
		int64_t value = 1000000LL << i;

		csink_profile_sample_add(p, csink_profile_stack_add(p, ids + i, 5 - i), 0, &value);
	}
	if (ok(!csink_gate_take(&data.functions, p, NULL, -1, CSINK_GATE_OLD, &run->weights), "a run is taken")) {
		is_num((int64_t)weight(&data, 0, "inner", 7), 1 + 2,
		       "a library's time is that of the function that called it");
		is_num((int64_t)weight(&data, 0, "outer", 3), 4 + 8,
		       "the interpreter's time is that of the function it works for");
		is_num((int64_t)weight(&data, 0, "main", 1), 16,
		       "what no interpreted function called has its own time");
		is_num((int64_t)weight(&data, 0, "execute", 1), 0, "what is folded has none");
		is_num((int64_t)calls(&data, "inner", 0), 1 + 2,
		       "the interpreted function's caller is the next one outwards");
		is_num((int64_t)calls(&data, "outer", 0), 1 + 2 + 4 + 8, "the outermost one has its native caller");
	}
	csink_profile_free(p);
	csink_gate_data_free(&data);
}

int main(void)
{
	test_versions();
	test_named();
	test_folded();
	return done();
}
