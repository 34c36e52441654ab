/*
 * A program that speaks the protocol of google-benchmark 1.8, for tests/cli/gate_suite.t: --benchmark_list_tests,
 * --benchmark_filter, --benchmark_min_time=Nx, --benchmark_out. Its first arguments are the percentage by which
 * hash_of() takes longer, and what a side has besides the common cases: "none", "old" or "new".
 */
#include <regex.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORK 20000

static volatile uint32_t sink;

#define WORKER(name, factor)                                                                                           \
	static __attribute__((noinline)) void name(uint32_t n)                                                         \
	{                                                                                                              \
		uint32_t value = sink;                                                                                 \
                                                                                                                       \
		for (uint32_t i = 0; i < n; i++)                                                                       \
			value = (value ^ i) * (factor);                                                                \
		sink = value;                                                                                          \
	}

WORKER(hash_of, 2654435761u)
WORKER(sum_of, 40503u)

static uint32_t slower; /* percent */

static void hash(void)
{
	hash_of(3 * WORK + 3 * WORK * slower / 100);
	sum_of(WORK);
}

static void both(void)
{
	hash_of(2 * WORK + 2 * WORK * slower / 100);
	sum_of(2 * WORK);
}

static void sum(void)
{
	sum_of(3 * WORK);
	hash_of(WORK / 1000);
}

static void crash(void)
{
	if (slower)
		raise(SIGSEGV);
	sum_of(WORK);
}

static void hang(void)
{
	while (slower)
		pause();
	sum_of(WORK);
}

/* sides: 1 old, 2 new. reports: what becomes of its report. */
static const struct {
	const char *name;
	void (*run)(void);
	int sides;
	enum { REPORTS, GARBAGE, NOTHING, FAILS } reports;
} cases[] = {
	{"BM_Hash", hash, 3, REPORTS},   {"BM_Both<int, char>/a b[0]{1}", both, 3, REPORTS},
	{"BM_Sum/1", sum, 3, REPORTS},   {"BM_Sum/10", sum, 3, REPORTS},
	{"XM_Crash", crash, 3, REPORTS}, {"XM_Hang", hang, 3, REPORTS},
	{"XM_Garbage", sum, 3, GARBAGE}, {"XM_Nothing", sum, 3, NOTHING},
	{"XM_Fails", sum, 3, FAILS},     {"OLD_Alone", sum, 1, REPORTS},
	{"NEW_Alone", sum, 2, REPORTS},
};

static void report(const char *path, size_t nr, unsigned long n)
{
	FILE *out = path ? fopen(path, "w") : NULL;

	if (!out)
		return;
	if (cases[nr].reports == GARBAGE)
		fputs("\001 {{{ garbage", out);
	if (cases[nr].reports == REPORTS)
		fprintf(out, "{\"benchmarks\":[{\"name\":\"%s\",\"run_type\":\"iteration\",\"iterations\":%lu}]}",
			cases[nr].name, n);
	if (cases[nr].reports == FAILS)
		fprintf(out,
			"{\"benchmarks\":[{\"name\":\"%s\",\"error_occurred\":true,\"error_message\":\"it broke\"}]}",
			cases[nr].name);
	fclose(out);
}

int main(int argc, char **argv)
{
	const char *filter = ".", *out = NULL, *time = "1x", *value;
	int list = 0, side = argc > 2 && !strcmp(argv[2], "old") ? 1 : argc > 2 && !strcmp(argv[2], "new") ? 2 : 0;
	unsigned long n;
	regex_t regex;

	slower = argc > 1 ? (uint32_t)atoi(argv[1]) : 0;
	for (int i = 3; i < argc; i++) {
		value = strchr(argv[i], '=');
		value = value ? value + 1 : "true";
		if (!strncmp(argv[i], "--benchmark_list_tests", 22))
			list = !strcmp(value, "true");
		else if (!strncmp(argv[i], "--benchmark_filter", 18))
			filter = value;
		else if (!strncmp(argv[i], "--benchmark_min_time", 20))
			time = value;
		else if (!strncmp(argv[i], "--benchmark_out=", 16))
			out = value;
	}
	n = strtoul(time, NULL, 10);
	if (!side || regcomp(&regex, filter, REG_EXTENDED | REG_NOSUB))
		return 0;
	for (size_t nr = 0; nr < sizeof(cases) / sizeof(cases[0]); nr++) {
		if (!(cases[nr].sides & side) || regexec(&regex, cases[nr].name, 0, NULL, 0))
			continue;
		if (list) {
			puts(cases[nr].name);
			continue;
		}
		for (unsigned long i = 0; i < n; i++)
			cases[nr].run();
		report(out, nr, n);
	}
	regfree(&regex);
	return 0;
}
