/* Functions of source files in two versions of a program: which are the same one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "include/internal/base.h"
#include "launcher/profile/match_functions.h"
#include "tests/unit/tap.h"

#define MAX_PLACES 32

/* Of CPU time: without bounds, the profiles below would take minutes. Sanitizers take twenty times as long. */
#ifdef __SANITIZE_ADDRESS__
#define LIMIT_S 40
#else
#define LIMIT_S 2
#endif

static double cpu_seconds(void)
{
	return (double)clock() / CLOCKS_PER_SEC;
}

static const char *const none[2];

/* Whether exactly the named pairs of places are the same function: "0=3 1=4". */
static void is_match(const struct csink_place *places, uint32_t nr, const char *const scripts[2], const char *want,
		     const char *what)
{
	uint32_t same[MAX_PLACES], file[MAX_PLACES];
	char got[512] = "";
	size_t len = 0;

	if (csink_match_places(places, nr, scripts, same, file)) {
		ok(0, "%s: no memory", what);
		return;
	}
	for (uint32_t i = 0; i < nr; i++) {
		for (uint32_t k = i + 1; k < nr; k++) {
			if (same[i] == same[k])
				len += (size_t)snprintf(got + len, sizeof(got) - len, "%s%u=%u", len ? " " : "", i, k);
		}
	}
	is_str(got, want, what);
}

#define IS_MATCH(places, scripts, want, what) is_match(places, CSINK_ARRAY_SIZE(places), scripts, want, what)

static void test_files(void)
{
	static const char *const scripts[2] = {"/x/a.py", "/y/b.py"};
	const struct csink_place moved[] = {{"old/slow.py", "score", 3, 0}, {"new/slow.py", "score", 5, 1}};
	const struct csink_place renamed[] = {{"/x/a.py", "score", 3, 0}, {"/y/b.py", "score", 3, 1}};
	const struct csink_place apart[] = {{"/p/a.py", "get", 3, 0}, {"/p/b.py", "get", 3, 0}};
	const struct csink_place both[] = {
		{"/p/a.py", "get", 3, 0}, {"/p/b.py", "get", 3, 0}, {"/p/a.py", "get", 7, 1}, {"/p/b.py", "get", 3, 1}};
	const struct csink_place checkouts[] = {
		{"/base/pkg/a/__init__.py", "get", 3, 0},   {"/base/pkg/b/__init__.py", "get", 3, 0},
		{"/base/pkg/b/__init__.py", "put", 9, 0},   {"/base/pkg/c/__init__.py", "get", 3, 0},
		{"/me/top/pkg/a/__init__.py", "get", 4, 1}, {"/me/top/pkg/b/__init__.py", "get", 3, 1},
		{"/me/top/pkg/b/__init__.py", "put", 9, 1}, {"/me/top/pkg/d/__init__.py", "get", 3, 1}};
	const struct csink_place libraries[] = {{"/lib/json/__init__.py", "loads", 3, 0},
						{"/lib/json/__init__.py", "<module>", 0, 0},
						{"/lib/re/__init__.py", "compile", 3, 1},
						{"/lib/re/__init__.py", "<module>", 0, 1}};
	const struct csink_place text[] = {{"<string>", "f", 1, 0}, {"<string>", "f", 1, 1}};

	IS_MATCH(moved, none, "0=1", "another directory and line");
	IS_MATCH(renamed, none, "", "other names of the files");
	IS_MATCH(renamed, scripts, "0=1", "other names of the scripts");
	IS_MATCH(apart, none, "", "one name in two files of one version");
	IS_MATCH(both, none, "0=2 1=3", "one name in two files of both versions");
	IS_MATCH(checkouts, none, "0=4 1=5 2=6", "two checkouts: each file is that of the same place below the top");
	IS_MATCH(libraries, none, "", "files of one name that share no function");
	IS_MATCH(text, none, "0=1", "what is not a path is compared as it is");
}

static void test_lines(void)
{
	const struct csink_place ordinal[] = {{"a.py", "<lambda>", 3, 0},
					      {"a.py", "<lambda>", 4, 0},
					      {"a.py", "<lambda>", 5, 1},
					      {"a.py", "<lambda>", 6, 1}};
	const struct csink_place fewer[] = {{"a.py", "f", 1, 0},         {"a.py", "<lambda>", 10, 0},
					    {"a.py", "<lambda>", 20, 0}, {"a.py", "<lambda>", 30, 0},
					    {"a.py", "f", 11, 1},        {"a.py", "<lambda>", 30, 1},
					    {"a.py", "<lambda>", 40, 1}};
	const struct csink_place classes[] = {{"a.py", "__init__", 5, 0},   {"a.py", "run", 8, 0},
					      {"a.py", "__init__", 105, 0}, {"a.py", "stop", 108, 0},
					      {"a.py", "run", 8, 1},        {"a.py", "__init__", 205, 1},
					      {"a.py", "stop", 208, 1},     {"a.py", "<module>", 0, 1}};
	const struct csink_place more[] = {{"a.py", "f", 7, 1}, {"a.py", "f", 2, 0}, {"a.py", "f", 8, 1}};
	const struct csink_place unknown[] = {{"a.js", "f", 4, 0}, {"a.js", "f", 0, 0}, {"a.js", "g", 0, 0},
					      {"a.js", "g", 7, 0}, {"a.js", "g", 9, 0}, {"a.js", "f", 0, 1},
					      {"a.js", "f", 5, 1}};
	const struct csink_place hostile[] = {
		{"a.py", "f", INT64_MIN, 0}, {"a.py", "f", 4, 0}, {"a.py", "f", INT64_MAX, 1}, {"a.py", "f", -1, 1}};

	IS_MATCH(ordinal, none, "0=2 1=3", "as many of one name: in order");
	IS_MATCH(fewer, none, "0=4 2=5 3=6", "fewer of one name: by the lines, moved as the function before them");
	IS_MATCH(classes, none, "1=4 2=5 3=6", "methods of one name: by the lines around them");
	IS_MATCH(more, none, "0=1", "more of one name: the closest");
	IS_MATCH(unknown, none, "0=1 0=5 0=6 1=5 1=6 5=6", "an unknown line is the only known one of the name");
	IS_MATCH(hostile, none, "0=1 0=3 1=3", "lines that no file has");
}

/* More of one name than are compared one by one. */
static void test_many(void)
{
	enum { NR = 3000 };
	struct csink_place *places = calloc(2 * NR, sizeof(*places));
	uint32_t *same = calloc(2 * NR, sizeof(*same)), *file = calloc(2 * NR, sizeof(*file)), nr = 0;

	for (int i = 0; i < 2 * NR; i++)
		places[i] = (struct csink_place){"a.py", "f", i, i / NR};
	ok(!csink_match_places(places, 2 * NR, none, same, file), "3,000 functions of one name are matched");
	for (int i = 0; i < 2 * NR; i++)
		nr += same[i] == 0;
	is_num(nr, 2 * NR, "3,000 functions of one name are one function");
	free(places);
	free(same);
	free(file);
}

/* Time and memory that grow with the square of such profiles would be minutes and gigabytes. */
static void test_hostile(void)
{
	enum { NR = 30000, LEN = 32 };
	struct csink_place *places = calloc(2 * NR, sizeof(*places));
	uint32_t *same = calloc(2 * NR, sizeof(*same)), *file = calloc(2 * NR, sizeof(*file));
	char(*texts)[LEN] = calloc(2 * NR, LEN);
	double begun = cpu_seconds();

	for (int i = 0; i < 2 * NR; i++) {
		snprintf(texts[i], LEN, "/%s/%d/x.py", i < NR ? "old" : "new", i);
		places[i] = (struct csink_place){texts[i], "f", i, i / NR};
	}
	ok(!csink_match_places(places, 2 * NR, none, same, file),
	   "30,000 files of one name in each version are matched");
	for (int i = 0; i < 2 * NR; i++)
		places[i].side = 0;
	ok(!csink_match_places(places, 2 * NR, none, same, file),
	   "60,000 files of one name in one version are matched");
	for (int i = 0; i < 2 * NR; i++) {
		snprintf(texts[i], LEN, "f%d", i);
		places[i] = (struct csink_place){"a.py", i < NR ? "z" : texts[i], 2 * NR - i, i / NR};
	}
	ok(!csink_match_places(places, 2 * NR, none, same, file),
	   "30,000 functions of one name and 30,000 of another each are matched");
	for (int i = 0; i < 2 * NR; i++)
		places[i].name = i % NR < NR / 2 ? texts[i % NR] : i % NR % 2 ? "y" : "z";
	ok(!csink_match_places(places, 2 * NR, none, same, file),
	   "15,000 moved functions and two names of 7,500 are matched");
	ok(same[NR] == 0 && same[NR - 2] == same[NR / 2], "those that are too many to compare are one function");
	ok(cpu_seconds() - begun < 20, "profiles made to take long take %.1f s", cpu_seconds() - begun);
	free(places);
	free(same);
	free(file);
	free(texts);
}

/* The same names in all files, so that the profile is small: 40 of 50,000 bytes each, which differ at their end. */
static void test_long(void)
{
	enum { NR_FILES = 300, NR_NAMES = 40, NR = NR_FILES * NR_NAMES, LEN = 50000 };
	struct csink_place *places = calloc(2 * NR, sizeof(*places));
	uint32_t *same = calloc(2 * NR, sizeof(*same)), *file = calloc(2 * NR, sizeof(*file));
	char *names[NR_NAMES], *paths[2 * NR_FILES];
	double begun = cpu_seconds();

	for (int i = 0; i < NR_NAMES; i++) {
		names[i] = malloc(LEN + 8);
		memset(names[i], 'f', LEN);
		snprintf(names[i] + LEN, 8, "%d", i);
	}
	for (int i = 0; i < 2 * NR_FILES; i++) {
		paths[i] = malloc(LEN + 32);
		snprintf(paths[i], 32, "/%d", i);
		memset(paths[i] + strlen(paths[i]), '/', 4000);
		strcpy(paths[i] + 4000, "/x.py");
	}
	for (int i = 0; i < 2 * NR; i++)
		places[i] = (struct csink_place){paths[i / NR_NAMES], names[i % NR_NAMES], i, i / NR};
	ok(!csink_match_places(places, 2 * NR, none, same, file), "names of 50,000 bytes are matched");
	ok(cpu_seconds() - begun < LIMIT_S, "long names of functions take %.1f s", cpu_seconds() - begun);
	for (int i = 0; i < 2 * NR_FILES; i++) {
		memset(paths[i], '/', LEN);
		snprintf(paths[i] + LEN, 32, "%d/x.py", i);
	}
	for (int i = 0; i < 2 * NR; i++)
		places[i].name = "f";
	begun = cpu_seconds();
	ok(!csink_match_places(places, 2 * NR, none, same, file), "paths of 50,000 bytes are matched");
	ok(cpu_seconds() - begun < LIMIT_S, "long paths take %.1f s", cpu_seconds() - begun);
	for (int i = 0; i < NR_NAMES; i++)
		free(names[i]);
	for (int i = 0; i < 2 * NR_FILES; i++)
		free(paths[i]);
	free(places);
	free(same);
	free(file);
}

int main(void)
{
	test_files();
	test_lines();
	test_many();
	test_hostile();
	test_long();
	return done();
}
