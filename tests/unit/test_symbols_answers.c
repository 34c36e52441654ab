/*
 * Names that were kept are those that would be found: random addresses of objects with much debug information and with
 * compressed one are named without a cache, with an empty one and with a full one, and compared.
 */
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "launcher/gate/stats/stats.h"
#include "launcher/profile/profile.h"
#include "launcher/symbols/symbols.h"
#include "tests/unit/tap.h"

#define NR 3000

static char base[] = "/tmp/countersink-answers.XXXXXX", cache[300], object_path[400];
static uint8_t build_id[20];
static uint64_t text_low, text_bytes;

__attribute__((format(printf, 3, 4))) static void shell(char *out, size_t size, const char *fmt, ...)
{
	char command[2048];
	va_list ap;
	FILE *pipe;

	va_start(ap, fmt);
	vsnprintf(command, sizeof(command), fmt, ap);
	va_end(ap);
	pipe = popen(command, "r");
	out[0] = 0;
	if (pipe && fgets(out, (int)size, pipe))
		out[strcspn(out, "\n")] = 0;
	if (pipe)
		pclose(pipe);
}

/* Its build-id, and where its code is. */
static bool learn_object(void)
{
	char word[200];
	unsigned int byte;

	shell(word, sizeof(word), "readelf -n '%s' 2>/dev/null | awk '/Build ID/ { print $3 }'", object_path);
	for (size_t i = 0; i < sizeof(build_id); i++) {
		if (sscanf(word + 2 * i, "%2x", &byte) != 1)
			return false;
		build_id[i] = (uint8_t)byte;
	}
	shell(word, sizeof(word),
	      "readelf -SW '%s' | sed 's/^ *\\[ *[0-9]*\\]//' | awk '$1 == \".text\" { print $3, $5 }'", object_path);
	return sscanf(word, "%lx %lx", &text_low, &text_bytes) == 2;
}

/* All that is found of NR addresses, a line each, sorted by address; flags: what csink_symbols_resolve returns. */
static char *name_all(uint64_t seed, int *flags)
{
	struct csink_object object = {.path = object_path, .build_id = build_id, .build_id_len = sizeof(build_id)};
	struct csink_want *wants = calloc(NR, sizeof(*wants));
	struct csink_profile *p = csink_profile_create();
	struct csink_random random;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	csink_random_init(&random, seed);
	for (uint32_t i = 0; i < NR; i++) {
		/* A bit more than the code: what stands around it has other sources. */
		uint64_t address = text_low - 0x400 + csink_random_below(&random, (uint32_t)text_bytes + 0x800);

		wants[i] = (struct csink_want){address, csink_profile_location_add(p, 0, address, NULL, 0)};
	}
	*flags = csink_symbols_resolve(p, &object, wants, NR);
	/* Locations are in the order in which they were drawn. */
	for (uint32_t i = 1; i < p->nr_locations; i++) {
		const struct csink_profile_location *at = &p->locations[i];

		fprintf(out, "%lx", at->address);
		for (uint32_t k = at->first_line; k < at->first_line + at->nr_lines; k++) {
			const struct csink_profile_function *f = &p->functions[p->lines[k].function];

			fprintf(out, " %s %s %s:%ld (%ld)", csink_profile_text(p, f->name),
				csink_profile_text(p, f->system_name), csink_profile_text(p, f->file),
				(long)p->lines[k].line, (long)f->start_line);
		}
		fputc('\n', out);
	}
	fclose(out);
	csink_profile_free(p);
	free(wants);
	return text;
}

static void use_cache(const char *directory)
{
	setenv("XDG_CACHE_HOME", directory, 1);
}

/* Without one. */
static char *expect(uint64_t seed, int *flags)
{
	char *text;

	use_cache("no absolute path");
	setenv("HOME", "nor here", 1);
	text = name_all(seed, flags);
	use_cache(cache);
	return text;
}

static void compare(uint64_t seed, const char *what)
{
	int want_flags, flags;
	char *want = expect(seed, &want_flags), *got = name_all(seed, &flags);

	ok(strlen(want) > 20 * NR && !strcmp(got, want), "%s: the same as without a cache", what);
	is_num(flags, want_flags, "the kinds of names are the same");
	free(want);
	free(got);
}

/* The files that are kept: how many, and when the latest was written. */
static uint32_t nr_kept(int64_t *latest_ns)
{
	char pattern[400];
	glob_t found = {0};
	struct stat st;
	uint32_t nr;

	snprintf(pattern, sizeof(pattern), "%s/countersink/symbols-*/*", cache);
	glob(pattern, 0, NULL, &found);
	nr = (uint32_t)found.gl_pathc;
	*latest_ns = 0;
	for (uint32_t i = 0; i < nr; i++) {
		if (!stat(found.gl_pathv[i], &st))
			*latest_ns = CSINK_MAX(*latest_ns, st.st_mtim.tv_sec * 1000000000L + st.st_mtim.tv_nsec);
	}
	globfree(&found);
	return nr;
}

/* Change a byte in the middle of the file that is kept. */
static void damage(void)
{
	char pattern[400];
	glob_t found = {0};
	struct stat st;
	FILE *file;

	snprintf(pattern, sizeof(pattern), "%s/countersink/symbols-*/*", cache);
	glob(pattern, 0, NULL, &found);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		file = stat(found.gl_pathv[i], &st) ? NULL : fopen(found.gl_pathv[i], "r+");
		for (long at = st.st_size / 8; file && at < st.st_size; at += st.st_size / 8) {
			fseek(file, at, SEEK_SET);
			fputc(0x55, file);
		}
		if (file)
			fclose(file);
	}
	globfree(&found);
}

static void remove_cache(void)
{
	char command[800];

	snprintf(command, sizeof(command), "chmod -R u+w '%s' 2>/dev/null; rm -rf '%s'", cache, cache);
	is_num(system(command), 0, "the cache can be removed");
}

static void test_object(const char *what)
{
	char line[200];
	int64_t first_ns, then_ns;

	if (!learn_object()) {
		skip(what, "it has no build-id, or there is no readelf");
		return;
	}
	remove_cache();
	snprintf(line, sizeof(line), "%s, an empty cache", what);
	compare(1, line);
	is_num(nr_kept(&first_ns), 1, "one cache file is kept");
	for (uint64_t seed = 1; seed <= 4; seed++) {
		snprintf(line, sizeof(line), "%s, a full one, addresses %d", what, (int)seed);
		compare(seed, line);
	}
	nr_kept(&then_ns);
	ok(then_ns == first_ns, "%s: the cache file is not rewritten for addresses that are new to it", what);
	damage();
	snprintf(line, sizeof(line), "%s, a damaged one", what);
	compare(5, line);
}

/* The same file with another time, then without its debug information: what was kept means nothing. */
static void test_changes(void)
{
	char word[100];
	int64_t ns;

	remove_cache();
	compare(1, "before a change");
	shell(word, sizeof(word), "touch -d '2001-01-01 01:01' '%s'", object_path);
	compare(1, "a file with another time");
	is_num(nr_kept(&ns), 2, "the cache file of the other time is kept");
	shell(word, sizeof(word), "strip --strip-debug '%s' && echo stripped", object_path);
	is_str(word, "stripped", "the debug file is removed");
	compare(1, "a file without debug information");
	is_num(unlink(object_path), 0, "the object is removed");
}

static void test_gone(void)
{
	int flags;
	char *text = name_all(1, &flags);

	ok(flags > 0 && strstr(text, ".c:"), "addresses of a removed object are named from the cache");
	free(text);
}

/* Directories that take nothing, and none. */
static void test_places(void)
{
	int64_t ns;

	remove_cache();
	mkdir(cache, 0500);
	compare(1, "a directory that takes nothing (but from root)");
	use_cache("/dev/null/no/such");
	setenv("HOME", "/dev/null", 1);
	unsetenv("XDG_CACHE_HOME");
	compare(1, "a home that is no directory");
	unsetenv("HOME");
	unsetenv("XDG_CACHE_HOME");
	remove_cache();
	compare(1, "no home");
	setenv("HOME", base, 1);
	nr_kept(&ns);
}

static void test_at_once(void)
{
	int want_flags, status, good = 0;
	char *want = expect(9, &want_flags);

	remove_cache();
	for (int i = 0; i < 8; i++) {
		if (!fork()) {
			int flags;
			char *got = name_all(9, &flags);

			_exit(flags == want_flags && !strcmp(got, want) ? 0 : 1);
		}
	}
	while (wait(&status) > 0)
		good += !status;
	is_num(good, 8, "eight processes that fill one cache at once name alike");
	compare(10, "after them");
	free(want);
}

int main(void)
{
	char self[300], word[100], *slash;
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (!mkdtemp(base) || len < 0)
		return 1;
	self[len] = 0;
	snprintf(cache, sizeof(cache), "%s/cache", base);
	slash = strstr(self, "/tests/unit/");
	if (!slash)
		return 1;
	snprintf(object_path, sizeof(object_path), "%.*s/bin/countersink", (int)(slash - self), self);
	test_object("much debug information");
	snprintf(object_path, sizeof(object_path), "%s/compressed", base);
	shell(word, sizeof(word), "objcopy --compress-debug-sections '%s' '%s' 2>&1 && echo done", self, object_path);
	if (!strcmp(word, "done")) {
		test_object("compressed");
		test_at_once();
		test_places();
		use_cache(cache);
		test_changes();
		test_gone();
	} else {
		skip("compressed debug information", word);
	}
	shell(word, sizeof(word), "rm -rf '%s'", base);
	return done();
}
