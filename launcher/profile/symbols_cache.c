/* See symbols_cache.h. */
#include "launcher/profile/symbols_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "launcher/output/outfile.h"
#include "launcher/output/pprof.h"
#include "launcher/search.h"

#define FORMAT "1" /* of the files: another one has another folder */
#define MAX_BYTES (256LL << 20)
#define MAX_LOCATIONS 200000 /* of a file; what was known before gives way */
#define KEY_SOURCE "source"
#define KEY_FOUND "found"

/* ---- the folder ---- */

static bool is_private(const char *path)
{
	struct stat st;

	return !lstat(path, &st) && S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 022);
}

/* The folder, made if it is not there. False: there is none that could be trusted. */
static bool find_folder(char *path, size_t size)
{
	const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	bool is_base = base && *base == '/';
	int len;

	if (!is_base && (!home || *home != '/'))
		return false;
	len = snprintf(path, size, "%s%s", is_base ? base : home, is_base ? "" : "/.cache");
	if (len < 0 || (size_t)len + 64 > size)
		return false;
	mkdir(path, 0700);
	strcat(path, "/countersink");
	if (mkdir(path, 0700) && !is_private(path))
		return false;
	strcat(path, "/symbols-" FORMAT);
	mkdir(path, 0700);
	return is_private(path);
}

struct entry {
	char name[64];
	int64_t bytes, time_ns;
};

static int compare_entries(const void *a, const void *b)
{
	const struct entry *left = a, *right = b;

	return left->time_ns < right->time_ns ? -1 : left->time_ns > right->time_ns;
}

/* Remove what was written longest ago, where all together is too much. */
static void prune(const char *file)
{
	struct entry *all = NULL, *grown;
	uint32_t nr = 0, cap = 0, i;
	struct dirent *found;
	int64_t bytes = 0;
	char folder[4096];
	struct stat st;
	DIR *dir;

	snprintf(folder, sizeof(folder), "%s", file);
	*strrchr(folder, '/') = 0;
	dir = opendir(folder);
	while (dir && (found = readdir(dir))) {
		if (fstatat(dirfd(dir), found->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode) ||
		    strlen(found->d_name) >= sizeof(all->name))
			continue;
		if (nr == cap) {
			cap = CSINK_MAX(cap * 2, 64);
			grown = reallocarray(all, cap, sizeof(*all));
			if (!grown)
				break;
			all = grown;
		}
		strcpy(all[nr].name, found->d_name);
		all[nr].bytes = st.st_size;
		all[nr++].time_ns = st.st_mtim.tv_sec * (int64_t)CSINK_NS_PER_S + st.st_mtim.tv_nsec;
		bytes += st.st_size;
	}
	if (bytes > MAX_BYTES)
		qsort(all, nr, sizeof(*all), compare_entries);
	for (i = 0; i < nr && bytes > MAX_BYTES; i++) {
		if (!unlinkat(dirfd(dir), all[i].name, 0))
			bytes -= all[i].bytes;
	}
	free(all);
	if (dir)
		closedir(dir);
}

/* ---- reading ---- */

static int compare_locations(const void *a, const void *b, void *context)
{
	const struct csink_profile *p = context;
	uint64_t left = p->locations[*(const uint32_t *)a].address, right = p->locations[*(const uint32_t *)b].address;

	return left < right ? -1 : left > right;
}

void csink_symbols_cache_open(struct csink_symbols_cache *cache, const struct csink_object *object, const char *source)
{
	const char *is, *found;
	size_t used;
	uint32_t i;

	*cache = (struct csink_symbols_cache){0};
	if (object->build_id_len < 8 || object->is_vdso || !find_folder(cache->path, sizeof(cache->path) - 64)) {
		*cache->path = 0;
		return;
	}
	used = strlen(cache->path);
	cache->path[used++] = '/';
	for (i = 0; i < object->build_id_len && i < 20; i++)
		used += (size_t)sprintf(cache->path + used, "%02x", object->build_id[i]);
	if (csink_pprof_read_regular(cache->path, &cache->known, NULL, 0)) {
		cache->known = NULL;
		return;
	}
	is = csink_profile_fact(cache->known, KEY_SOURCE, 0);
	found = csink_profile_fact(cache->known, KEY_FOUND, 0);
	cache->order = is && found && (!source || !strcmp(is, source))
			       ? calloc(cache->known->nr_locations, sizeof(*cache->order))
			       : NULL;
	if (!cache->order) {
		csink_profile_destroy(cache->known);
		cache->known = NULL;
		return;
	}
	cache->flags = atoi(found) & ~CSINK_LEFT;
	for (i = 1; i < cache->known->nr_locations; i++)
		cache->order[cache->nr++] = i;
	qsort_r(cache->order, cache->nr, sizeof(*cache->order), compare_locations, cache->known);
}

void csink_symbols_cache_close(struct csink_symbols_cache *cache)
{
	csink_profile_destroy(cache->known);
	free(cache->order);
	cache->known = NULL;
	cache->order = NULL;
}

/* From one profile to another; functions: those of the first in the second, 0: not copied yet. */
struct copying {
	const struct csink_profile *from;
	struct csink_profile *to;
	uint32_t *functions;
};

static bool copying_begin(struct copying *c, const struct csink_profile *from, struct csink_profile *to)
{
	*c = (struct copying){from, to, calloc(from->nr_functions, sizeof(*c->functions))};
	return c->functions;
}

static uint32_t copy_function(struct copying *c, uint32_t id)
{
	struct csink_profile_function function = c->from->functions[id];

	if (!c->functions[id]) {
		function.name = csink_profile_str(c->to, csink_profile_text(c->from, function.name));
		function.system_name = csink_profile_str(c->to, csink_profile_text(c->from, function.system_name));
		function.file = csink_profile_str(c->to, csink_profile_text(c->from, function.file));
		c->functions[id] = csink_profile_function_add(c->to, &function);
	}
	return c->functions[id];
}

/* Give a location of one profile the lines that one of the other has. */
static void copy_lines(struct copying *c, uint32_t location, uint32_t known)
{
	const struct csink_profile *from = c->from;
	const struct csink_profile_location *at = &from->locations[known];
	struct csink_profile_line lines[64] = {0};
	uint32_t i, nr = CSINK_MIN(at->nr_lines, CSINK_ARRAY_SIZE(lines));

	for (i = 0; i < nr; i++) {
		const struct csink_profile_line *line = &from->lines[at->first_line + i];

		lines[i].function = copy_function(c, line->function);
		lines[i].line = line->line;
	}
	csink_profile_location_set_lines(c->to, location, lines, nr);
}

/* The known location at an address, or 0. */
static uint32_t find(const struct csink_symbols_cache *cache, uint64_t address)
{
	uint32_t low = CSINK_LOWER(cache->nr, i, cache->known->locations[cache->order[i]].address < address);

	return low < cache->nr && cache->known->locations[cache->order[low]].address == address ? cache->order[low] : 0;
}

uint32_t csink_symbols_cache_take(const struct csink_symbols_cache *cache, struct csink_profile *p,
				  struct csink_want *wants, uint32_t nr_wants)
{
	uint32_t i, known, left = 0;
	struct copying copying;
	struct csink_want want;

	if (!cache->known || !copying_begin(&copying, cache->known, p))
		return nr_wants;
	for (i = 0; i < nr_wants; i++) {
		want = wants[i];
		known = find(cache, want.address);
		if (known) {
			copy_lines(&copying, want.location, known);
			continue;
		}
		wants[i] = wants[left];
		wants[left++] = want;
	}
	free(copying.functions);
	return left;
}

/* ---- writing ---- */

/* A failure costs the next run some time, and nothing else. */
static void write_file(const char *path, const struct csink_profile *p)
{
	struct csink_outfile file;
	void *bytes;
	size_t len;
	int err;

	if (csink_pprof_encode(p, &bytes, &len))
		return;
	if (!csink_outfile_open(&file, path, CSINK_OUTFILE_PRIVATE)) {
		err = write(file.fd, bytes, len) == (ssize_t)len ? 0 : -EIO;
		csink_outfile_close(&file, err);
	}
	free(bytes);
}

void csink_symbols_cache_put(const struct csink_symbols_cache *cache, const struct csink_profile *p, const char *source,
			     const struct csink_want *wants, uint32_t nr_wants, int flags)
{
	struct csink_profile *all = csink_profile_create();
	struct copying copying;
	uint32_t i;

	if (!all || !*cache->path) {
		csink_profile_destroy(all);
		return;
	}
	csink_profile_type_add(all, "symbols", "count");
	csink_profile_fact_add(all, KEY_SOURCE, "%s", source);
	csink_profile_fact_add(all, KEY_FOUND, "%d", (flags & ~CSINK_LEFT) | cache->flags);
	if (copying_begin(&copying, p, all)) {
		for (i = 0; i < nr_wants && i < MAX_LOCATIONS; i++)
			copy_lines(&copying, csink_profile_location_add(all, 0, wants[i].address, NULL, 0),
				   wants[i].location);
		free(copying.functions);
	}
	if (cache->known && copying_begin(&copying, cache->known, all)) {
		for (i = 0; i < cache->nr && all->nr_locations < MAX_LOCATIONS; i++)
			copy_lines(&copying,
				   csink_profile_location_add(all, 0, cache->known->locations[cache->order[i]].address,
							      NULL, 0),
				   cache->order[i]);
		free(copying.functions);
	}
	write_file(cache->path, all);
	csink_profile_destroy(all);
	prune(cache->path);
}
