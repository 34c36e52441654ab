/*
 * Catch2, 2.9 and later. A case is a BENCHMARK; a test case, with all of its benchmarks, is what can be chosen, so its
 * process runs the others, too, and only the samples below the case's own function are judged. Iterations are chosen by
 * a clock, differently in each run, of which all are divided by them. What is chosen is the number of samples, as
 * Catch2 calls a series of iterations that it times together.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "launcher/gate/suite/harness.h"
#include "launcher/gate/suite/xml_tags.h"

/* What a backslash takes its meaning from in a specification of tests. */
#define SPECIAL "\\\",[]~"

#define MODEL "Catch::Benchmark::Detail::BenchmarkFunction::model<" /* a class for each benchmark's lambda */

#define ENOUGH 1000 /* of Catch2's samples, in which each benchmark of the test case is met, at 250 Hz too */

/* Of a case. A test case's benchmarks are lambdas of one function, counted from 1 in the order of the source. */
struct own {
	char *test; /* behind this */
	uint32_t nth[CSINK_GATE_NR_SIDES], of[CSINK_GATE_NR_SIDES];
	uint64_t seen[CSINK_GATE_NR_SIDES]; /* the numbers that were met in stacks, a bit each */
	char signature[64];                 /* of these lambdas; "" none was met */
	double samples;                     /* of Catch2's, since one was met */
	bool is_mixed;                      /* they cannot be distinguished */
};

/* ---- its report ---- */

/* Where a report is: "TEST/SECTION/BENCHMARK". */
struct place {
	char name[8192];
	size_t lens[64]; /* of the names that are around it */
	uint32_t depth;
};

static void enter(struct place *place, const char *name)
{
	size_t len = strlen(place->name);

	if (place->depth < CSINK_ARRAY_SIZE(place->lens))
		place->lens[place->depth] = len;
	place->depth++;
	snprintf(place->name + len, sizeof(place->name) - len, "%s%s", len ? "/" : "", name);
}

static void leave(struct place *place)
{
	place->depth -= place->depth > 0;
	if (place->depth < CSINK_ARRAY_SIZE(place->lens))
		place->name[place->lens[place->depth]] = '\0';
}

/* A benchmark of a report. */
struct result {
	const char *test, *name; /* of the case: with the test's */
	double samples, iterations, mean_ns;
	const char *failed; /* its message; NULL: it did not */
};

typedef int on_result(void *arg, const struct result *result);

/* Returns what on_result did, if that is not 0; else 0, or -EINVAL: it is no such report. */
static int read_report(const char *xml, on_result *call, void *arg)
{
	static struct place place;
	static char test[8192], text[8192];
	struct csink_xml_tag tag;
	struct result result = {0};
	bool has_begun = false;
	int err = 0;

	place.depth = 0;
	*place.name = '\0';
	while (!err && csink_xml_next(&xml, &tag)) {
		if (csink_xml_is(&tag, "TestCase") || csink_xml_is(&tag, "Section")) {
			csink_xml_attribute(&tag, "name", text, sizeof(text));
			if (csink_xml_is(&tag, "TestCase"))
				snprintf(test, sizeof(test), "%s", text);
			enter(&place, text);
		} else if (csink_xml_is(&tag, "/TestCase") || csink_xml_is(&tag, "/Section")) {
			leave(&place);
		} else if (csink_xml_is(&tag, "BenchmarkResults")) {
			csink_xml_attribute(&tag, "name", text, sizeof(text));
			enter(&place, text);
			result = (struct result){
				.test = test,
				.name = place.name,
				.samples = csink_xml_number(&tag, "samples"),
				.iterations = csink_xml_number(&tag, "iterations"),
				.mean_ns = NAN,
			};
		} else if (csink_xml_is(&tag, "mean")) {
			result.mean_ns = csink_xml_number(&tag, "value");
		} else if (csink_xml_is(&tag, "failed")) {
			csink_xml_attribute(&tag, "message", text, sizeof(text));
			result.failed = text;
		} else if (csink_xml_is(&tag, "/BenchmarkResults")) {
			err = call(arg, &result);
			leave(&place);
		}
		has_begun |= csink_xml_is(&tag, "Catch") || csink_xml_is(&tag, "Catch2TestRun");
	}
	return err ? err : has_begun ? 0 : -EINVAL;
}

static const struct own *own_of(const struct csink_suite_case *c)
{
	return c->own;
}

/* ---- the list ---- */

static int is_catch2(struct csink_suite *suite)
{
	static const char *const more[] = {"--libidentify", NULL};
	struct csink_suite_answer answer;
	int err = csink_suite_ask_side(suite, CSINK_GATE_NEW, more, &answer);
	bool is;

	if (err)
		return err;
	is = csink_suite_answer_is_ok(&answer) && strstr(answer.out, "A Catch2 test executable");
	csink_suite_answer_free(&answer);
	return is;
}

static void put_options(const struct csink_suite *suite, struct csink_suite_words *argv, uint64_t samples)
{
	csink_suite_put(argv, "--reporter=xml");
	csink_suite_put(argv, "--out=%s", suite->report);
	csink_suite_put(argv, "--benchmark-samples=%" PRIu64, samples);
	csink_suite_put(argv, "--benchmark-no-analysis");
	csink_suite_put(argv, "--benchmark-warmup-time=0");
}

struct listing {
	struct csink_suite *suite;
	int side;
	char test[8192]; /* the test case that is read */
	uint32_t nr;     /* its benchmarks */
};

static struct own *make_own(const char *test)
{
	struct own *own = calloc(1, sizeof(*own) + strlen(test) + 1);

	if (own)
		own->test = strcpy((char *)(own + 1), test);
	return own;
}

static int list_result(void *arg, const struct result *result)
{
	struct listing *listing = arg;
	struct csink_suite_case *c;
	struct own *own;

	if (strcmp(listing->test, result->test) != 0) {
		listing->nr = 0;
		snprintf(listing->test, sizeof(listing->test), "%s", result->test);
	}
	c = csink_suite_case_add(listing->suite, listing->side, result->name, strlen(result->name));
	if (c && !c->own)
		c->own = make_own(result->test);
	if (!c || !c->own)
		return -ENOMEM;
	own = c->own;
	/* Sections and generators may run one again. */
	if (!own->nth[listing->side])
		own->nth[listing->side] = ++listing->nr;
	return 0;
}

/* Of each test case, as many as its last one's number. */
static void count_benchmarks(struct csink_suite *suite, int side)
{
	for (uint32_t i = 0; i < suite->nr; i++) {
		struct own *own = suite->cases[i].own;

		for (uint32_t k = 0; k < suite->nr; k++) {
			const struct own *other = suite->cases[k].own;

			if (!strcmp(other->test, own->test))
				own->of[side] = CSINK_MAX(own->of[side], other->nth[side]);
		}
	}
}

/* A test case that crashes is the last one of the list: what the other side has may come after it. */
static void take_others(struct csink_suite *suite, int side, const char *why)
{
	csink_gate_note(suite->series, "%s ended its list early: %s", csink_suite_sides[side], why);
	for (uint32_t i = 0; i < suite->nr; i++) {
		struct own *own = suite->cases[i].own;

		if (suite->cases[i].has[side])
			continue;
		suite->cases[i].has[side] = true;
		own->nth[side] = own->nth[!side];
		own->of[side] = own->of[!side];
	}
}

/* Each test case is run for one sample: only the report names the benchmarks in it. @more  a word; NULL: none. */
static int list_with(struct csink_suite *suite, int side, const char *more)
{
	static struct listing listing;
	struct csink_suite_job job = {0};
	struct csink_suite_answer answer;
	char why[1024];
	char *report;
	int err;

	csink_suite_put_all(&job.argv, suite->argv[side]);
	if (more)
		csink_suite_put(&job.argv, "%s", more);
	put_options(suite, &job.argv, 1);
	err = csink_suite_ask_job(suite, side, &job, &answer);
	if (err)
		return err;
	report = csink_suite_take_report(suite);
	listing = (struct listing){.suite = suite, .side = side};
	err = report ? read_report(report, list_result, &listing) : -EINVAL;
	count_benchmarks(suite, side);
	csink_suite_answer_error(&answer, why, sizeof(why));
	if (err == -EINVAL)
		CSINK_SUITE_WHY(suite, err, "%s: the benchmarks cannot be listed: %s", csink_suite_sides[side],
				csink_suite_answer_is_ok(&answer) ? "there is no XML report" : why);
	/* A status is of tests that fail. */
	else if (!err && (answer.timed_out || WIFSIGNALED(answer.status)))
		take_others(suite, side, why);
	free(report);
	csink_suite_answer_free(&answer);
	return err;
}

static int list_catch2(struct csink_suite *suite, int side)
{
	int err = list_with(suite, side, NULL);

	/* These are hidden: they run only where they are asked for. */
	return err ? err : list_with(suite, side, "[!benchmark]");
}

/* ---- a case ---- */

static void choose_catch2(struct csink_suite *suite, const struct csink_suite_case *c, int side, uint64_t n,
			  struct csink_suite_job *job)
{
	char *name = csink_suite_escape(own_of(c)->test, SPECIAL);
	/* A word of its own at the beginning. */
	bool is_word = name && !strncmp(name, "exclude:", 8);

	(void)side;
	job->argv.lacked_memory |= !name;
	csink_suite_put(&job->argv, "%s%s", is_word ? "\\" : "", name ? name : "");
	free(name);
	put_options(suite, &job->argv, n);
}

struct counting {
	const struct csink_suite_case *c;
	double iterations, samples, seconds;
	char *why;
	size_t size;
};

static int count_result(void *arg, const struct result *result)
{
	struct counting *counting = arg;

	if (strcmp(result->test, own_of(counting->c)->test) != 0)
		return csink_why(-EEXIST, counting->why, counting->size,
				 "its name chooses another test case, too: '%.200s'", result->test);
	if (strcmp(result->name, counting->c->name) != 0)
		return 0;
	if (result->failed)
		return csink_why(-ECANCELED, counting->why, counting->size, "the benchmark fails: %s", result->failed);
	counting->iterations += result->samples * result->iterations;
	counting->samples += result->samples;
	/* Two more, about, while iterations are chosen. */
	counting->seconds += result->mean_ns * result->iterations * (result->samples + 2) / 1e9;
	return 0;
}

/* Are the test case's benchmarks these lambdas, one for each? */
static bool is_mixed(const struct csink_suite_case *c, double samples)
{
	struct own *own = c->own;

	if (own->seen[CSINK_GATE_OLD] && own->seen[CSINK_GATE_NEW])
		own->samples += samples;
	for (int side = 0; side < CSINK_GATE_NR_SIDES && own->samples >= ENOUGH; side++)
		own->is_mixed |= (uint32_t)__builtin_popcountll(own->seen[side]) != own->of[side];
	return own->is_mixed;
}

static double count_catch2(struct csink_suite_case *c, const char *out, const char *report, char *why, size_t size)
{
	struct counting counting = {.c = c, .why = why, .size = size};
	int err;

	(void)out;
	if (!report)
		return 0;
	err = read_report(report, count_result, &counting);
	if (err == -EINVAL)
		csink_why(0, why, size, "its report (--out) is no XML of Catch2");
	if (err)
		return -1;
	if (!is_mixed(c, counting.samples))
		return counting.iterations > 0 ? counting.iterations : 0;
	csink_why(0, why, size,
		  "the benchmarks of its test case cannot be distinguished: give each a test case of its own");
	return -1;
}

static double seconds_catch2(const struct csink_suite_case *c, const char *out, const char *report)
{
	struct counting counting = {.c = c};

	(void)out;
	return report && !read_report(report, count_result, &counting) ? counting.seconds : 0;
}

/* "model<C_A_T_C_H_T_E_S_T_8()::{lambda(int)#2}>::call": the number and, before it, what is like that of others. 0: no
 * such name. */
static uint32_t number_of(const char *function, char *signature, size_t size)
{
	const char *lambda = strstr(function, "{lambda("), *next;
	unsigned long number;
	char *end;

	while (lambda && (next = strstr(lambda + 1, "{lambda(")))
		lambda = next;
	next = lambda ? strstr(lambda, ")#") : NULL;
	if (!next)
		return 0;
	number = strtoul(next + 2, &end, 10);
	snprintf(signature, size, "%.*s", (int)(next - lambda), lambda);
	return *end == '}' && number <= UINT32_MAX ? (uint32_t)number : 0;
}

static bool holds_catch2(void *arg, int side, const char *function)
{
	struct own *own = ((struct csink_suite_case *)arg)->own;
	char signature[sizeof(own->signature)];
	uint32_t number;

	if (strncmp(function, MODEL, strlen(MODEL)) != 0 || !strstr(function, ">::call") ||
	    strstr(function, "BenchmarkFunction::do_nothing>"))
		return false;
	if (own->of[side] == 1)
		return true;
	number = number_of(function, signature, sizeof(signature));
	/* DWARF has it once more, without a number. */
	if (!number && !strstr(function, "$_"))
		return false;
	/* Clang counts the lambdas of a whole file. */
	if (!number || number > own->of[side] || number > 64 ||
	    (*own->signature && strcmp(own->signature, signature) != 0)) {
		own->is_mixed = true;
		return false;
	}
	strcpy(own->signature, signature);
	own->seen[side] |= 1ULL << (number - 1);
	return number == own->nth[side];
}

const struct csink_suite_harness csink_suite_catch2 = {
	.name = "catch2",
	.is_kind = is_catch2,
	.list = list_catch2,
	.choose = choose_catch2,
	.count = count_catch2,
	.seconds = seconds_catch2,
	.holds = holds_catch2,
	.varies = true,
};
