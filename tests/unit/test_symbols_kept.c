/* Names kept from one profile to the next are the names that the files give, and end with the file that gave them. */
#include <fcntl.h>
#include <libgen.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/profile/profile.h"
#include "launcher/symbols/symbols_kept.h"
#include "tests/unit/tap.h"

#define NR_ADDRESSES 3000

static char directory[] = "/tmp/csink-kept.XXXXXX";

struct code {
	uint64_t low, high;
};

static bool run(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static bool run(const char *fmt, ...)
{
	char command[4096];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(command, sizeof(command), fmt, ap);
	va_end(ap);
	return !system(command);
}

/* From the first of the executable sections to the end of the last: stubs of the linker, too, and gaps. */
static struct code find_code(const char *path)
{
	struct code code = {UINT64_MAX, 0};
	unsigned long long at, size;
	char command[4096];
	FILE *out;

	snprintf(command, sizeof(command),
		 "readelf -SW '%s' | sed 's/^ *\\[ *[0-9]*\\]//' | awk '$7 ~ /X/ { print $3, $5 }'", path);
	out = popen(command, "r");
	while (out && fscanf(out, "%llx %llx", &at, &size) == 2) {
		code.low = at < code.low ? at : code.low;
		code.high = at + size > code.high ? at + size : code.high;
	}
	if (out)
		pclose(out);
	return code;
}

/* What all but every third of the addresses, or all of them, are named. In malloc'ed memory. */
static char *names_of(const char *path, struct code code, bool all)
{
	struct csink_object object = {.path = path};
	struct csink_profile *p = csink_profile_create();
	struct csink_want *wants = calloc(NR_ADDRESSES, sizeof(*wants));
	uint32_t nr = 0;
	size_t len;
	char *text;
	FILE *out;

	for (uint32_t i = 0; i < NR_ADDRESSES; i++) {
		uint64_t address = code.low + (code.high - code.low) * i / NR_ADDRESSES;

		if (all || i % 3)
			wants[nr++] = (struct csink_want){address, csink_profile_location_add(p, 0, address, NULL, 0)};
	}
	if (csink_symbols_resolve(p, &object, wants, nr) < 0)
		nr = 0;
	out = open_memstream(&text, &len);
	for (uint32_t i = 0; i < nr; i++) {
		const struct csink_profile_location *at = &p->locations[wants[i].location];

		fprintf(out, "%#llx", (unsigned long long)wants[i].address);
		for (uint32_t k = 0; k < at->nr_lines; k++) {
			const struct csink_profile_line *line = &p->lines[at->first_line + k];
			const struct csink_profile_function *function = &p->functions[line->function];

			fprintf(out, " %s %s:%d (%d)", csink_profile_text(p, function->name),
				csink_profile_text(p, function->file), (int)line->line, (int)function->start_line);
		}
		fputc('\n', out);
	}
	fclose(out);
	csink_profile_free(p);
	free(wants);
	return text;
}

static uint32_t count_lines(const char *text, const char *with)
{
	uint32_t nr = 0;

	for (const char *at = text, *end; *at; at = end + 1) {
		end = strchr(at, '\n');
		nr += memmem(at, (size_t)(end - at), with, strlen(with)) != NULL;
	}
	return nr;
}

static void test_same(const char *path, const char *what)
{
	struct code code = find_code(path);
	char *plain = names_of(path, code, true), *some = names_of(path, code, false), *kept;

	ok(count_lines(plain, " ") > NR_ADDRESSES / 10 * 9, "%s: there are names (%u of %u addresses)", what,
	   count_lines(plain, " "), NR_ADDRESSES);
	csink_symbols_keep_begin();
	kept = names_of(path, code, false);
	ok(!strcmp(kept, some), "%s: the same names the first time", what);
	free(kept);
	kept = names_of(path, code, true);
	ok(!strcmp(kept, plain), "%s: the same names with addresses that are new the second time", what);
	free(kept);
	kept = names_of(path, code, true);
	ok(!strcmp(kept, plain), "%s: the same names where all are kept", what);
	free(kept);
	csink_symbols_keep_end();
	free(plain);
	free(some);
}

/* Zeros in place of all that is behind the ELF header; its time is as it was, or a second later. */
static void overwrite(const char *path, bool later)
{
	static const char zeros[65536];
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	struct timespec times[2] = {{0}};
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return;
	for (off_t at = 64; at < st.st_size; at += (off_t)sizeof(zeros)) {
		size_t size = (size_t)(st.st_size - at) < sizeof(zeros) ? (size_t)(st.st_size - at) : sizeof(zeros);

		if (pwrite(fd, zeros, size, at) != (ssize_t)size)
			perror(path);
	}
	times[0] = st.st_atim;
	times[1] = st.st_mtim;
	times[1].tv_sec += later;
	futimens(fd, times);
	close(fd);
}

static void test_until_changed(const char *path)
{
	struct code code = find_code(path);
	char *before, *after;

	csink_symbols_keep_begin();
	before = names_of(path, code, true);
	overwrite(path, false);
	after = names_of(path, code, true);
	ok(count_lines(before, "main") && !strcmp(before, after), "names are kept, and the file is not read again");
	free(after);
	overwrite(path, true);
	after = names_of(path, code, true);
	is_num(count_lines(after, " "), 0, "a file that has changed no longer has the names of the former one");
	free(after);
	csink_symbols_keep_end();
	free(before);
}

static void test_ends(const char *path)
{
	struct csink_object object = {.path = path}, made = {.path = path, .image = "x", .nr_image = 1};

	is_str(csink_kept_find(&object) ? "kept" : NULL, NULL, "nothing is kept unless it was asked for");
	csink_symbols_keep_begin();
	ok(csink_kept_find(&object) && csink_kept_find(&object) == csink_kept_find(&object),
	   "a file is one object, however often it is looked for");
	is_str(csink_kept_find(&made) ? "kept" : NULL, NULL, "code that was made at run time is not kept");
	object.path = "/no/such/file";
	is_str(csink_kept_find(&object) ? "kept" : NULL, NULL, "a missing file is not kept");
	csink_symbols_keep_end();
	object.path = path;
	is_str(csink_kept_find(&object) ? "kept" : NULL, NULL, "after the end nothing is kept");
}

int main(int argc, char **argv)
{
	char target[1024], copy[1024], bare[1024], cache[1024], *own = realpath("/proc/self/exe", NULL);

	(void)argc;
	snprintf(target, sizeof(target), "%s/../targets/gate_work", dirname(strdupa(argv[0])));
	if (!own || !mkdtemp(directory))
		return 1;
	snprintf(cache, sizeof(cache), "%s/cache", directory);
	snprintf(copy, sizeof(copy), "%s/copy", directory);
	snprintf(bare, sizeof(bare), "%s/bare", directory);
	if (!run("cp '%s' '%s' && strip -o '%s' '%s'", target, copy, bare, target))
		return 1;
	/* Nothing on disk, or the second program below would find what the first has left. */
	setenv("XDG_CACHE_HOME", "/nowhere/at/all", 1);
	test_same(copy, "a program with debug information");
	test_same(bare, "a stripped program");
	test_same(own, "this test");
	setenv("XDG_CACHE_HOME", cache, 1);
	mkdir(cache, 0700);
	test_same(own, "this test, with a cache on disk");
	setenv("XDG_CACHE_HOME", "/nowhere/at/all", 1);
	test_until_changed(copy);
	test_ends(bare);
	run("rm -rf '%s'", directory);
	free(own);
	return done();
}
