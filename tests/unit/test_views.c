/* What a report is made of: rows, trees, filters, picked functions, derived figures, folded stacks. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/output/folded.h"
#include "launcher/output/pprof.h"
#include "launcher/output/report.h"
#include "launcher/output/report_table.h"
#include "launcher/profile/derived.h"
#include "launcher/profile/facts.h"
#include "launcher/profile/filter.h"
#include "launcher/profile/pick.h"
#include "launcher/profile/tree.h"
#include "tests/unit/tap.h"

/* A point's name with what it is about in front. */
static const char *about(const char *what, const char *point)
{
	static char text[512];

	snprintf(text, sizeof(text), "%s: %s", what, point);
	return text;
}

static struct csink_profile *folded(const char *text)
{
	struct csink_profile *p = NULL;
	char why[128] = "";

	if (csink_pprof_parse(text, strlen(text), &p, why, sizeof(why)))
		printf("# %s\n", why);
	return p;
}

/* ---- folded stacks ---- */

static void refuses(const char *name, const void *text, size_t len, const char *want)
{
	struct csink_profile *p;
	char why[128] = "";

	is_num(csink_folded_parse(text, len, &p, why, sizeof(why)), -EBADMSG, name);
	is_str(why, want, about(name, "the reason"));
}

static void test_folded(void)
{
	struct csink_profile *p =
		folded("# made by hand\n\nmain;std::pair<int, int>::f(int) 3\r\nmain;g 2.75\nmain;g 1\n;; 4\n");
	const struct csink_profile_range *stack;

	ok(p && p->nr_samples == 3, "equal stacks are one sample, and so are empty ones");
	stack = &p->stacks[p->samples[0].stack];
	is_num(stack->nr, 2, "the stack has two functions");
	is_str(csink_profile_text(
		       p, p->functions[p->lines[p->locations[p->stack_ids[stack->first]].first_line].function].name),
	       "std::pair<int, int>::f(int)", "the last one is the innermost; blanks are its own");
	is_num(csink_profile_values(p, 1)[0], 3, "decimals are dropped, the rest is added up");
	is_num(p->samples[2].stack, 0, "no function at all is an empty stack");
	csink_profile_free(p);
	refuses("a line without a number", "a;b 1\na;b\n", 10, "line 2 does not end in a number");
	refuses("a number that is none", "a;b 1x\n", 7, "line 1 does not end in a number");
	refuses("a number alone", "12\n", 3, "line 1 does not end in a number");
	refuses("a number beyond 63 bits", "a 9999999999999999999\n", 22, "line 1 does not end in a number");
	refuses("a NUL", "a\0b 1\n", 6, "line 1 holds a NUL");
	refuses("nothing", "\n\n# x", 5, "line 1 and all others are empty");
	ok(!csink_folded_is_text("\x0a\x04\x08\x01", 4), "protobuf is no text");
	ok(csink_folded_is_text("caf\xc3\xa9;b 1\n", 10), "UTF-8 is text");
}

/* ---- trees ---- */

static const char *name_of(const struct csink_rows *rows, const struct csink_tree *t, uint32_t node)
{
	return node ? rows->keys[t->nodes[node].row].name : "";
}

static void test_tree(void)
{
	struct csink_profile *p = folded("main;a;b 5\nmain;a 1\nmain;c;a;b 3\nother 1\nmain;a;b;a;b 2\n");
	struct csink_rows rows;
	struct csink_tree tree;
	uint32_t node;
	bool *picked;
	char why[256];

	is_num(csink_rows_build(&rows, p, CSINK_BY_FUNCTION), 0, "a profile's rows are built");
	is_num(rows.nr_keys, 5, "each function is a row");
	is_num(csink_tree_build(&tree, p, &rows, 0, NULL), 0, "a profile's tree is built");
	is_num(tree.nodes[0].total, 12, "the tree's root has all samples");
	node = tree.nodes[0].first;
	is_str(name_of(&rows, &tree, node), "main", "the tree's largest function comes first");
	is_num(tree.nodes[node].total, 11, "main's total is 11");
	is_num(tree.nodes[node].self, 0, "main's own samples are 0");
	is_str(name_of(&rows, &tree, tree.nodes[node].next), "other", "a smaller function follows the largest");
	node = tree.nodes[node].first;
	is_str(name_of(&rows, &tree, node), "a", "main's largest callee is a");
	is_num(tree.nodes[node].total, 8, "a's total below main is 8");
	is_num(tree.nodes[node].self, 1, "a's own samples below main are 1");
	csink_tree_free(&tree);

	is_num(csink_pick_functions(&rows, "b", &picked, why, sizeof(why)), 0, "function b is picked");
	is_num(csink_tree_build(&tree, p, &rows, 0, picked), 0, "a tree of callers is made");
	is_num(tree.nodes[0].total, 10, "the tree of callers has the stacks with the function");
	node = tree.nodes[0].first;
	is_str(name_of(&rows, &tree, node), "b", "the tree of callers begins with the function");
	is_num(tree.nodes[node].total, 10, "a recursive stack counts once");
	node = tree.nodes[node].first;
	is_str(name_of(&rows, &tree, node), "a", "the next level is the function's caller");
	node = tree.nodes[node].first;
	is_str(name_of(&rows, &tree, node), "main", "the caller's callers follow, the largest first");
	is_num(tree.nodes[node].total, 5, "main's total as the caller's caller is 5");
	is_num(tree.nodes[node].self, 5, "main's own part in the tree of callers is 5");
	free(picked);
	csink_tree_free(&tree);
	csink_rows_free(&rows);
	csink_profile_free(p);
}

/* A stack deeper than any recursion of ours could follow. */
static void test_deep_tree(void)
{
	char *text = malloc(400000), *at = text;
	struct csink_report_options o = {.fold = 1};
	struct csink_profile *p;
	struct csink_rows rows;
	FILE *out = fopen("/dev/null", "w");

	for (int i = 0; i < 60000; i++)
		at += sprintf(at, "f%d;", i % 300);
	strcpy(at, "leaf 7\nf0;leaf 8\n");
	p = folded(text);
	free(text);
	ok(p && !csink_rows_build(&rows, p, CSINK_BY_FUNCTION), "a very deep stack is read");
	is_num(csink_report_tree_print(out, p, &o, &rows, NULL), 0, "a very deep stack is printed");
	csink_rows_free(&rows);
	csink_profile_free(p);
	fclose(out);
}

/* ---- picking ---- */

static uint32_t picks(const struct csink_rows *rows, const char *pattern)
{
	uint32_t nr = 0;
	bool *picked;
	char why[256];
	int err = csink_pick_functions(rows, pattern, &picked, why, sizeof(why));

	if (err)
		return err == -ENODATA ? 0 : 99;
	for (uint32_t i = 0; i < rows->nr_keys; i++)
		nr += picked[i];
	free(picked);
	return nr;
}

static void test_pick(void)
{
	struct csink_profile *p =
		folded("ns::Reader::parse(int) 1\nparse 1\nparse_more 1\nstd::sort<int*> 1\nx::sort 1\n");
	struct csink_rows rows;
	char why[256];
	bool *picked;

	csink_rows_build(&rows, p, CSINK_BY_FUNCTION);
	is_num(picks(&rows, "parse"), 1, "a function is picked by its whole name");
	is_num(picks(&rows, "ns::Reader::parse"), 1, "a function is picked by its name without parameters");
	is_num(picks(&rows, "Reader::parse"), 1, "a function is picked by its name without namespace");
	is_num(picks(&rows, "sort"), 2, "functions are picked by the last part of their names");
	is_num(picks(&rows, "std::sort"), 1, "a function is picked by its name without template arguments");
	is_num(picks(&rows, "^pars"), 2, "functions are picked by a regular expression");
	is_num(picks(&rows, "nothing"), 0, "a name that no function matches picks none");
	is_num(csink_pick_functions(&rows, "pasre", &picked, why, sizeof(why)), -ENODATA,
	       "a misspelt function: ENODATA");
	is_str(why, "no function of the profile matches 'pasre'; did you mean 'parse'?",
	       "a misspelt function gets a suggestion");
	is_num(csink_pick_functions(&rows, "(", &picked, why, sizeof(why)), -EINVAL, "a broken expression: EINVAL");
	csink_rows_free(&rows);
	csink_profile_free(p);
}

/* ---- labels and filters ---- */

static void add_labelled(struct csink_profile *p, const char *function, const char *process, int64_t pid,
			 const char *thread, int64_t tid, const char *phase, int64_t value)
{
	struct csink_profile_function f = {.name = csink_profile_str(p, function)};
	struct csink_profile_line line = {.function = csink_profile_function_add(p, &f), .line = 12};
	struct csink_profile_mapping m = {
		.file = csink_profile_str(p, *function == 'l' ? "/lib/libx.so" : "/bin/prog")};
	uint32_t location = csink_profile_location_add(p, csink_profile_mapping_add(p, &m), 0, &line, 1);
	struct csink_profile_label labels[5] = {
		{.key = csink_profile_str(p, CSINK_LABEL_PROCESS), .str = csink_profile_str(p, process)},
		{.key = csink_profile_str(p, CSINK_LABEL_PID), .num = pid},
		{.key = csink_profile_str(p, CSINK_LABEL_THREAD), .str = csink_profile_str(p, thread)},
		{.key = csink_profile_str(p, CSINK_LABEL_TID), .num = tid},
		{.key = csink_profile_str(p, CSINK_LABEL_PHASE), .str = csink_profile_str(p, phase)}};

	csink_profile_sample_add(p, csink_profile_stack_add(p, &location, 1),
				 csink_profile_labels_add(p, labels, phase ? 5 : 4), &value);
}

static struct csink_profile *labelled(void)
{
	struct csink_profile *p = csink_profile_create();

	csink_profile_type_add(p, "task-clock", "nanoseconds");
	add_labelled(p, "parse", "prog", 10, "main", 10, "load", 40);
	add_labelled(p, "lookup", "prog", 10, "worker", 11, NULL, 30);
	add_labelled(p, "lookup", "child", 12, "main", 12, "load", 20);
	add_labelled(p, "hash", "child", 12, "main", 12, NULL, 10);
	return p;
}

static int64_t sum_of(const struct csink_profile *p)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < p->nr_samples; i++)
		sum += csink_profile_values(p, i)[0];
	return sum;
}

static void filters(const char *name, struct csink_filter filter, int64_t want)
{
	struct csink_profile *p = labelled();
	char why[256] = "";
	int err = csink_filter_apply(p, &filter, why, sizeof(why));

	is_num(err, want < 0 ? want : 0, about(name, why));
	if (!err) {
		is_num(sum_of(p), want, about(name, "the sum of the remaining samples"));
		ok(csink_profile_fact(p, CSINK_FACT_FILTER, 0) != NULL, "%s: the filter is written down", name);
		csink_profile_sample_add(p, p->samples[0].stack, p->samples[0].labels, &(int64_t){1000});
		is_num(sum_of(p), want + 1000, about(name, "all samples are back after the filter"));
	}
	csink_profile_free(p);
}

static void test_filters(void)
{
	filters("by thread", (struct csink_filter){.thread = "^main"}, 70);
	filters("by thread id", (struct csink_filter){.thread = " 11$"}, 30);
	filters("by process", (struct csink_filter){.comm = "child"}, 30);
	filters("by module", (struct csink_filter){.module = "libx"}, 50);
	filters("by function", (struct csink_filter){.focus = "parse|hash"}, 50);
	filters("without a function", (struct csink_filter){.ignore = "parse"}, 60);
	filters("by several", (struct csink_filter){.comm = "child", .ignore = "hash"}, 20);
	filters("by a missing function", (struct csink_filter){.focus = "nothing"}, -ENODATA);
	filters("by an invalid expression", (struct csink_filter){.focus = "("}, -EINVAL);
}

static void adds_up(enum csink_by by, const char *first, int64_t self, uint32_t nr)
{
	struct csink_profile *p = labelled();
	struct csink_report_table table;

	is_num(csink_report_table_build_by(&table, p, 0, by), 0, about(csink_by_words[by], "the table is built by"));
	is_num(table.nr_rows, nr, about(csink_by_words[by], "the number of rows"));
	is_str(table.rows[0].name, first, about(csink_by_words[by], "the first row's name"));
	is_num(table.rows[0].self, self, about(csink_by_words[by], "the first row's self value"));
	csink_report_table_free(&table);
	csink_profile_free(p);
}

static void test_by(void)
{
	adds_up(CSINK_BY_FUNCTION, "lookup", 50, 3);
	adds_up(CSINK_BY_MODULE, "/bin/prog", 50, 2);
	adds_up(CSINK_BY_THREAD, "main 10", 40, 3);
	adds_up(CSINK_BY_PROCESS, "prog 10", 70, 2);
	adds_up(CSINK_BY_PHASE, "load", 60, 2);
}

/* ---- derived figures ---- */

static void test_derived(void)
{
	struct csink_profile *p = csink_profile_create();
	struct csink_derived d[8];
	char text[32];

	csink_profile_type_add(p, "cycles:u", "count");
	csink_profile_type_add(p, "cpu/instructions/u", "count");
	csink_profile_type_add(p, "branch-misses", "count");
	csink_profile_type_add(p, "task-clock", "nanoseconds");
	is_num(csink_derived_find(p, d, 8), 2, "two derived figures are found");
	is_str(d[0].title, "IPC", "instructions a cycle are titled IPC");
	csink_derived_format(&d[0], (int64_t[]){1000, 1850, 5, 0}, text, sizeof(text));
	is_str(text, "1.85", "IPC is a quotient");
	csink_derived_format(&d[1], (int64_t[]){1000, 2000, 5, 0}, text, sizeof(text));
	is_str(text, "2.50", "misses are shown for a thousand instructions");
	csink_derived_format(&d[0], (int64_t[]){0, 2000, 5, 0}, text, sizeof(text));
	is_str(text, "-", "a figure with divisor 0 is a dash, not 0");
	is_num(csink_derived_find(p, d, 1), 1, "derived figures are limited to the room in the array");
	csink_profile_free(p);
}

int main(void)
{
	test_folded();
	test_tree();
	test_deep_tree();
	test_pick();
	test_filters();
	test_by();
	test_derived();
	return done();
}
