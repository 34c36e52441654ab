/* Names that are kept from one profile to the next: see symbols_kept.h. */
#include "launcher/symbols/symbols_kept.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "include/internal/base.h"
#include "include/internal/grow.h"
#include "launcher/symbols/symbols_impl.h"

#define MAX_OBJECTS 512

static struct {
	bool is_wanted;
	struct csink_kept_object **all; /* apart: they are large, and pointers to them stay */
	uint32_t nr, cap;
} kept_objects;

void csink_symbols_keep_begin(void)
{
	kept_objects.is_wanted = true;
}

static void close_caches(struct csink_kept_object *kept)
{
	csink_symbols_cache_close(&kept->ranges);
	csink_symbols_cache_close(&kept->single);
	kept->is_opened = false;
}

void csink_symbols_keep_end(void)
{
	for (uint32_t i = 0; i < kept_objects.nr; i++) {
		close_caches(kept_objects.all[i]);
		free(kept_objects.all[i]->path);
		free(kept_objects.all[i]);
	}
	free(kept_objects.all);
	memset(&kept_objects, 0, sizeof(kept_objects));
}

/* Fill in what an object's names depend on: its build-id and its file's state. Returns false if it cannot be known: no
 * file, or no longer this one. */
static bool identify(const struct csink_object *object, struct csink_kept_object *out)
{
	struct stat st;

	if (object->image || object->build_id_len > sizeof(out->build_id))
		return false;
	if (object->build_id_len)
		memcpy(out->build_id, object->build_id, object->build_id_len);
	out->build_id_len = object->build_id_len;
	if (object->is_vdso)
		return true;
	if (stat(object->path, &st) || !S_ISREG(st.st_mode))
		return false;
	out->dev = st.st_dev;
	out->ino = st.st_ino;
	out->size = (uint64_t)st.st_size;
	out->mtime_ns = (uint64_t)st.st_mtim.tv_sec * CSINK_NS_PER_S + (uint64_t)st.st_mtim.tv_nsec;
	return true;
}

static bool is_same(const struct csink_kept_object *a, const struct csink_kept_object *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->size == b->size && a->mtime_ns == b->mtime_ns &&
	       a->build_id_len == b->build_id_len && !memcmp(a->build_id, b->build_id, a->build_id_len);
}

static struct csink_kept_object *add(const char *path)
{
	struct csink_kept_object *kept = calloc(1, sizeof(*kept));

	if (kept && (kept->path = strdup(path)) &&
	    CSINK_APPEND(kept_objects.all, kept_objects.nr, kept_objects.cap, kept))
		return kept;
	if (kept)
		free(kept->path);
	free(kept);
	return NULL;
}

struct csink_kept_object *csink_kept_find(const struct csink_object *object)
{
	struct csink_kept_object now = {0}, *kept = NULL;

	if (!kept_objects.is_wanted || !identify(object, &now))
		return NULL;
	for (uint32_t i = 0; i < kept_objects.nr && !kept; i++) {
		if (!strcmp(kept_objects.all[i]->path, object->path))
			kept = kept_objects.all[i];
	}
	if (kept && is_same(kept, &now))
		return kept;
	if (!kept && kept_objects.nr < MAX_OBJECTS)
		kept = add(object->path);
	if (!kept)
		return NULL;
	close_caches(kept);
	now.path = kept->path;
	now.ranges.in_memory = now.single.in_memory = true;
	*kept = now;
	return kept;
}

uint32_t csink_kept_take(const struct csink_kept_object *kept, struct csink_profile *p, struct csink_want *wants,
			 uint32_t nr_wants, int *flags)
{
	uint32_t left = csink_symbols_cache_take(&kept->ranges, p, wants, nr_wants, flags);

	return left ? csink_symbols_cache_take(&kept->single, p, wants, left, flags) : 0;
}

/* Bits of csink_symbols_found for one location. @all  those of all locations of the object: what could not be read of
 * the object (CSINK_LEFT) may be missing in each of them. */
static int flags_of(const struct csink_profile *p, uint32_t location, int all)
{
	const struct csink_profile_location *at = &p->locations[location];
	int flags = (all & CSINK_LEFT) | (at->nr_lines ? CSINK_FOUND_NAMES : 0) |
		    (at->nr_lines > 1 ? CSINK_FOUND_INLINES : 0);

	for (uint32_t i = 0; i < at->nr_lines; i++) {
		const struct csink_profile_line *line = &p->lines[at->first_line + i];

		flags |= (p->functions[line->function].file ? CSINK_FOUND_FILES : 0) |
			 (line->line ? CSINK_FOUND_LINES : 0);
	}
	return flags;
}

void csink_kept_put(struct csink_kept_object *kept, struct csink_profile *p, struct csink_want *wants,
		    uint32_t nr_wants, int flags)
{
	struct csink_answers answers = {.p = p};
	bool ok = true;

	if (nr_wants)
		qsort(wants, nr_wants, sizeof(*wants), csink_compare_u64);
	for (uint32_t i = 0; i < nr_wants && ok; i++) {
		struct csink_answer answer = {wants[i].address, wants[i].address + 1, wants[i].location,
					      flags_of(p, wants[i].location, flags)};

		if (!i || wants[i].address != wants[i - 1].address)
			ok = CSINK_APPEND(answers.all, answers.nr, answers.cap, answer);
	}
	if (ok)
		csink_symbols_cache_put(&kept->single, &answers, 1, false);
	csink_answers_free(&answers);
}
