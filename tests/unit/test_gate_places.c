/* Functions without a name: known by their places in the same build of a module, and all together in another one. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "launcher/gate/gate.h"
#include "launcher/profile/profile.h"
#include "tests/unit/tap.h"

/* A run in which main, of a program, calls two places of a library that has no symbols. */
static void take_run(struct csink_gate_data *data, enum csink_gate_side side, const char *program, const char *library,
		     const char *id)
{
	struct csink_gate_run *run = csink_gate_run_add(data, side);
	struct csink_profile *p = csink_profile_create();
	struct csink_profile_mapping mappings[2] = {{.file = csink_profile_str(p, program)},
						    {.file = csink_profile_str(p, library)}};
	const char *base = *library == '[' ? "vdso" : strrchr(library, '/') + 1;
	uint32_t ids[3];

	csink_profile_type_add(p, "task-clock", "nanoseconds");
	mappings[0].build_id = csink_profile_str(p, "aa");
	mappings[1].build_id = csink_profile_str(p, id);
	for (int i = 0; i < 3; i++) {
		struct csink_profile_function function = {0};
		struct csink_profile_line line = {0};
		char name[64] = "main";

		if (i)
			snprintf(name, sizeof(name), "[%s+0x%d0]", base, i);
		function.name = csink_profile_str(p, name);
		line.function = csink_profile_function_add(p, &function);
		if (i < 2)
			csink_profile_mapping_add(p, &mappings[i]);
		ids[i] = csink_profile_location_add(p, i ? 2 : 1, (uint64_t)i, &line, 1);
	}
	for (int i = 0; i < 3; i++) {
		uint32_t stack[2] = {ids[i], ids[0]};
		int64_t value = 1000 * (i + 1);

		csink_profile_sample_add(p, csink_profile_stack_add(p, stack, i ? 2 : 1), 0, &value);
	}
	ok(!csink_gate_take(&data->functions, p, NULL, -1, side, &run->weights) && !csink_gate_merge_places(data),
	   "a run of %s with %s, build %s, is taken", program, library, id);
	csink_profile_free(p);
}

/* What a function weighs in a run; -1: there is none of that name. */
static double weight(const struct csink_gate_data *data, uint32_t run, const char *name)
{
	for (uint32_t f = 0; f < data->functions.nr; f++) {
		if (!strcmp(data->functions.all[f].name, name))
			return csink_gate_weight(&data->runs[run].weights, f);
	}
	return -1;
}

static void test_vdso(void)
{
	struct csink_gate_data data = {0};

	take_run(&data, CSINK_GATE_OLD, "/a/bench", "[vdso]", "01");
	take_run(&data, CSINK_GATE_NEW, "/b/bench", "[vdso]", "02");
	ok(weight(&data, 0, CSINK_GATE_NO_NAME) == 5000, "places in the vdsos of two kernels are without a name");
	csink_gate_data_free(&data);
}

static void test_same(void)
{
	struct csink_gate_data data = {0};

	take_run(&data, CSINK_GATE_OLD, "/a/bench", "/lib/x.so.1", "01");
	take_run(&data, CSINK_GATE_NEW, "/b/bench", "/lib/x.so.1", "01");
	for (uint32_t run = 0; run < 2; run++) {
		ok(weight(&data, run, "[x.so.1+0x10]") == 2000 && weight(&data, run, "[x.so.1+0x20]") == 3000,
		   "the same build on both sides: places are functions");
		ok(weight(&data, run, CSINK_GATE_NO_NAME) <= 0,
		   "the same build on both sides: no place is without a name");
	}
	csink_gate_data_free(&data);
}

static void test_other(const char *library, const char *id, const char *why)
{
	struct csink_gate_data data = {0};
	double calls = 0;

	take_run(&data, CSINK_GATE_OLD, "/a/bench", "/lib/x.so.1", "01");
	take_run(&data, CSINK_GATE_NEW, "/b/bench", library, id);
	take_run(&data, CSINK_GATE_OLD, "/a/bench", "/lib/x.so.1", "01");
	for (uint32_t run = 0; run < 3; run++) {
		const struct csink_gate_weights *weights = &data.runs[run].weights;

		ok(weight(&data, run, CSINK_GATE_NO_NAME) == 5000 && weight(&data, run, "[x.so.1+0x10]") <= 0,
		   "%s: places without names are one function in run %u", why, run + 1);
		ok(weight(&data, run, "main") == 1000 && weights->sum == 6000, "a named function keeps its name");
		for (uint32_t f = 0; f < weights->nr; f++)
			ok(weights->total[f] <= weights->sum && weights->total[f] >= weights->self[f],
			   "no total is more than all, nor less than its own: %s", data.functions.all[f].name);
	}
	for (uint32_t i = 0; i < data.functions.nr_edges; i++) {
		const struct csink_gate_edge *edge = &data.functions.edges[i];

		if (!strcmp(data.functions.all[edge->callee].name, CSINK_GATE_NO_NAME))
			calls += edge->weights[0] + edge->weights[1];
	}
	ok(calls == 15000, "calls are of that function: %g", calls);
	csink_gate_data_free(&data);
}

/* Programs by two names are one module, whose places have two names. */
static void test_programs(void)
{
	struct csink_gate_data data = {0};

	data.functions.programs[0] = strdup("one");
	data.functions.programs[1] = strdup("two");
	take_run(&data, CSINK_GATE_OLD, "/lib/y.so", "/a/one", "01");
	take_run(&data, CSINK_GATE_NEW, "/lib/y.so", "/a/two", "01");
	ok(weight(&data, 0, CSINK_GATE_NO_NAME) == 5000 && weight(&data, 1, CSINK_GATE_NO_NAME) == 5000,
	   "the same build by two names: all are one function");
	csink_gate_data_free(&data);
}

/* A function of a source file is known by that, not by the module of the same name. */
static void test_interpreted(void)
{
	struct csink_gate_data data = {0};
	uint32_t score;

	take_run(&data, CSINK_GATE_OLD, "/a/bench", "/lib/x.so.1", "01");
	score = (uint32_t)csink_gate_interpreted_find(&data.functions, CSINK_GATE_OLD, "score", "/a/slow.py", 3);
	ok(!csink_gate_weights_grow(&data.runs[0].weights, data.functions.nr),
	   "a run has room for a function of Python");
	data.runs[0].weights.self[score] = 7;
	take_run(&data, CSINK_GATE_NEW, "/b/bench", "/lib/x.so.1", "02");
	ok(csink_gate_weight(&data.runs[0].weights, score) == 7,
	   "another build of a library: a function of Python keeps its time");
	csink_gate_data_free(&data);
}

int main(void)
{
	test_same();
	test_vdso();
	test_interpreted();
	test_other("/lib/x.so.1", "02", "another build");
	test_other("/lib/x.so.1", "", "a build that is not known");
	test_other("/lib/x.so.2", "01", "another name of the library");
	test_programs();
	return done();
}
