/* Names that were found before: kept by build-id and source, believed only where no other user can write. */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/symbols/symbols_cache.h"
#include "launcher/symbols/symbols_impl.h"
#include "tests/unit/tap.h"

static char base[] = "/tmp/countersink-cache.XXXXXX";
static const uint8_t id[20] = {0xab, 0xcd, 1, 2, 3};
static const struct csink_object object = {.path = "/gone/libx.so", .build_id = id, .build_id_len = sizeof(id)};

static uint32_t named_location(struct csink_profile *p, uint64_t address, const char *name, int64_t line)
{
	struct csink_profile_function function = {.name = csink_profile_str(p, name),
						  .system_name = csink_profile_str(p, name),
						  .file = csink_profile_str(p, "x.c"),
						  .start_line = 7};
	struct csink_profile_line lines = {.function = csink_profile_function_add(p, &function), .line = line};

	return csink_profile_location_add(p, 0, address, name ? &lines : NULL, name != NULL);
}

/* Of sixteen addresses. */
static void put(const char *source, uint64_t address, const char *name)
{
	struct csink_profile *p = csink_profile_create();
	struct csink_answer answer = {address, address + 16, named_location(p, address + 0x7000, name, 12),
				      CSINK_FOUND_NAMES | CSINK_FOUND_LINES};
	struct csink_answers answers = {.p = p, .all = &answer, .nr = 1};
	struct csink_symbols_cache cache = {0};

	csink_symbols_cache_open(&cache, &object, source);
	csink_symbols_cache_put(&cache, &answers, 1, false);
	csink_symbols_cache_close(&cache);
	csink_profile_free(p);
}

/* The name that is known of an address; "?" if none is. */
static const char *get(const char *source, uint64_t address)
{
	struct csink_profile *p = csink_profile_create();
	struct csink_want wants[3] = {{1, csink_profile_location_add(p, 0, 1, NULL, 0)},
				      {address, csink_profile_location_add(p, 0, 2, NULL, 0)},
				      {3, csink_profile_location_add(p, 0, 3, NULL, 0)}};
	struct csink_symbols_cache cache = {0};
	static char name[64];
	int flags = 0;
	uint32_t left;

	csink_symbols_cache_open(&cache, &object, source);
	left = csink_symbols_cache_take(&cache, p, wants, 3, &flags);
	snprintf(name, sizeof(name), "?");
	if (left == 2) {
		const struct csink_profile_location *at = &p->locations[2];

		ok(wants[0].address != address && wants[1].address != address, "the unknown addresses come first");
		is_num(flags, CSINK_FOUND_NAMES | CSINK_FOUND_LINES, "the kinds of names found are cached");
		snprintf(name, sizeof(name), "%s:%d",
			 csink_profile_text(p, p->functions[p->lines[at->first_line].function].name),
			 (int)p->lines[at->first_line].line);
	}
	csink_symbols_cache_close(&cache);
	csink_profile_free(p);
	return name;
}

/* The only file that is there. */
static char *file_path(void)
{
	static char path[512];
	glob_t found;

	snprintf(path, sizeof(path), "%s/countersink/symbols-2/abcd010203000000000000000000000000000000-*", base);
	if (glob(path, 0, NULL, &found))
		return path;
	snprintf(path, sizeof(path), "%s", found.gl_pathc == 1 ? found.gl_pathv[0] : "several");
	globfree(&found);
	return path;
}

/* Overwrite some bytes, counted from the end if at is negative. */
static void damage(long at)
{
	FILE *file = fopen(file_path(), "r+");

	fseek(file, at, at < 0 ? SEEK_END : SEEK_SET);
	fputs("damaged", file);
	fclose(file);
}

/* Other files in the place of one that is kept, which is then put back. */
static void test_irregular(void)
{
	char path[512], kept[520];

	snprintf(path, sizeof(path), "%s", file_path());
	snprintf(kept, sizeof(kept), "%s.kept", base);
	ok(!rename(path, kept) && !mkfifo(path, 0600), "a FIFO replaces the cache file");
	is_str(get("a", 0x300), "?", "a FIFO in the cache is not waited for");
	ok(!unlink(path) && !close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600)) && !truncate(path, 1LL << 40),
	   "a file of a terabyte replaces the FIFO");
	is_str(get("a", 0x300), "?", "a file of a terabyte in the cache is not read");
	is_num(rename(kept, path), 0, "the file is put back");
}

int main(void)
{
	char command[128], directory[256];

	if (!mkdtemp(base))
		return 1;
	setenv("XDG_CACHE_HOME", base, 1);
	is_str(get("a", 0x100), "?", "an empty cache has no answer");
	put("a", 0x100, "first");
	is_num(access(file_path(), R_OK), 0, "a cache file is created for the build-id");
	is_str(get("a", 0x100), "first:12", "a stored answer is found");
	is_str(get("a", 0x10f), "first:12", "a stored answer is found for all addresses that share it");
	is_str(get("a", 0x110), "?", "the address after that function has no answer");
	is_str(get("a", 0x200), "?", "an address without an answer has none");
	put("a", 0x200, "second");
	is_str(get("a", 0x100), "first:12", "a stored answer is kept");
	is_str(get("a", 0x200), "second:12", "a later answer is added");
	is_str(get("b", 0x100), "?", "another source of names has no answer");
	is_str(get(NULL, 0x100), "first:12", "without a source the last source's answer is found");
	damage(0);
	is_str(get("a", 0x100), "?", "a damaged file is ignored");
	put("a", 0x100, "again");
	is_str(get("a", 0x100), "again:12", "a damaged file is replaced");
	damage(-20);
	is_str(get("a", 0x100), "?", "a file whose end is damaged is ignored");
	put("a", 0x300, "third");
	is_str(get("a", 0x300), "third:12", "answers stored after damage are kept");
	is_str(get("a", 0x100), "?", "damaged answers stay unknown");
	test_irregular();
	snprintf(directory, sizeof(directory), "%s/countersink/symbols-2", base);
	chmod(directory, 0777);
	is_str(get("a", 0x300), "?", "a directory that others may write to is not believed");
	chmod(directory, 0700);
	is_str(get("a", 0x300), "third:12", "a directory that only its owner may write to is believed");
	setenv("XDG_CACHE_HOME", "/nowhere/at/all", 1);
	is_str(get("a", 0x300), "?", "without a directory the cache is empty");
	put("a", 0x300, "nowhere");
	is_num(access("/nowhere", F_OK), -1, "without a directory the cache writes nothing");
	snprintf(command, sizeof(command), "rm -rf %s", base);
	is_num(system(command), 0, "the directory may go at any time");
	return done();
}
