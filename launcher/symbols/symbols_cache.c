/* See symbols_cache.h. */
#include "launcher/symbols/symbols_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "launcher/base/own_home.h"
#include "launcher/base/search.h"
#include "launcher/symbols/symbols_cache_impl.h"

#define FORMAT "2" /* of the files: another format has another directory */

/* ---- the directory ---- */

static bool is_private(const char *path)
{
	struct stat st;

	return !lstat(path, &st) && S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 022);
}

/* The directory, made if it is not there. False: there is none that could be trusted. */
static bool find_directory(char *path, size_t size)
{
	if (!csink_own_cache(path, size - 64))
		return false;
	mkdir(path, 0700);
	strcat(path, "/countersink");
	if (mkdir(path, 0700) && !is_private(path))
		return false;
	strcat(path, "/symbols-" FORMAT);
	mkdir(path, 0700);
	return is_private(path);
}

/* ---- reading ---- */

/* Some bytes of the file; NULL if they are outside it, or their checksum is wrong. */
static const void *part(struct csink_symbols_file *file, uint64_t at, uint64_t len)
{
	if (at > file->len || len > file->len - at)
		return NULL;
	for (uint64_t block = at / CSINK_KEPT_BLOCK; len && block <= (at + len - 1) / CSINK_KEPT_BLOCK; block++) {
		uint64_t size = CSINK_MIN(file->len - block * CSINK_KEPT_BLOCK, (uint64_t)CSINK_KEPT_BLOCK);

		if (file->is_read[block])
			continue;
		if (csink_kept_sum(file->bytes + block * CSINK_KEPT_BLOCK, size, block) != file->sums[block]) {
			file->is_damaged = true;
			return NULL;
		}
		file->is_read[block] = true;
	}
	return file->bytes + at;
}

void csink_kept_close(struct csink_symbols_file *file)
{
	if (!file)
		return;
	if (file->fd >= 0)
		close(file->fd);
	if (file->map)
		munmap(file->map, file->map_bytes);
	free(file->is_read);
	free(file);
}

/*
 * Mapped and not read: a search touches a block here and there, and the pages are in the page cache already. A file
 * that is truncated meanwhile reads as zeros (csink_cut_guard_begin), which no checksum takes.
 */
static bool map_file(struct csink_symbols_file *file, size_t bytes)
{
	void *map = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, file->fd, 0);

	if (map == MAP_FAILED)
		return false;
	file->map = map;
	file->map_bytes = bytes;
	return true;
}

/* source: as it has to be; NULL: any. */
static bool read_header(struct csink_symbols_file *file, const char *source)
{
	struct csink_kept_header *h = &file->header;
	uint64_t nr, size;
	struct stat st;

	if (fstat(file->fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    st.st_size > CSINK_KEPT_MAX_FILE || pread(file->fd, h, sizeof(*h), 0) != sizeof(*h) ||
	    memcmp(h->magic, CSINK_KEPT_MAGIC, sizeof(h->magic)) || h->source[sizeof(h->source) - 1] ||
	    (source && strcmp(h->source, source)))
		return false;
	file->lines_at = (uint64_t)h->nr_answers * sizeof(struct csink_kept_answer);
	file->functions_at = file->lines_at + (uint64_t)h->nr_lines * sizeof(struct csink_kept_line);
	file->text_at = file->functions_at + (uint64_t)h->nr_functions * sizeof(struct csink_kept_function);
	file->len = file->text_at + h->text_bytes;
	nr = csink_kept_blocks(file->len);
	size = sizeof(*h) + nr * sizeof(*file->sums);
	if (size + file->len != (uint64_t)st.st_size || !h->text_bytes)
		return false;
	file->is_read = calloc(nr + 1, sizeof(*file->is_read));
	if (!file->is_read || !map_file(file, (size_t)st.st_size))
		return false;
	file->sums = (const uint32_t *)(file->map + sizeof(*h));
	file->bytes = file->map + size;
	return csink_kept_sum_header(h, file->sums, nr) == h->sum;
}

struct csink_symbols_file *csink_kept_open(int fd, const char *source)
{
	struct csink_symbols_file *file = calloc(1, sizeof(*file));

	if (!file) {
		close(fd);
		return NULL;
	}
	file->fd = fd;
	if (read_header(file, source)) {
		close(file->fd); /* its map is enough */
		file->fd = -1;
		return file;
	}
	csink_kept_close(file);
	return NULL;
}

static struct csink_symbols_file *open_known(const char *path, const char *source)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);

	return fd < 0 ? NULL : csink_kept_open(fd, source);
}

/* The latest file of any source whose name begins so. */
static struct csink_symbols_file *open_latest(const char *parent, const char *prefix)
{
	char path[4096 + 300], latest[256] = "";
	int64_t latest_ns = 0, ns;
	struct dirent *found;
	struct stat st;
	DIR *dir = opendir(parent);

	while (dir && (found = readdir(dir))) {
		if (strncmp(found->d_name, prefix, strlen(prefix)) ||
		    fstatat(dirfd(dir), found->d_name, &st, AT_SYMLINK_NOFOLLOW))
			continue;
		ns = st.st_mtim.tv_sec * (int64_t)CSINK_NS_PER_S + st.st_mtim.tv_nsec;
		if (!*latest || ns > latest_ns) {
			snprintf(latest, sizeof(latest), "%s", found->d_name);
			latest_ns = ns;
		}
	}
	if (dir)
		closedir(dir);
	snprintf(path, sizeof(path), "%s/%s", parent, latest);
	return *latest ? open_known(path, NULL) : NULL;
}

void csink_symbols_cache_open(struct csink_symbols_cache *cache, const struct csink_object *object, const char *source)
{
	char id[64];
	size_t used = 0;

	*cache->path = *cache->source = 0;
	cache->known = NULL;
	if (object->build_id_len < 8 || object->is_vdso || (source && strlen(source) >= sizeof(cache->source)) ||
	    !find_directory(cache->path, sizeof(cache->path) - 96)) {
		*cache->path = 0;
		return;
	}
	for (uint32_t i = 0; i < object->build_id_len && i < 20; i++)
		used += (size_t)sprintf(id + used, "%02x", object->build_id[i]);
	if (!source) {
		cache->known = open_latest(cache->path, id);
		*cache->path = 0;
		return;
	}
	strcpy(cache->source, source);
	sprintf(cache->path + strlen(cache->path), "/%s-%016" PRIx64, id,
		(uint64_t)csink_kept_sum(source, strlen(source), 1) << 32 | csink_kept_sum(source, strlen(source), 2));
	cache->known = open_known(cache->path, source);
}

void csink_symbols_cache_close(struct csink_symbols_cache *cache)
{
	csink_kept_close(cache->known);
	cache->known = NULL;
}

bool csink_symbols_cache_is_whole(const struct csink_symbols_cache *cache)
{
	return cache->known && cache->known->header.is_whole && !cache->known->is_damaged;
}

/* ---- from a file into a profile ---- */

static csink_str_t take_text(struct csink_kept_taking *t, uint32_t at)
{
	uint64_t start = t->from->text_at + at, len = 0, more;
	const char *text, *end = NULL;

	/* As far as the text goes, a block at a time: all texts have an end. */
	while (!end && start + len < t->from->len) {
		more = CSINK_MIN(t->from->len - start - len, CSINK_KEPT_BLOCK - (start + len) % CSINK_KEPT_BLOCK);
		text = part(t->from, start + len, more);
		if (!text)
			break;
		end = memchr(text, 0, more);
		len += more;
	}
	return csink_profile_str(t->to, end ? t->from->bytes + start : "");
}

/* Returns 0 if there is none. */
static uint32_t take_function(struct csink_kept_taking *t, uint32_t id)
{
	const struct csink_kept_function *kept;

	if (!id || id >= t->from->header.nr_functions)
		return 0;
	kept = t->functions[id] ? NULL
				: part(t->from, t->from->functions_at + (uint64_t)id * sizeof(*kept), sizeof(*kept));
	if (kept) {
		struct csink_profile_function function = {.name = take_text(t, kept->name),
							  .system_name = take_text(t, kept->system_name),
							  .file = take_text(t, kept->file),
							  .start_line = kept->start_line};

		if (!t->from->is_damaged)
			t->functions[id] = csink_profile_function_add(t->to, &function);
	}
	return t->functions[id];
}

int csink_kept_take_lines(struct csink_kept_taking *t, const struct csink_kept_answer *answer,
			  struct csink_profile_line *lines)
{
	uint64_t at = t->from->lines_at + (uint64_t)answer->first_line * sizeof(struct csink_kept_line);
	const struct csink_kept_line *kept;

	if (answer->nr_lines > CSINK_KEPT_MAX_LINES ||
	    (uint64_t)answer->first_line + answer->nr_lines > t->from->header.nr_lines)
		return -1;
	kept = part(t->from, at, answer->nr_lines * sizeof(*kept));
	for (uint32_t i = 0; kept && i < answer->nr_lines; i++) {
		lines[i] = (struct csink_profile_line){.function = take_function(t, kept[i].function),
						       .line = kept[i].line};
		if (!lines[i].function)
			return -1;
	}
	return kept ? answer->nr_lines : -1;
}

const struct csink_kept_answer *csink_kept_answer_at(struct csink_symbols_file *file, uint32_t index)
{
	return part(file, (uint64_t)index * sizeof(struct csink_kept_answer), sizeof(struct csink_kept_answer));
}

static const struct csink_kept_answer *find(struct csink_symbols_file *file, uint64_t address)
{
	uint64_t offset = address - file->header.base;
	const struct csink_kept_answer *answer = NULL;
	uint32_t at;

	if (address < file->header.base)
		return NULL;
	/* The last one that begins at or before the address. */
	at = CSINK_LOWER(file->header.nr_answers, i, (answer = csink_kept_answer_at(file, i)) && answer->low <= offset);
	answer = at ? csink_kept_answer_at(file, at - 1) : NULL;
	return answer && offset >= answer->low && offset - answer->low < answer->bytes ? answer : NULL;
}

uint32_t csink_symbols_cache_take(const struct csink_symbols_cache *cache, struct csink_profile *p,
				  struct csink_want *wants, uint32_t nr_wants, int *flags)
{
	struct csink_kept_taking taking = {.from = cache->known, .to = p};
	struct csink_profile_line lines[CSINK_KEPT_MAX_LINES];
	uint32_t left = 0;

	if (cache->known)
		taking.functions = calloc(cache->known->header.nr_functions + 1UL, sizeof(*taking.functions));
	if (!taking.functions)
		return nr_wants;
	for (uint32_t i = 0; i < nr_wants; i++) {
		struct csink_want want = wants[i];
		const struct csink_kept_answer *answer = find(cache->known, want.address);
		int nr = answer ? csink_kept_take_lines(&taking, answer, lines) : -1;

		if (nr >= 0) {
			csink_profile_location_set_lines(p, want.location, lines, (uint32_t)nr);
			*flags |= answer->flags;
			continue;
		}
		wants[i] = wants[left];
		wants[left++] = want;
	}
	free(taking.functions);
	return left;
}
