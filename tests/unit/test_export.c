/* Exporters: what they write for profiles that have everything, nothing, or hostile names; under sanitizers, too. */
#include <errno.h>
#include <stdlib.h>

#include "include/internal/base.h"
#include "launcher/output/calltree.h"
#include "launcher/output/export.h"
#include "launcher/output/html.h"
#include "launcher/output/thread_names.h"
#include "launcher/profile/facts.h"
#include "launcher/profile/profile.h"
#include "tests/unit/tap.h"

static struct csink_profile *empty_profile(void)
{
	struct csink_profile *p = csink_profile_create();

	csink_profile_type_add(p, "samples", "count");
	csink_profile_type_add(p, "task-clock", "nanoseconds");
	p->default_type = 1;
	return p;
}

static uint32_t function(struct csink_profile *p, const char *name, const char *symbol)
{
	struct csink_profile_function f = {.name = csink_profile_str(p, name),
					   .system_name = csink_profile_str(p, symbol),
					   .file = csink_profile_str(p, "src/made.c"),
					   .start_line = 7};

	return csink_profile_function_add(p, &f);
}

static uint32_t location(struct csink_profile *p, uint32_t mapping, uint64_t address, uint32_t inner, uint32_t outer)
{
	struct csink_profile_line lines[2] = {{.function = inner, .line = 10}, {.function = outer, .line = 20}};

	return csink_profile_location_add(p, mapping, address, lines, outer ? 2 : inner ? 1 : 0);
}

static struct csink_profile_label text_label(struct csink_profile *p, const char *key, const char *text)
{
	return (struct csink_profile_label){.key = csink_profile_str(p, key), .str = csink_profile_str(p, text)};
}

static struct csink_profile_label number_label(struct csink_profile *p, const char *key, int64_t number)
{
	return (struct csink_profile_label){.key = csink_profile_str(p, key), .num = number};
}

static void sample(struct csink_profile *p, const uint32_t *locations, uint32_t nr, int32_t pid, int32_t tid,
		   const char *process, int64_t time_ns, int64_t value)
{
	struct csink_profile_label labels[4] = {
		number_label(p, CSINK_LABEL_PID, pid), number_label(p, CSINK_LABEL_TID, tid),
		text_label(p, CSINK_LABEL_PROCESS, process), number_label(p, CSINK_LABEL_TIME, time_ns)};
	int64_t values[2] = {1, value};

	csink_profile_sample_add(p, csink_profile_stack_add(p, locations, nr),
				 csink_profile_labels_add(p, labels, time_ns ? 4 : 3), values);
}

/* Overloads, inlined calls, recursion, code in no object, a stack without frames, two processes. */
static struct csink_profile *full_profile(int64_t scale, const char *path)
{
	struct csink_profile *p = empty_profile();
	struct csink_profile_mapping m = {.start = 0x401000, .limit = 0x402000, .offset = 0x1000};
	uint32_t main_, one, two, again, jit, stack[600];

	m.file = csink_profile_str(p, path);
	m.build_id = csink_profile_str(p, "00112233445566778899aabbccddeeff00112233");
	csink_profile_mapping_add(p, &m);
	m = (struct csink_profile_mapping){.limit = INT64_MAX, .file = csink_profile_str(p, "[anon]")};
	csink_profile_mapping_add(p, &m);
	main_ = location(p, 1, 0x401000, function(p, "main", "main"), 0);
	one = location(p, 1, 0x401100, function(p, "work", "_Z4worki"), 0);
	two = location(p, 1, 0x401200, function(p, "inner", "inner"), function(p, "work", "_Z4workd"));
	again = location(p, 1, 0x401300, function(p, "again", "again"), 0);
	jit = location(p, 2, 0x7f0000001000, function(p, "<jit>;x", "<jit>;x"), 0);
	sample(p, (uint32_t[]){one, main_}, 2, 10, 10, "made", 5000000, 100 * scale);
	sample(p, (uint32_t[]){two, main_}, 2, 10, 11, "made", 6000000, 200);
	sample(p, (uint32_t[]){again, again, main_}, 3, 10, 11, "made", 7000000, 400);
	sample(p, (uint32_t[]){jit, main_}, 2, 20, 20, "child", 8000000, 800);
	sample(p, (uint32_t[]){location(p, 1, 0x403000, 0, 0), main_}, 2, 20, 20, "child", 0, 1600);
	sample(p, NULL, 0, 20, 20, "child", 0, 3200);
	for (uint32_t i = 0; i < CSINK_ARRAY_SIZE(stack); i++)
		stack[i] = again;
	sample(p, stack, CSINK_ARRAY_SIZE(stack), 10, 10, "made", 9000000, 6400);
	csink_profile_fact_add(p, CSINK_FACT_COMMAND, "made \"</script>\"");
	p->time_ns = 1000000;
	p->period = 1000000;
	return p;
}

/* What a writer writes, with a NUL behind it. */
static char *written(int (*write)(FILE *, const struct csink_profile *, uint32_t), const struct csink_profile *p,
		     size_t *bytes)
{
	char *text = NULL;
	FILE *f = open_memstream(&text, bytes);
	int err = write(f, p, p->default_type);

	fclose(f);
	if (!err)
		return text;
	free(text);
	return NULL;
}

static void has(const char *text, const char *part, const char *what)
{
	if (!ok(text && strstr(text, part), "%s", what))
		fprintf(stderr, "#   no '%s' in: %.2000s\n", part, text ? text : "(nothing)");
}

static void test_tree(void)
{
	struct csink_profile *p = full_profile(1, "/usr/bin/made");
	struct csink_calltree *tree;
	int in_order = 1, sorted = 1, err = csink_calltree_build(&tree, p);
	const struct csink_tree_node *nodes = tree->calls.nodes;
	uint32_t deepest = 0;

	is_num(err, 0, "a call tree is built");
	for (uint32_t i = 1; i < tree->calls.nr_nodes; i++) {
		deepest = nodes[i].depth > deepest ? nodes[i].depth : deepest;
		in_order &= nodes[i].parent < i;
		in_order &= nodes[i].depth == nodes[nodes[i].parent].depth + 1;
		in_order &= nodes[i].depth <= nodes[i - 1].depth + 1;
	}
	is_num(deepest, 600, "the call tree is as deep as the deepest stack");
	is_num(tree->of_stack[0][0], 0, "no stack is the root");
	ok(in_order, "a node is followed by all below it");
	for (uint32_t i = 1, last = 0; i < tree->calls.nr_nodes; i++) {
		if (nodes[i].depth != 1)
			continue;
		sorted &= !last || strcmp(tree->frames[nodes[last].row].name, tree->frames[nodes[i].row].name) <= 0;
		last = i;
	}
	ok(sorted, "siblings are sorted by name");
	csink_calltree_free(tree);
	csink_profile_free(p);
}

static void test_threads(void)
{
	struct csink_profile *p = full_profile(1, "/usr/bin/made");
	struct csink_threads threads;
	char name[64];

	is_num(csink_threads_build(&threads, p), 0, "samples are sorted by thread");
	is_num(threads.nr_threads, 3, "the samples are of three threads");
	is_num(threads.nr_rows, p->nr_samples, "the threads have every sample");
	is_num(threads.threads[2].nr_rows, 3, "each thread has its own samples");
	ok(threads.rows[threads.threads[2].first_row].time_ns == CSINK_NO_TIME, "samples without a time come first");
	is_num(threads.first_ns, 5000000, "the first sample's time is found");
	is_num(threads.last_ns, 9000000, "the last sample's time is found");
	csink_thread_describe(&threads.threads[1], name, sizeof(name));
	is_str(name, "thread 11 of made 10", "a thread is described");
	csink_threads_free(&threads);
	csink_profile_free(p);
}

static void test_formats(void)
{
	struct csink_profile *p = full_profile(1, "/usr/bin/made");
	size_t bytes;
	char *text = written(csink_export_folded, p, &bytes);

	has(text, "made;main;work(int) 100\n", "folded: overloads have their parameters");
	has(text, "made;main;work(double);inner 200\n", "folded: inlined functions are frames");
	has(text, "child;main;<jit>:x 800\n", "folded: a semicolon is no end of a frame");
	has(text, "child;main;[no symbol] 1600\n", "folded: code without a name");
	has(text, "child 3200\n", "folded: no stack");
	free(text);
	text = written(csink_export_callgrind, p, &bytes);
	has(text, "summary: 9500 6\n", "callgrind: the sum of what has a stack, the chosen event first");
	has(text, "events: task_clock samples\n", "callgrind: events");
	has(text, "fn=(5)\n10 6800 2\n", "callgrind: a recursive function counts once");
	free(text);
	text = written(csink_export_speedscope, p, &bytes);
	has(text, "\"name\":\"thread 11 of made 10, task-clock\"", "speedscope: a profile for a thread");
	free(text);
	text = written(csink_export_firefox, p, &bytes);
	has(text, "\"time\":[0.000000,4.000000]", "firefox: times are milliseconds from the first");
	free(text);
	text = written(csink_export_perf, p, &bytes);
	ok(text && bytes > 104 && !memcmp(text, "PERFILE2", 8), "perf.data begins with PERFILE2");
	free(text);
	text = written(csink_export_html, p, &bytes);
	has(text, "<title>made &#34;&#60;/script&#62;&#34;</title>", "html: the title is no markup");
	has(text, "\\u003cjit\\u003e;x", "html: nor is a name");
	free(text);
	csink_profile_free(p);
}

static void test_nothing(void)
{
	struct csink_profile *p = empty_profile(), *none = csink_profile_create();
	size_t bytes;
	char *text;

	for (uint32_t i = 0; i < csink_nr_export_formats; i++) {
		if (!strcmp(csink_export_formats[i].name, "pprof") ||
		    !strcmp(csink_export_formats[i].name, "wire")) /* go to a descriptor */
			continue;
		text = written(csink_export_formats[i].write, p, &bytes);
		ok(text != NULL, "%s: a profile without samples", csink_export_formats[i].name);
		free(text);
		text = written(csink_export_formats[i].write, none, &bytes);
		ok(text != NULL || !strcmp(csink_export_formats[i].name, "firefox"), "%s: a profile without types",
		   csink_export_formats[i].name);
		free(text);
	}
	csink_profile_free(p);
	csink_profile_free(none);
}

static void test_diff(void)
{
	struct csink_profile *p = full_profile(1, "/old/made"), *q = full_profile(5, "/new/made"), *none;
	struct csink_html_page page = {{{p, "old", 0}, {q, "new", 3}}, 2, NULL, NULL};
	char *text = NULL;
	size_t bytes;
	FILE *f = open_memstream(&text, &bytes);

	none = csink_profile_create();
	csink_profile_fact_add(p, CSINK_FACT_RUNS, "12");
	is_num(csink_html_write(f, &page), 0, "two profiles are compared");
	fflush(f);
	has(text, "{\"name\":\"old\",\"runs\":12,", "the page has the number of runs that a profile merged");
	has(text, "{\"name\":\"new\",\"runs\":3,", "the page has the given number of runs");
	ok(strstr(text, "/old/made") && !strstr(text, "/new/made"),
	   "modules are matched by the last part of their path");
	page.sides[1] = (struct csink_html_side){none, "none", 0};
	is_num(csink_html_write(f, &page), -ENOENT, "two profiles without a common event: ENOENT");
	fclose(f);
	free(text);
	csink_profile_free(p);
	csink_profile_free(q);
	csink_profile_free(none);
}

static void test_names(void)
{
	static const struct {
		const char *path, *format;
	} cases[] = {{"x.pb.gz", "pprof"},
		     {"a/b.html/x.folded", "folded"},
		     {"perf.data", "perf.data"},
		     {"callgrind.out", "callgrind"},
		     {"callgrind.out.7", "callgrind"},
		     {"x.speedscope.json", "speedscope"},
		     {"x.json", "firefox"},
		     {".html", NULL},
		     {"x", NULL},
		     {"html", NULL},
		     {"x.html.gz", NULL}};

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(cases); i++) {
		const struct csink_export_format *format = csink_export_format_of(cases[i].path);

		is_str(format ? format->name : NULL, cases[i].format, cases[i].path);
	}
	ok(!csink_export_format_named("svg"), "an unknown export format is not found");
}

int main(void)
{
	test_tree();
	test_threads();
	test_formats();
	test_nothing();
	test_diff();
	test_names();
	return done();
}
