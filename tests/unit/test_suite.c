/* Suites of benchmarks: names in commands, reports of harnesses, JSON, and one rate of errors over all cases. */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/base/json_read.h"
#include "launcher/gate/suite/harness.h"
#include "launcher/gate/suite/tasks.h"
#include "launcher/gate/suite/xml_tags.h"
#include "tests/unit/refuse.h"
#include "tests/unit/tap.h"

static char *command[] = {(char *)"bench", (char *)"--own", NULL};
static char *lines_command[] = {(char *)"run", (char *)"{case}", (char *)"x{case}y{n}{other}", NULL};

static struct csink_suite suite = {.argv = {command, command}, .report = "/r"};

/* The words of a case's command behind the side's own, joined by '|'. */
static const char *chosen(const struct csink_suite_harness *harness, const char *name, uint64_t n)
{
	static char text[8192];
	struct csink_suite_case c = {.name = (char *)name};
	struct csink_suite_job job = {0};

	suite.harness = harness;
	*text = '\0';
	if (!csink_suite_command(&suite, &c, CSINK_GATE_NEW, n, &job)) {
		for (uint32_t i = 0; i < job.argv.nr; i++) {
			strcat(text, i ? "|" : "");
			strcat(text, job.argv.all[i]);
		}
	}
	csink_suite_job_free(&job);
	return text;
}

static int same(const char *got, const char *want, const char *what)
{
	int is = !strcmp(got, want);

	ok(is, "%s", what);
	if (!is)
		fprintf(stderr, "#   got %s, want %s\n", got, want);
	return is;
}

static void test_gbench(void)
{
	struct csink_suite_case c = {.name = (char *)"BM_A"};
	const char *failed = "{\"benchmarks\":[{\"name\":\"BM_A\",\"error_occurred\":true,\"error_message\":\"no\"}]}";
	const char *done = "{\"benchmarks\":[{\"run_name\":\"BM_A\",\"run_type\":\"iteration\",\"iterations\":3},"
			   "{\"run_name\":\"BM_B\",\"iterations\":9},{\"run_name\":\"BM_A\",\"iterations\":4,"
			   "\"x\":NaN},{\"run_name\":\"BM_A\",\"run_type\":\"aggregate\",\"iterations\":2}]}";
	const char *together =
		"{\"benchmarks\":[{\"name\":\"BM_B_mean\",\"run_name\":\"BM_B\",\"run_type\":\"aggregate\","
		"\"aggregate_name\":\"mean\",\"iterations\":3},"
		"{\"name\":\"BM_A_mean\",\"run_name\":\"BM_A\",\"run_type\":\"aggregate\","
		"\"aggregate_name\":\"mean\",\"iterations\":8},"
		"{\"name\":\"BM_A_cv\",\"run_name\":\"BM_A\",\"run_type\":\"aggregate\","
		"\"aggregate_name\":\"cv\",\"iterations\":8}]}";
	char why[256] = "", *longest = malloc(4097);

	suite.takes_iterations = true;
	same(chosen(&csink_suite_gbench, "BM_S<a, b>/x y[0]{1}.(z)*+?|^$\\", 7),
	     "bench|--own|--benchmark_filter=^BM_S<a, b>/x y\\[0]\\{1}\\.\\(z\\)\\*\\+\\?\\|\\^\\$\\\\$|"
	     "--benchmark_min_time=7x|--benchmark_out=/r|--benchmark_out_format=json",
	     "google-benchmark: what an extended regular expression would read as an operator has a backslash");
	suite.takes_iterations = false;
	same(chosen(&csink_suite_gbench, "BM_A", 7),
	     "bench|--own|--benchmark_filter=^BM_A$|--benchmark_min_time=0|--benchmark_repetitions=7|"
	     "--benchmark_out=/r|--benchmark_out_format=json",
	     "google-benchmark before 1.8: repetitions of one iteration");
	suite.is_counted = true;
	same(chosen(&csink_suite_gbench, "BM_A", 7),
	     "bench|--own|--benchmark_filter=^BM_A$|--benchmark_min_time=0|--benchmark_repetitions=8|"
	     "--benchmark_report_aggregates_only=true|--benchmark_out=/r|--benchmark_out_format=json",
	     "of counted instructions: these are reported together, and one more is made");
	suite.is_counted = false;
	ok(csink_suite_gbench.count(&c, NULL, together, why, sizeof(why)) == 7,
	   "google-benchmark: repetitions that are reported together, without that one");
	memset(longest, 'n', 4096);
	longest[4096] = '\0';
	ok(strstr(chosen(&csink_suite_gbench, longest, 1), longest) != NULL, "a name of 4 KiB is whole");
	free(longest);
	ok(csink_suite_gbench.count(&c, NULL, done, why, sizeof(why)) == 7,
	   "google-benchmark: iterations of the case are added up, without others and aggregates");
	ok(csink_suite_gbench.count(&c, NULL, "", why, sizeof(why)) == 0,
	   "google-benchmark: an empty report means that no case was run");
	ok(csink_suite_gbench.count(&c, NULL, failed, why, sizeof(why)) < 0 && strstr(why, "no"),
	   "google-benchmark: an error that the benchmark reports fails the case");
	ok(csink_suite_gbench.count(&c, NULL, "garbage", why, sizeof(why)) < 0,
	   "google-benchmark: a report that is no JSON is an error");
}

static const struct csink_suite_figure *figure_called(const struct csink_suite_figures *figures, const char *name)
{
	for (uint32_t i = 0; i < figures->nr; i++) {
		if (!strcmp(figures->all[i].name, name))
			return &figures->all[i];
	}
	return NULL;
}

/* Rates of repetitions, of which one has other iterations than the other. */
static void test_rates(void)
{
	struct csink_suite_case c = {.name = (char *)"BM_A"};
	const char *rows = "{\"benchmarks\":[{\"name\":\"BM_B\",\"frames\":1},"
			   "{\"name\":\"BM_A\",\"iterations\":1,\"frames\":100,\"per\":0.01,\"gone\":1,\"deep\":2},"
			   "{\"name\":\"BM_A\",\"iterations\":3,\"frames\":600,\"per\":0.03,\"deep\":2},"
			   "{\"name\":\"BM_A\",\"run_type\":\"aggregate\",\"iterations\":2,\"frames\":9}]}";
	const char *printed = "BM_A 1 ns myframes=1s/s frames=100/s per=10ms gone=1/s deep=2\n";
	struct csink_suite_figures figures = {.nr = 0};
	const struct csink_suite_figure *frames, *per, *gone, *deep;
	char why[256];

	ok(csink_suite_gbench.count(&c, printed, rows, why, sizeof(why)) == 4, "google-benchmark: a trial is counted");
	csink_suite_gbench.figures(&c, rows, &figures);
	frames = figure_called(&figures, "frames");
	per = figure_called(&figures, "per");
	gone = figure_called(&figures, "gone");
	deep = figure_called(&figures, "deep");
	ok(frames && !frames->why && frames->more_is_better && fabs(frames->value - 4 / (0.01 + 0.005)) < 1e-9,
	   "a rate is what all repetitions did, by the time that they took");
	ok(per && !per->why && !per->more_is_better && fabs(per->value - 0.025) < 1e-12,
	   "the time of one is the mean over all iterations");
	ok(gone && gone->why, "a counter that a repetition does not have is no figure");
	ok(deep && deep->why && deep->is_printed, "neither is one that is not printed as a rate");
	free(c.own);
}

/* Of a case whose runs make as many iterations as a time allows. */
static void test_division(void)
{
	struct csink_suite_case c = {.name = (char *)"BM_A", .is_by_time = true};
	struct csink_gate_run *run = csink_gate_run_add(&c.data, CSINK_GATE_OLD);
	struct csink_suite one = {.harness = &csink_suite_gbench, .report = "/tmp/report.XXXXXX"};
	int fd = mkstemp(one.report);
	int cpu = csink_gate_metric_find(&c.data, "cpu", "CPU time", "nanoseconds");
	int rss = csink_gate_metric_find(&c.data, "max-rss", "max RSS", "bytes");
	int rate = csink_gate_metric_find(&c.data, "rate", "rate", "requests/s");
	int latency = csink_gate_metric_find(&c.data, "latency", "latency", "ns/op");
	int written = csink_gate_metric_find(&c.data, "written", "written", "bytes"), allocations, peak;

	dprintf(fd, "{\"benchmarks\":[{\"name\":\"BM_B\",\"allocs_per_iter\":9},{\"name\":\"BM_A\",\"iterations\":4,"
		    "\"allocs_per_iter\":1.5,\"max_bytes_used\":64}]}");
	close(fd);
	c.data.metrics[rate].more_is_better = true;
	c.data.metrics[latency].is_reported = c.data.metrics[written].is_reported = true;
	run->metrics[cpu] = run->metrics[rss] = run->metrics[rate] = run->metrics[latency] = run->metrics[written] = 8;
	ok(!csink_suite_divide(&one, &c) && run->metrics[cpu] == 2, "CPU time is that of an iteration");
	ok(run->metrics[rss] == 8 && run->metrics[rate] == 8, "memory at most and rates are not divided");
	ok(run->metrics[latency] == 8, "nor is a latency that the command reports for an operation");
	ok(run->metrics[written] == 2, "a sum that it reports is divided");
	allocations = csink_gate_metric_find(&c.data, "allocations", "", "");
	peak = csink_gate_metric_find(&c.data, "allocated-peak", "", "");
	ok(run->metrics[allocations] == 1.5 && !strcmp(c.data.metrics[allocations].unit, "allocs/op") &&
		   run->metrics[peak] == 64 && !strcmp(c.data.metrics[peak].unit, "bytes"),
	   "google-benchmark: what a memory manager counts of the case is its figure");
	ok(access(one.report, F_OK), "the report is removed");
	csink_gate_data_free(&c.data);
}

static void test_gotest(void)
{
	struct csink_suite_case c = {.name = (char *)"BenchmarkA/x-1"};
	const char *out = "goos: linux\nBenchmarkA/x-1-8   \t     120\t  9 ns/op\nBenchmarkA/x-12 \t 7\t 1 ns/op\n"
			  "BenchmarkA/x \t 5 ns\nBenchmarkA/x-1\nPASS\n";
	const char *memory = "BenchmarkA/x-1-8  1  9 ns/op  999 B/op  99 allocs/op\nBenchmarkA/x  7  1 ns/op  5 B/op\n"
			     "BenchmarkA/x-1-8  120\t  9 ns/op\t 2.5 MB/s\t      48 B/op\t       0 allocs/op\n";
	struct csink_suite_figures figures = {.nr = 0};
	const struct csink_suite_figure *all = figures.all;
	char why[64];

	csink_suite_gotest.figures(&c, memory, &figures);
	ok(figures.nr == 3 && !strcmp(all[1].unit, "B/op") && all[1].value == 48 && !all[1].is_printed &&
		   !strcmp(all[2].unit, "allocs/op") && all[2].value == 0,
	   "go test: allocated bytes and allocations are those of the case's last line");
	ok(!strcmp(all[0].name, "throughput") && all[0].value == 2.5 && all[0].more_is_better && all[0].is_printed &&
		   !all[0].why,
	   "go test: MB/s is printed, and more is better");
	figures.nr = 0;
	csink_suite_gotest.figures(&c, out, &figures);
	ok(!figures.nr, "go test: without them there is no figure, and no zero");
	same(chosen(&csink_suite_gotest, "BenchmarkA/b_[0]/(c).", 9),
	     "bench|--own|-test.run=^$|-test.bench=^BenchmarkA$/^b_\\[0\\]$/"
	     "^\\(c\\)\\.$|-test.benchtime=9x|-test.benchmem",
	     "go test: each part between slashes is an anchored and quoted regular expression");
	ok(csink_suite_gotest.count(&c, out, NULL, why, sizeof(why)) == 120,
	   "go test: the number of CPUs behind a name is no part of it");
	ok(csink_suite_gotest.count(&c, "PASS\n", NULL, why, sizeof(why)) == 0, "go test: PASS alone is no run");
}

static void test_jmh(void)
{
	struct csink_suite_case c = {.name = (char *)"p.C$I.m"};
	const char *report = "[{\"benchmark\":\"p.C$I.m\",\"measurementIterations\":1,\"measurementBatchSize\":40,"
			     "\"params\":{\"x\":\"1\"},"
			     "\"primaryMetric\":{\"score\":2.5,\"scoreUnit\":\"ms/op\"}},"
			     "{\"benchmark\":\"p.C$I.m\",\"measurementIterations\":1,\"measurementBatchSize\":40,"
			     "\"params\":{\"x\":\"2\"},"
			     "\"primaryMetric\":{\"score\":0.5,\"scoreUnit\":\"s/op\"}},"
			     "{\"benchmark\":\"p.C.m\",\"measurementIterations\":1,\"measurementBatchSize\":9}]";
	char why[128] = "";

	same(chosen(&csink_suite_jmh, "p.C$I.m", 40),
	     "bench|--own|^p\\.C\\$I\\.m$|-bs|40|-wbs|40|-bm|ss|-i|1|-wi|1|-f|0|-foe|true|-rf|json|-rff|/r",
	     "JMH: a single shot of so many calls, of the benchmark alone");
	ok(csink_suite_jmh.count(&c, NULL, report, why, sizeof(why)) == 80,
	   "JMH: calls of all combinations of parameters");
	ok(fabs(csink_suite_jmh.seconds(&c, NULL, report) - 0.5025) < 1e-9, "JMH: their time, each in its unit");
	ok(csink_suite_jmh.count(&c, NULL, NULL, why, sizeof(why)) == 0, "JMH: no report is no run");
	ok(csink_suite_jmh.count(&c, NULL, "[{\"benchmark\":\"p.C$I.m\"}]", why, sizeof(why)) < 0 && *why,
	   "JMH: a report without numbers is an error");
}

static char *read_text(const char *path)
{
	FILE *file = fopen(path, "r");
	char *text = NULL;
	size_t cap = 0;

	if (!file || getdelim(&text, &cap, '\0', file) < 0)
		fprintf(stderr, "# %s cannot be read\n", path);
	if (file)
		fclose(file);
	return text ? text : strdup("");
}

static void test_pytest(void)
{
	static char *words[] = {(char *)"python3",     (char *)"-m",   (char *)"pytest", (char *)"-c",
				(char *)"/etc/passwd", (char *)"/tmp", (char *)"-q",     NULL};
	static struct csink_suite_case cases[] = {
		{.name = (char *)"f.py::t[a/b, \"c\"]", .n = 7, .frame = "countersink_case_0"},
		{.name = (char *)"d:e/g.py::C::t", .n = 8},
		{.name = (char *)"f.py::u", .n = 9}};
	static struct csink_suite_case *order[] = {&cases[2], &cases[1], &cases[0]};
	struct csink_suite one = {.harness = &csink_suite_pytest, .argv = {words, words}, .cases = cases, .nr = 3};
	struct csink_suite_job job = {0};
	const char *report =
		"{\"case\": 4, \"begins\": true}\nno JSON\n{\"case\": 4, \"iterations\": 12, \"seconds\": 0.5}\n";
	char path[sizeof(one.directory.path) + 16], why[64] = "", *text;

	setenv("PYTHONPATH", "/own", 1);
	csink_suite_make_directory(&one);
	if (!ok(*one.report && !csink_suite_command(&one, &cases[0], CSINK_GATE_NEW, 4, &job),
		"pytest: a case has a command"))
		return;
	ok(!strcmp(job.argv.all[3], "-c") && !strcmp(job.argv.all[4], "/etc/passwd") &&
		   !strcmp(job.argv.all[5], "-q") && !strcmp(job.argv.all[6], "--rootdir=.") &&
		   !strcmp(job.argv.all[job.argv.nr - 1], "f.py"),
	   "pytest: the case's file takes the place of files and directories, options keep their values");
	snprintf(path, sizeof(path), "PYTHONPATH=%s:/own", one.directory.path);
	ok(!strcmp(job.env.all[0], path), "pytest: the directory of the plugin comes before the user's own");
	text = read_text(strchr(job.env.all[1], '=') + 1);
	ok(strstr(text, "\"f.py::t[a/b, \\\"c\\\"]\"") && strstr(text, "\"number\": 4") && !strstr(text, "g.py"),
	   "pytest: the plugin is given the node id and the number of iterations");
	ok(strstr(text, "\"function\": \"countersink_case_0\"") != NULL, "pytest: and the function to make them in");
	free(text);
	csink_suite_job_free(&job);
	csink_suite_put_all(&job.argv, words);
	ok(!one.harness->choose_all(&one, CSINK_GATE_NEW, order, 3, &job), "pytest: three cases have one command");
	ok(!strcmp(job.argv.all[job.argv.nr - 2], "f.py") && !strcmp(job.argv.all[job.argv.nr - 1], "d:e/g.py"),
	   "pytest: of three cases, two files, one with a colon in its name");
	text = read_text(strchr(job.env.all[1], '=') + 1);
	ok(strstr(text, "f.py::u") < strstr(text, "g.py::C") && strstr(text, "\"case\": 2") &&
		   strstr(text, "\"number\": 9"),
	   "pytest: they are in the order that was asked for, with their numbers");
	free(text);
	csink_suite_job_free(&job);
	ok(csink_suite_pytest.count(&cases[0], NULL, report, why, sizeof(why)) == 12 &&
		   csink_suite_pytest.seconds(&cases[0], NULL, report) == 0.5,
	   "pytest: iterations of the case, and their time");
	ok(csink_suite_pytest.count(&cases[0], NULL, NULL, why, sizeof(why)) == 0, "pytest: no report is no run");
	ok(csink_suite_pytest.count(&cases[0], NULL, "{\"error\": \"it broke\"}", why, sizeof(why)) < 0 &&
		   !strcmp(why, "the benchmark fails: it broke"),
	   "pytest: a failure has its reason");
	ok(csink_suite_pytest.count(&cases[0], NULL, "{\"skipped\": \"no\"}", why, sizeof(why)) < 0 &&
		   !strcmp(why, "the benchmark is skipped: no"),
	   "pytest: so has a benchmark that is skipped");
	csink_run_directory_remove(&one.directory);
	unsetenv("PYTHONPATH");
}

static void test_lines(void)
{
	bool shell = false;
	char **words = csink_suite_split("./old '{case}' -n{n} \"a b\"", &shell);

	suite.argv[CSINK_GATE_NEW] = lines_command;
	same(chosen(&csink_suite_lines, "a b;$(c)/{n}", 12), "run|a b;$(c)/{n}|xa b;$(c)/{n}y12{other}",
	     "lines: the name is put into words as it is, and is not read again");
	suite.argv[CSINK_GATE_NEW] = command;
	ok(words && !strcmp(words[1], "{case}") && !strcmp(words[2], "-n{n}") && !strcmp(words[3], "a b") && !words[4],
	   "a command with {case} and {n} is split into words without a shell");
	free(words);
	words = csink_suite_split("./old {case} | cat", &shell);
	ok(!words && shell, "a command that takes a shell is refused");
	free(words);
}

static void test_cases(void)
{
	struct csink_suite listed = {0};
	const char *text = "a\nab\n\nb\r\na\nabc";
	int err = csink_suite_add_lines(&listed, CSINK_GATE_OLD, text, NULL);

	ok(!err && listed.nr == 4 && !strcmp(listed.cases[2].name, "b") && !strcmp(listed.cases[3].name, "abc"),
	   "each name is one case, in the order of the list, also one that another begins with (%u)", listed.nr);
	csink_suite_case_add(&listed, CSINK_GATE_NEW, "abc", 2);
	ok(listed.nr == 4 && listed.cases[1].has[CSINK_GATE_NEW] && !listed.cases[0].has[CSINK_GATE_NEW] &&
		   !listed.cases[3].has[CSINK_GATE_NEW],
	   "the other side's case of a name is the same one");
	csink_suite_free(&listed);
}

static void test_criterion(void)
{
	struct csink_suite_case c = {.name = (char *)"a [b]"};
	const char *out = "Benchmarking a [b]\nBenchmarking a [b]: Warming up for 1.0000 s\n\n"
			  "Completed 1023 iterations in 1755145427 nanoseconds, estimated execution time is 8 ns\n"
			  "Benchmarking a [b]: Collecting 10 samples in estimated 1.0000 s (5500 iterations)\n";
	const char *other = "Completed 1 iterations in 1 ns\n"
			    "Benchmarking a [b] c: Collecting 10 samples in estimated 1 s (5 iterations)\n";
	char why[256] = "";

	suite.takes_fractions = true;
	same(chosen(&csink_suite_criterion, "a [b]/(c).{d}", 40000000),
	     "bench|--own|--bench|^a \\[b\\]/\\(c\\)\\.\\{d\\}$|--noplot|--verbose|--sample-size|10|--nresamples|10|"
	     "--warm-up-time|0.010000|--measurement-time|0.040000",
	     "criterion: an id is an anchored and quoted regular expression");
	suite.takes_fractions = false;
	ok(NULL != strstr(chosen(&csink_suite_criterion, "abc...", 40000000),
			  "|^abc|--noplot|--verbose|--sample-size|10|--nresamples|10|--warm-up-time|1|--measurement-"
			  "time|1"),
	   "criterion before 0.4: whole seconds; an id that is printed in part is no whole line");
	ok(csink_suite_criterion.count(&c, out, NULL, why, sizeof(why)) == 6523,
	   "criterion: iterations of the warm-up and of the measurement are added up");
	ok(csink_suite_criterion.count(&c, "Gnuplot not found\n", NULL, why, sizeof(why)) == 0,
	   "criterion: no measurement is no run");
	ok(csink_suite_criterion.count(&c, strstr(out, "Benchmarking a [b]: Coll"), NULL, why, sizeof(why)) < 0,
	   "criterion: a warm-up of which the iterations are unknown is an error");
	ok(csink_suite_criterion.count(&c, other, NULL, why, sizeof(why)) < 0 && strstr(why, "'a [b] c'"),
	   "criterion: another benchmark beside the case is an error");
}

static void test_tasks(void)
{
	static struct csink_suite_case cases[] = {
		{.name = (char *)"d/f.js > a > b", .n = 7, .frame = "countersink_case_0"},
		{.name = (char *)"d/f.js > c", .n = 8, .place = {NULL, (char *)"/r/d/f.js#2"}},
		{.name = (char *)"g.js > c", .n = 9}};
	static struct csink_suite_case *order[] = {&cases[2], &cases[1], &cases[0]};
	struct csink_suite one = {.harness = &csink_suite_vitest, .argv = {command, command}, .cases = cases, .nr = 3};
	struct csink_suite_job job = {0};
	const char *done =
		"{\"case\":0,\"begins\":true}\n{\"case\":0,\"iterations\":7,\"seconds\":0.5,\"async\":false}\n";
	char why[64] = "", *text;

	csink_suite_make_directory(&one);
	csink_suite_put_all(&job.argv, command);
	if (!ok(*one.report && !one.harness->choose_all(&one, CSINK_GATE_NEW, order, 3, &job),
		"vitest: three cases have one command"))
		return;
	ok(job.argv.nr == 5 && !strcmp(job.argv.all[2], "--run") && !strcmp(job.argv.all[3], "g.js") &&
		   !strcmp(job.argv.all[4], "d/f.js"),
	   "vitest: it has their files, each once");
	text = read_text(strchr(job.env.all[1], '=') + 1);
	ok(strstr(text, "\"/r/d/f.js#2\"") && !strstr(text, "\"d/f.js > c\"") && strstr(text, "\"d/f.js > a > b\""),
	   "vitest: the module is given the place of a case on that side");
	free(text);
	csink_suite_job_free(&job);
	csink_run_directory_remove(&one.directory);
	ok(csink_suite_vitest.count(&cases[0], NULL, done, why, sizeof(why)) == 7 &&
		   csink_suite_vitest.seconds(&cases[0], NULL, done) == 0.5,
	   "tasks of node: iterations and their time");
	ok(csink_tasks_holds(&cases[0], 0, "countersink_case_0") && !csink_tasks_holds(&cases[0], 0, "main"),
	   "tasks of node: samples of the iterations are the case's");
	ok(csink_suite_vitest.count(&cases[0], NULL, "{\"error\":\"no\"}", why, sizeof(why)) < 0 && strstr(why, "no"),
	   "tasks of node: what is thrown is an error");
	ok(csink_suite_vitest.count(&cases[0], NULL, NULL, why, sizeof(why)) == 0 &&
		   csink_suite_vitest.count(&cases[0], NULL, "garbage\n", why, sizeof(why)) == 0,
	   "tasks of node: no report, and one that is no JSON, are no run");
	csink_suite_vitest.count(&cases[0], NULL, "{\"iterations\":7,\"async\":true}", why, sizeof(why));
	ok(csink_tasks_holds(&cases[0], 0, "main"),
	   "tasks of node: of an asynchronous one, all samples are the case's");
}

static void test_xml(void)
{
	const char *at = "<?xml version='1.0'?><!-- <not a=\"1\"> --><A  n = \"a > &lt;&amp;&quot;&#x41;&#66;&none;\" "
			 "other='1.5'/>"
			 "text</A><B n=\"open";
	struct csink_xml_tag tag;
	char text[64], small[4];
	bool found = csink_xml_next(&at, &tag);

	ok(found && csink_xml_is(&tag, "A") && !csink_xml_is(&tag, "not"),
	   "XML: declarations and comments are no tags");
	csink_xml_attribute(&tag, "n", text, sizeof(text));
	same(text, "a > <&\"AB&none;", "XML: references in a value, of which unknown ones stay");
	csink_xml_attribute(&tag, "n", small, sizeof(small));
	same(small, "a >", "XML: a value that is too long is cut");
	ok(csink_xml_number(&tag, "other") == 1.5 && isnan(csink_xml_number(&tag, "n")) &&
		   isnan(csink_xml_number(&tag, "none")),
	   "XML: a number, a text that is none, and no attribute");
	ok(csink_xml_next(&at, &tag) && csink_xml_is(&tag, "/A") && !csink_xml_attribute(&tag, "n", text, sizeof(text)),
	   "XML: a tag that closes");
	ok(!csink_xml_next(&at, &tag), "XML: a tag that is cut off ends the text");
}

static void test_json(void)
{
	static const char *const bad[] = {"", "{", "[1,]", "{\"a\" 1}", "\"\\x\"", "\"open", "1 2", "nul", "{\"a\":}"};
	const char *good = " {\"a\": [1, -2.5e1, true, null], \"t\": \"\\u00e9\\ud83d\\ude00\\n\\\"\"} ";
	struct csink_json_value *value = csink_json_read(good, strlen(good));
	const char *text = csink_json_get_text(value, "t");
	char deep[200];
	int nr = 0;

	ok(value && csink_json_get(value, "a")->first->next->number == -25, "JSON: an array of numbers");
	ok(text && !strcmp(text, "\xc3\xa9\xf0\x9f\x98\x80\n\""), "JSON: escapes, and a pair of surrogates");
	csink_json_free(value);
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(bad); i++) {
		value = csink_json_read(bad[i], strlen(bad[i]));
		nr += !value;
		csink_json_free(value);
	}
	ok(nr == (int)CSINK_ARRAY_SIZE(bad), "JSON: a text that is cut off or wrong gives no value (%d of %zu)", nr,
	   CSINK_ARRAY_SIZE(bad));
	memset(deep, '[', sizeof(deep));
	ok(!csink_json_read(deep, sizeof(deep)), "JSON: nested too deeply");
}

static void test_errors(void)
{
	const double p[] = {0.01, 0.04, 0.03, 0.5}, case_p[] = {0.004, 0.0001, 0.2, 0.0034};
	double levels[4];

	/* By hand: 4 * 0.01 / 1, 4 * 0.03 / 2, 4 * 0.04 / 3, 4 * 0.5 / 4. */
	ok(fabs(csink_simes(p, 4) - 0.04) < 1e-12, "Simes: the least of n p(i) / i");
	ok(csink_simes(p + 1, 2) == 0.04, "Simes: of two, the larger one may be the least");
	ok(csink_simes(NULL, 0) == 1, "Simes: of none, 1");
	/* Holm at 0.01: 0.0001 <= 0.01 / 4; 0.0034 > 0.01 / 3, and from there on none is shown. */
	csink_suite_levels(case_p, 4, 0.01, levels);
	ok(fabs(levels[1] - 0.0025) < 1e-12 && fabs(levels[3] - 0.01 / 3) < 1e-12,
	   "levels of cases: alpha / n for the least p, then alpha / (n - 1)");
	ok(levels[0] == levels[3] && levels[2] == levels[3],
	   "levels of cases: the rest get no more than the first that fails");
}

static void test_environment(void)
{
	struct csink_suite_job job = {0};
	int entered;

	setenv("OF_THE_GATE", "its own", 1);
	csink_suite_put(&job.env, "OF_THE_GATE=once");
	csink_suite_put(&job.env, "OF_THE_GATE=twice");
	csink_suite_put(&job.env, "OF_THE_JOB=x=y");
	entered = csink_suite_enter(&job);
	ok(entered >= 0 && !strcmp(getenv("OF_THE_GATE"), "twice") && !strcmp(getenv("OF_THE_JOB"), "x=y"),
	   "a job has its variables, of two of a name the last one");
	csink_suite_leave(&job, entered);
	ok(getenv("OF_THE_GATE") && !strcmp(getenv("OF_THE_GATE"), "its own") && !getenv("OF_THE_JOB"),
	   "after a job, each variable is as before: with its value, or unset");
	csink_suite_job_free(&job);
}

/* Ends as soon as its thread's child, which waits for a signal, is killed. */
static void *start_child(void *pipe)
{
	int *fds = pipe, pid = fork();

	if (!pid) {
		close(fds[0]);
		for (;;)
			pause();
	}
	close(fds[1]);
	waitpid(pid, NULL, 0);
	return NULL;
}

static void test_killing(void)
{
	int fds[2], parent = pipe(fds) ? -1 : fork();
	struct pollfd closed = {.events = POLLIN};

	if (!parent) {
		pthread_t thread;

		pthread_create(&thread, NULL, start_child, fds);
		pthread_join(thread, NULL);
		_exit(0);
	}
	close(fds[1]);
	closed.fd = fds[0];
	/* What is started last may not be there yet: once more, until all have closed the pipe. */
	for (int i = 0; parent > 0 && i < 600; i++) {
		csink_suite_kill_children(parent, 0);
		if (poll(&closed, 1, 100) > 0)
			break;
	}
	ok(closed.revents & POLLHUP, "children that another thread than the first one started are killed, too");
	kill(parent, SIGKILL);
	waitpid(parent, NULL, 0);
	close(fds[0]);
}

/* Linux before 5.3, and containers that refuse it. */
static void test_without_pidfd(void)
{
	static struct csink_gate_runner runner;
	struct csink_gate_series series = {.runner = &runner};
	struct csink_suite asking = {.series = &series};
	struct csink_suite_job job = {0};
	struct csink_suite_answer answer = {0};
	int err;

	csink_inherited_take(&runner.inherited);
	csink_suite_put(&job.argv, "/bin/echo");
	csink_suite_put(&job.argv, "done");
	err = refuse_syscall(SYS_pidfd_open, ENOSYS) ?: csink_suite_ask(&asking, &job, 60, &answer);
	ok(!err && !answer.timed_out && !answer.status && answer.out && !strcmp(answer.out, "done\n"),
	   "without pidfd_open the end of a command is seen");
	csink_suite_answer_free(&answer);
	csink_suite_job_free(&job);
}

/* Pairs of a case: the logarithm of new / old is shift, and spread more or less in turn. */
static void add_pairs(struct csink_suite_case *c, uint32_t nr, double shift, double spread)
{
	c->data.paired = true;
	for (uint32_t i = 0; i < nr; i++) {
		double log_ratio = shift + spread * ((i * 7 % 10) / 4.5 - 1);

		for (int side = 0; side < CSINK_GATE_NR_SIDES; side++) {
			struct csink_gate_run *run = csink_gate_run_add(&c->data, side);
			int cpu = csink_gate_metric_find(&c->data, "cpu", "CPU time", "nanoseconds");

			run->metrics[cpu] = 1e7 * exp(side == CSINK_GATE_NEW ? log_ratio : 0);
		}
	}
	c->pairs[1] += nr;
}

/* Looks at runs that confirm: what is settled ends, what is open goes on while there is time. */
static void test_looks(void)
{
	static const double shifts[] = {0.3, 0, 0.05, 0.3}, spreads[] = {0.02, 0.02, 0.3, 0.02};
	struct csink_gate_rules rules = {.threshold = 0.05, .min_share = 0.01, .alpha = 0.01, .seed = 1};
	struct csink_gate_series series = {.rules = &rules};
	struct csink_suite_case cases[4] = {
		{.name = (char *)"slower"}, {.name = (char *)"same"}, {.name = (char *)"open"}};
	struct csink_suite four = {.series = &series, .cases = cases, .nr = 4};

	/* Screened, and not to be confirmed: it takes no part. */
	cases[3].state = CSINK_SUITE_QUIET;
	csink_suite_ask_pending(&four);
	ok(cases[0].is_asked && cases[2].is_asked && !cases[3].is_asked, "alpha is divided between what is confirmed");
	for (uint32_t i = 0; i < 3; i++)
		add_pairs(&cases[i], 30, shifts[i], spreads[i]);
	ok(!csink_suite_look(&four, 0.2, 100), "a look at the runs");
	ok(cases[0].state == CSINK_SUITE_JUDGED && cases[0].verdicts.counts[CSINK_GATE_REGRESSED] == 1,
	   "a slower case is settled");
	ok(cases[1].state == CSINK_SUITE_JUDGED && cases[1].decision == CSINK_GATE_SETTLED &&
		   cases[1].verdicts.counts[CSINK_GATE_UNCHANGED] == 1,
	   "an unchanged case is settled");
	ok(cases[2].state == CSINK_SUITE_PENDING && cases[2].decision == CSINK_GATE_GO_ON,
	   "what is open goes on, while there is time");
	ok(cases[3].state == CSINK_SUITE_QUIET, "what is not confirmed stays as it is");
	/* Of three cases one was shown to be slower: its part is free; the settled one keeps its own. */
	ok(fabs(cases[2].verdicts.alpha - (0.01 * 0.2 / 2) / 2 / 2) < 1e-5,
	   "Holm's method by cases divides what the look may spend: %g", cases[2].verdicts.alpha);
	add_pairs(&cases[2], 15, shifts[2], spreads[2]);
	ok(!csink_suite_look(&four, 1, 0) && cases[2].state == CSINK_SUITE_JUDGED &&
		   cases[2].decision == CSINK_GATE_NO_TIME,
	   "without time, it is judged as it is");
	ok(cases[2].verdicts.alpha > 0.008 / 4 && cases[2].verdicts.alpha < 0.01 / 4,
	   "the last look has most of alpha: %g", cases[2].verdicts.alpha);
	for (uint32_t i = 0; i < 4; i++) {
		csink_gate_data_free(&cases[i].data);
		csink_gate_verdicts_free(&cases[i].verdicts);
	}
}

/* No run is begun once the time is over. */
static void test_time(void)
{
	char made[] = "/tmp/made.XXXXXX";
	char *touch[] = {(char *)"touch", made, NULL};
	struct csink_suite late = {.argv = {touch, touch},
				   .harness = &csink_suite_lines,
				   .max_time_ns = 1000,
				   .start_ns = 1,
				   .watchdog_fd = -1};
	struct csink_suite_case c = {.name = (char *)"one"};
	int fd = mkstemp(made);

	close(fd);
	unlink(made);
	ok(csink_suite_left(&late) < 0, "behind --max-time, less than nothing is left");
	ok(!csink_suite_find_work(&late, &c) && c.state == CSINK_SUITE_FAILED &&
		   !strcmp(c.error, CSINK_SUITE_NO_TIME_TO_TRY),
	   "a case that there is no time for is not tried, and has the reason");
	ok(access(made, F_OK), "nothing was run");
	late.max_time_ns = 0;
	ok(isinf(csink_suite_left(&late)), "without --max-time there is no end");
	free(c.error);
	for (int side = 0; side < CSINK_GATE_NR_SIDES; side++)
		csink_suite_job_free(&c.jobs[side]);
}

int main(void)
{
	test_gbench();
	test_rates();
	test_division();
	test_gotest();
	test_pytest();
	test_jmh();
	test_lines();
	test_cases();
	test_criterion();
	test_tasks();
	test_xml();
	test_json();
	test_errors();
	test_environment();
	test_killing();
	test_looks();
	test_time();
	test_without_pidfd();
	return done();
}
