/* The report's words and figures. */
#include "launcher/output/report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "launcher/base/format.h"
#include "launcher/profile/facts.h"
#include "launcher/profile/profile.h"
#include "tests/unit/tap.h"

static uint32_t function_of(struct csink_profile *p, const char *name, const char *symbol)
{
	struct csink_profile_function function = {.name = csink_profile_str(p, name),
						  .system_name = csink_profile_str(p, symbol)};

	return csink_profile_function_add(p, &function);
}

static uint32_t location_of(struct csink_profile *p, uint32_t mapping, const char *name, const char *inlined)
{
	struct csink_profile_line lines[2] = {{.function = inlined ? function_of(p, inlined, inlined) : 0},
					      {.function = function_of(p, name, name)}};

	return csink_profile_location_add(p, mapping, 0x1000, lines + !inlined, 1 + (inlined != NULL));
}

static struct csink_profile *empty_profile(void)
{
	struct csink_profile *p = csink_profile_create();
	struct csink_profile_mapping mapping = {.file = csink_profile_str(p, "/usr/bin/prog")};

	csink_profile_type_add(p, "samples", "count");
	csink_profile_type_add(p, "task-clock", "nanoseconds");
	p->default_type = 1;
	csink_profile_mapping_add(p, &mapping);
	return p;
}

static void add(struct csink_profile *p, const uint32_t *stack, uint32_t nr, int64_t ms, const char *pseudo)
{
	struct csink_profile_label label = {.key = csink_profile_str(p, CSINK_LABEL_PSEUDO),
					    .str = pseudo ? csink_profile_str(p, pseudo) : 0};

	csink_profile_sample_add(p, csink_profile_stack_add(p, stack, nr),
				 csink_profile_labels_add(p, &label, pseudo != NULL),
				 (int64_t[]){pseudo ? 0 : ms, ms * 1000000});
}

/* The report as text; free it. */
static char *report(const struct csink_profile *p, const struct csink_report_options *o)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	is_num(csink_report_print(out, p, o), 0, "a report is printed");
	fclose(out);
	return text;
}

/* The line that ends in this word, without the blanks before; "" if there is none. */
static const char *line_of(const char *text, const char *end)
{
	static char line[1024];
	const char *at = text, *next;
	size_t len, end_len = strlen(end);

	for (; *at; at = next) {
		len = strcspn(at, "\n");
		next = at + len + (at[len] != 0);
		if (len < end_len || strncmp(at + len - end_len, end, end_len))
			continue;
		at += strspn(at, " ");
		snprintf(line, sizeof(line), "%.*s", (int)strcspn(at, "\n"), at);
		return line;
	}
	return "";
}

static void has(const char *text, const char *part, const char *what)
{
	if (!ok(strstr(text, part) != NULL, "%s", what))
		printf("# '%s' is not in:\n# %s\n", part, text);
}

static void hasnt(const char *text, const char *part, const char *what)
{
	if (!ok(strstr(text, part) == NULL, "%s", what))
		printf("# '%s' is in:\n# %s\n", part, text);
}

static struct csink_profile *usual_profile(void)
{
	struct csink_profile *p = empty_profile();
	uint32_t leaf = location_of(p, 1, "leaf", "tiny"), other = location_of(p, 1, "leaf", NULL);
	uint32_t root = location_of(p, 1, "main", NULL), rec = location_of(p, 1, "recurse", NULL);
	uint32_t pseudo = location_of(p, 0, "[not sampled]", NULL),
		 bare = csink_profile_location_add(p, 1, 0x99, NULL, 0);

	add(p, (uint32_t[]){leaf, root}, 2, 400, NULL);
	add(p, (uint32_t[]){other, root}, 2, 200, NULL);
	add(p, (uint32_t[]){rec, rec, rec, root}, 4, 300, NULL);
	add(p, (uint32_t[]){bare, root}, 2, 50, NULL);
	add(p, (uint32_t[]){pseudo}, 1, 50, "not sampled");
	csink_profile_fact_add(p, CSINK_FACT_CPU_TYPE, "task-clock");
	csink_profile_fact_add(p, CSINK_FACT_LEADER, "task-clock");
	csink_profile_fact_add(p, CSINK_FACT_PROCESSES, "2");
	csink_profile_fact_add(p, CSINK_FACT_THREADS, "8");
	csink_profile_fact_add(p, CSINK_FACT_USER, "900000000");
	csink_profile_fact_add(p, CSINK_FACT_SYS, "100000000");
	csink_profile_fact_add(p, CSINK_FACT_COMMAND, "prog a b");
	csink_profile_fact_add(p, CSINK_FACT_EXIT, "status 7");
	csink_profile_fact_add(p, CSINK_FACT_ENGINE, "timer: perf_event_open is refused");
	csink_profile_fact_add(p, CSINK_FACT_LOSS, "12 stacks cut at the depth limit");
	csink_profile_fact_add(p, CSINK_FACT_UNPROFILED, "busybox (static)");
	csink_profile_fact_add(p, CSINK_FACT_WARNING, "mind the gap");
	p->duration_ns = 2500000000;
	p->period = 1003009;
	p->period_type = p->types[1];
	return p;
}

static void test_usual(void)
{
	struct csink_report_options o = {.limit = 25, .file = "a file.pb.gz"};
	struct csink_profile *p = usual_profile();
	char *text = report(p, &o);

	ok(!strncmp(text, "1.000 s of CPU time in 2.500 s, 2 processes, 8 threads; 950 samples by task-clock\n", 80),
	   "the verdict comes first, in one line");
	has(text, "samples cover 95.0 % of 1.000 s (0.900 s user + 0.100 s sys)", "the covered share is reported");
	has(text, "prog a b (exit: status 7)", "the command and how it ended");
	has(text, "timer: perf_event_open is refused", "the engine and why");
	has(text, "12 stacks cut at the depth limit", "lost samples are reported");
	has(text, "busybox (static)", "programs that were not profiled are reported");
	has(text, "mind the gap", "warnings");
	is_str(line_of(text, "tiny (inlined)"), "40.00      0.400 s    40.00      0.400 s  prog    tiny (inlined)",
	       "inlined functions are rows");
	is_str(line_of(text, " leaf"), "20.00      0.200 s    60.00      0.600 s  prog    leaf",
	       "inlined functions count for the function around them");
	is_str(line_of(text, "recurse"), "30.00      0.300 s    30.00      0.300 s  prog    recurse",
	       "recursion counts once in total");
	is_str(line_of(text, "main"), "0.00      0.000 s    95.00      0.950 s  prog    main",
	       "a caller's total has its callees' samples");
	is_str(line_of(text, "[not sampled]"), "5.00      0.050 s     5.00      0.050 s          [not sampled]",
	       "time without samples is a row");
	is_str(line_of(text, "[no symbol]"), "5.00      0.050 s     5.00      0.050 s  prog    [no symbol]",
	       "code without symbols has a row");
	has(text, "next: go tool pprof -http : 'a file.pb.gz'\n", "the next command can be pasted");
	hasnt(text, "\033", "there is no colour");
	free(text);

	o.limit = 2;
	text = report(p, &o);
	is_str(line_of(text, "--all"), "30.00  in 4 more functions: --all", "the number of rows left out is reported");
	hasnt(text, "main\n", "rows below the limit are left out");
	free(text);

	o = (struct csink_report_options){.limit = 25, .width = 80, .color = true, .bars = true, .utf8 = true};
	text = report(p, &o);
	has(text, "\033[", "colour where it is asked for");
	has(text, "████", "bars too");
	hasnt(text, "next:", "no file, no next command");
	free(text);
	csink_profile_free(p);
}

static void test_overloads(void)
{
	struct csink_report_options o = {.limit = 25};
	struct csink_profile *p = empty_profile();
	static const char *const symbols[] = {"_ZN2ns3mixEj", "_ZN2ns3mixEd", "_ZN2ns3mixEd.cold", "_ZN2ns5aloneEj"};
	struct csink_profile_line line = {0};
	uint32_t i, location;
	char *text;

	for (i = 0; i < 4; i++) {
		line.function = function_of(p, i < 3 ? "ns::mix" : "ns::alone", symbols[i]);
		location = csink_profile_location_add(p, 1, i, &line, 1);
		add(p, &location, 1, 10, NULL);
	}
	text = report(p, &o);
	has(text, "25.00    10.000 ms    25.00    10.000 ms  prog    ns::mix(unsigned int)\n",
	    "overloads have their parameters");
	has(text, "50.00    20.000 ms    50.00    20.000 ms  prog    ns::mix(double)\n",
	    "parts of a function are one row");
	has(text, "prog    ns::alone\n", "other names stay short");
	free(text);
	csink_profile_free(p);
}

static void test_hostile(void)
{
	struct csink_report_options o = {.limit = 25};
	struct csink_profile *p = empty_profile();
	char *text, *longer = malloc(100001);
	uint32_t location;

	memset(longer, 'x', 100000);
	longer[100000] = 0;
	location = location_of(p, 1, "evil\033[2J\nname\x9b", NULL);
	add(p, &location, 1, 1, NULL);
	location = location_of(p, 1, longer, NULL);
	add(p, &location, 1, 1, NULL);
	csink_profile_fact_add(p, CSINK_FACT_USER, "-5");
	csink_profile_fact_add(p, CSINK_FACT_SYS, "garbage");
	csink_profile_fact_add(p, CSINK_FACT_CPU_TYPE, "no such type");
	text = report(p, &o);
	hasnt(text, "\033", "a name cannot steer the terminal");
	has(text, "evil\\x1b[2J\\x0aname\\x9b\n", "a hostile name is escaped");
	free(text);
	o.width = 80;
	text = report(p, &o);
	has(text, "  ...xxxxxxx", "long names are cut on a terminal");
	hasnt(text, "xxx...", "at their front");
	free(text);
	free(longer);
	csink_profile_free(p);

	p = csink_profile_create();
	is_num(csink_report_print(stdout, p, &o), -EINVAL, "a profile without types is refused");
	csink_profile_free(p);
	p = empty_profile();
	text = report(p, &o);
	has(text, "No samples", "an empty profile says so");
	free(text);
	csink_profile_free(p);
}

static void test_columns(void)
{
	struct csink_report_options o = {.limit = 25};
	struct csink_profile *p = csink_profile_create();
	uint32_t location;
	char *text;

	csink_profile_type_add(p, "samples", "count");
	csink_profile_type_add(p, "cycles", "count");
	csink_profile_type_add(p, "task-clock", "nanoseconds");
	p->default_type = 1;
	location = location_of(p, 0, "busy", NULL);
	csink_profile_sample_add(p, csink_profile_stack_add(p, &location, 1), 0, (int64_t[]){5, 3000000000, 1500000});
	text = report(p, &o);
	is_str(line_of(text, "busy"), "100.00      3.000 G   100.00      3.000 G      1.500 ms          busy",
	       "further events are further columns");
	has(text, "task-clock  module", "further columns have their names");
	free(text);
	csink_profile_free(p);
}

static void test_off_cpu(void)
{
	struct csink_report_options o = {.limit = 3};
	struct csink_profile *p = empty_profile();
	uint32_t waits = location_of(p, 1, "waits", NULL), works = location_of(p, 1, "works", NULL);
	char *text, *second;

	csink_profile_type_add(p, "off-cpu", "nanoseconds");
	csink_profile_fact_add(p, CSINK_FACT_OFF_CPU, "off-cpu");
	csink_profile_sample_add(p, csink_profile_stack_add(p, &waits, 1), 0, (int64_t[]){1, 0, 9000000});
	csink_profile_sample_add(p, csink_profile_stack_add(p, &works, 1), 0, (int64_t[]){1, 5000000, 1000000});
	text = report(p, &o);
	second = strstr(text, "Off the CPU, 10.000 ms of all threads together:\n");
	ok(second && strstr(second, "waits"), "waiting threads have a table of their own");
	ok(second && !strstr(second, "works"), "the table of waiting has only the waiting functions");
	ok(second && strstr(text, "works") && strstr(text, "works") < second, "working threads come first");
	has(text, "90.00     9.000 ms", "shares are of that time");
	free(text);
	csink_profile_free(p);
}

static void test_full(void)
{
	struct csink_report_options o = {.limit = 25};
	struct csink_profile *p = usual_profile();
	FILE *full = fopen("/dev/full", "w");

	is_num(csink_report_print(full, p, &o), -ENOSPC, "a full stream is an error");
	fclose(full);
	csink_profile_free(p);
}

static void is_format(int64_t value, const char *unit, const char *want)
{
	struct csink_scale scale = csink_scale_for(value, unit);
	char text[64], what[128];

	csink_format_value(text, sizeof(text), value, &scale);
	snprintf(what, sizeof(what), "%lld %s are printed as %s", (long long)value, unit, want);
	is_str(text, want, what);
}

static void test_format(void)
{
	char text[64];

	is_format(1234567890, "nanoseconds", "1.235 s");
	is_format(12345678, "nanoseconds", "12.346 ms");
	is_format(999, "nanoseconds", "999 ns");
	is_format(1500, "milliseconds", "1.500 s");
	is_format(3 << 20, "bytes", "3.000 MiB");
	is_format(999999, "count", "999999");
	is_format(5000000, "count", "5.000 M");
	is_format(-2000000000, "nanoseconds", "-2.000 s");
	is_format(7, "widgets", "7 widgets");
	csink_format_count(text, sizeof(text), 1234567);
	is_str(text, "1,234,567", "a count has separators for thousands");
	csink_format_count(text, sizeof(text), 999);
	is_str(text, "999", "a count below 1,000 has no separator");
	is_num(csink_format_text(text, sizeof(text), "abcdef", 5), 5, "texts are cut to columns");
	is_str(text, "ab...", "truncated texts end with dots");
	is_num(csink_format_text(text, sizeof(text), "äöü", 3), 3, "text of three characters has three columns");
	is_str(text, "äöü", "columns count characters, not bytes");
	csink_format_function(text, sizeof(text), "std::sort<int, X<int> >::operator<< <y>", 30);
	is_str(text, "std::sort<...>::operator<< <y>", "template arguments give way first");
	csink_format_function(text, sizeof(text), "std::sort<int>::operator-><x>", 30);
	is_str(text, "std::sort<int>::operator-><x>", "template arguments stay where the name has room");
	csink_format_function(text, sizeof(text), "std::sort<int, X<int>, Y<double> >::operator-><xyz>", 31);
	is_str(text, "std::sort<...>::operator-><...>", "a cut operator keeps its name");
	csink_format_function(text, sizeof(text), "<f64 as core::Sum<f64>>::sum::<core::Map<f64>>::{closure#0}", 50);
	is_str(text, "<f64 as core::Sum<...>>::sum::{closure#0}", "the beginning of a path is kept");
	csink_format_text(text, 12, "a text that has no room", 0);
	is_str(text, "a text t...", "buffers are not overrun");
}

static void test_streams(void)
{
	struct csink_report_options o;
	FILE *file = tmpfile();

	unsetenv("NO_COLOR");
	unsetenv("CLICOLOR_FORCE");
	csink_report_options_init(&o, file);
	ok(!o.color && !o.bars && !o.width && o.limit == 25, "a file gets a plain report");
	setenv("CLICOLOR_FORCE", "1", 1);
	csink_report_options_init(&o, file);
	ok(o.color, "CLICOLOR_FORCE gives a file's report colour");
	setenv("NO_COLOR", "1", 1);
	csink_report_options_init(&o, file);
	ok(!o.color, "NO_COLOR overrules CLICOLOR_FORCE");
	fclose(file);
}

int main(void)
{
	test_usual();
	test_overloads();
	test_hostile();
	test_columns();
	test_off_cpu();
	test_full();
	test_format();
	test_streams();
	return done();
}
