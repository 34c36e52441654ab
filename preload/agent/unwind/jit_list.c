/*
 * The lists of GDB's JIT interface: see jit_objects.h. One thread at a time reads them, in its handler; others give up
 * at once. What it finds out about images is read by handlers of all threads once it is published (jit_ranges.c).
 */
#include <errno.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/clock.h"
#include "preload/agent/unwind/find_object.h"
#include "preload/agent/unwind/jit_impl.h"
#include "preload/core/calls_off.h"
#include "preload/core/private_memory.h"

enum {
	NR_BUCKETS = 4096,
	NR_KNOWN = 1024,                    /* copies that are used again for an equal image */
	MAX_IMAGE = 4 << 20,                /* bytes of one */
	MAX_COPIED = 64 << 20,              /* of all copies in the recording */
	MAX_ENTRIES = 2 * CSINK_JIT_IMAGES, /* of one list, which may be a ring by now */
	NR_ROUNDS = 3,                      /* a list that changes meanwhile is read again */
	REST = 10, /* after a long look, so many times what it took passes until the next one */
	GDB_VERSION = 1,
};

#define LONG_NS (50 * 1000)
#define REUSE_NS (1000 * 1000 * 1000ULL) /* a walk that began before has ended by then */

/* An image that was copied. */
struct known {
	uint64_t hash;
	uint32_t bytes;
	csink_ref_t ref;
};

_Atomic uint32_t csink_jit_nr_lists;
_Atomic uint32_t csink_jit_met;
struct csink_jit_list csink_jit_lists[CSINK_JIT_LISTS];
struct csink_jit_object *csink_jit_objects;

/* All of the thread that looks, under `looking`. */
static _Atomic uint32_t looking;
static _Atomic uint64_t next_ns; /* not before */
static uint32_t *buckets;        /* by entry: index + 1 of the first object */
static struct known *known;
static uint8_t *scratch; /* for one image */
static uint32_t scratch_bytes;
static uint32_t nr_objects; /* slots that were ever used */
static uint32_t *live;      /* those in use */
static uint32_t nr_live;
static uint32_t next_slot;                   /* where the search for one that is free again goes on */
static uint32_t nr_reads;                    /* of lists */
static uint32_t last_reads[CSINK_JIT_LISTS]; /* the last one that was whole */
static uint32_t nr_published;
static uint64_t nr_copied;
static bool is_noted, is_refused, is_dirty;

/* Of one look. */
struct look {
	struct csink_recording *rec;
	struct csink_writer *writer;
	uint64_t now_ns;
	bool changed;                     /* places are */
	bool has_tables;                  /* an object that is gone had tables, or one has some now */
	bool is_partial[CSINK_JIT_LISTS]; /* what was not seen may be there all the same */
};

static void note(struct look *l, bool *has_been, const char *text)
{
	if (!*has_been)
		csink_recording_note_text(l->rec, l->writer, text);
	*has_been = true;
}

static void note_too_much(struct look *l)
{
	note(l, &is_noted, "some code of a just-in-time compiler has no names: too much of it");
}

/* ---- the descriptor ---------------------------------------------------------------------------------------------- */

bool csink_jit_list_add(uintptr_t descriptor, const void *link_map)
{
	for (int i = 0; i < CSINK_JIT_LISTS; i++) {
		if (atomic_load(&csink_jit_lists[i].at))
			continue;
		csink_jit_lists[i].link_map = link_map;
		/* Partner: the loads in csink_jit_descriptor() and read_lists(). */
		atomic_store_explicit(&csink_jit_lists[i].at, descriptor, memory_order_release);
		atomic_fetch_add(&csink_jit_nr_lists, 1);
		return true;
	}
	return false;
}

void csink_jit_load(const struct csink_module *module, const struct csink_elf_view *view)
{
	uint32_t none = CSINK_JIT_NO_LIST;
	uint64_t bytes;
	uintptr_t at = csink_elf_look(view, CSINK_JIT_DESCRIPTOR, STT_OBJECT, &bytes);

	if (at && bytes >= sizeof(struct csink_gdb_descriptor))
		csink_jit_list_add(at, module->link_map);
	/* This one may have it, or does not export it. */
	atomic_compare_exchange_strong(&csink_jit_met, &none, CSINK_JIT_NOTHING);
}

void csink_jit_unload(const struct csink_module *module)
{
	for (int i = 0; i < CSINK_JIT_LISTS; i++) {
		struct csink_jit_list *list = &csink_jit_lists[i];

		if (!atomic_load(&list->at) || list->link_map != module->link_map)
			continue;
		atomic_store(&list->at, 0);
		/* The number stays: the next look removes what the list had. */
	}
}

/* Its object is loaded, and is not being unloaded. */
static bool is_there(const struct csink_jit_list *list, uintptr_t at)
{
#ifdef DLFO_STRUCT_HAS_EH_DBASE
	struct dl_find_object found;

	return csink_find_object && !csink_modules_unloading() && csink_find_object((void *)at, &found) == 0 &&
	       found.dlfo_link_map == list->link_map;
#else
	(void)list;
	(void)at;
	return false;
#endif
}

bool csink_jit_descriptor(const struct csink_jit_list *list, struct csink_gdb_descriptor *to)
{
	uintptr_t at = atomic_load_explicit(&list->at, memory_order_acquire);

	if (!at)
		return false;
	if (!is_there(list, at))
		return csink_copy_by_call(to, (void *)at, sizeof(*to));
	for (size_t i = 0; i < sizeof(*to) / 8; i++) {
		uint64_t word = csink_load_known(at + 8 * i);

		memcpy((char *)to + 8 * i, &word, sizeof(word));
	}
	return true;
}

bool csink_jit_is_unchanged(const struct csink_jit_list *list)
{
	struct csink_gdb_descriptor now;

	if (!csink_jit_descriptor(list, &now))
		memset(&now, 0, sizeof(now));
	if (!now.first && !list->last.first)
		return true;
	/* An image is registered twice at one place with another one's removal in between: the names differ. */
	return now.first == list->last.first && now.relevant == list->last.relevant && now.action == list->last.action;
}

/* ---- images ------------------------------------------------------------------------------------------------------ */

static const struct csink_rec_image *copy_of(const struct csink_recording *rec, csink_ref_t ref)
{
	return csink_recording_at(rec, ref);
}

bool csink_jit_is_same_image(const struct csink_jit_object *object, const struct csink_recording *rec)
{
	char now[CSINK_JIT_WINDOW];

	return !object->nr_window ||
	       (csink_copy_by_call(now, (void *)(object->file + object->window), object->nr_window) &&
		!memcmp(now, copy_of(rec, object->ref)->image + object->window, object->nr_window));
}

/* Does the list lead to the entry? By its own word for the one before it, whose next one it must be. */
static bool is_linked(const struct csink_jit_list *list, uintptr_t entry, const struct csink_gdb_entry *has)
{
	struct csink_gdb_descriptor descriptor;
	uintptr_t next;

	if (!has->prev)
		return csink_jit_descriptor(list, &descriptor) && descriptor.first == entry;
	return csink_copy_by_call(&next, (void *)has->prev, sizeof(next)) && next == entry;
}

bool csink_jit_is_current(const struct csink_jit_object *object, const struct csink_recording *rec)
{
	const struct csink_jit_list *list = &csink_jit_lists[object->list];
	struct csink_gdb_entry now;

	if (!csink_jit_is_unchanged(list) &&
	    (!csink_copy_by_call(&now, (void *)object->entry, sizeof(now)) || now.file != object->file ||
	     now.bytes != object->bytes || !is_linked(list, object->entry, &now)))
		return false;
	return csink_jit_is_same_image(object, rec);
}

static uint64_t hash_image(uint64_t bytes)
{
	uint64_t hash = 14695981039346656037ULL ^ bytes, word;

	for (uint64_t i = 0; i + 8 <= bytes; i += 8) {
		memcpy(&word, scratch + i, sizeof(word));
		hash = (hash ^ word) * 1099511628211ULL;
		hash ^= hash >> 29;
	}
	return hash;
}

/* The image in the scratch, as an entry of the recording: an equal one that is there, or a new one. 0: none can be had
 * now; UINT32_MAX: none will. */
static csink_ref_t copy_image(struct look *l, uint64_t bytes, uint64_t base)
{
	uint64_t hash = hash_image(bytes);
	struct known *slot = &known[hash % NR_KNOWN];
	uint32_t room = atomic_load(&l->rec->limit_blocks) - atomic_load(&l->rec->next_block);
	struct csink_rec_image *entry;

	if (slot->ref && slot->hash == hash && slot->bytes == bytes &&
	    !memcmp(copy_of(l->rec, slot->ref)->image, scratch, bytes))
		return slot->ref;
	/* Samples need room more than names do. */
	if (nr_copied + bytes > MAX_COPIED || bytes / CSINK_REC_BLOCK > room / 4)
		return UINT32_MAX;
	entry = csink_recording_reserve(l->rec, l->writer, (uint32_t)(sizeof(*entry) + bytes));
	if (!entry)
		return 0;
	entry->base = base;
	entry->nr_image = (uint32_t)bytes;
	memcpy(entry->image, scratch, bytes);
	csink_recording_commit(entry, (uint32_t)(sizeof(*entry) + bytes), CSINK_ENTRY_IMAGE, 0);
	nr_copied += bytes;
	*slot = (struct known){hash, (uint32_t)bytes, csink_recording_ref(l->rec, entry)};
	return slot->ref;
}

static bool has_scratch(uint64_t bytes)
{
	uint32_t room = CSINK_MAX(scratch_bytes, 65536u);

	while (room < bytes)
		room *= 2;
	if (room > scratch_bytes) {
		/* The old one stays behind: less than the new one. */
		scratch = csink_private_get(room);
		scratch_bytes = scratch ? room : 0;
	}
	return scratch != NULL;
}

/* ---- objects ----------------------------------------------------------------------------------------------------- */

static uint32_t *bucket_of(uintptr_t entry)
{
	return &buckets[(entry >> 4 ^ entry >> 16) % NR_BUCKETS];
}

static struct csink_jit_object *find(uintptr_t entry)
{
	for (uint32_t i = *bucket_of(entry); i; i = csink_jit_objects[i - 1].next) {
		if (csink_jit_objects[i - 1].entry == entry)
			return &csink_jit_objects[i - 1];
	}
	return NULL;
}

/* No handler reads it any more: what lies in its memory may be written over. */
static bool is_free(const struct look *l, const struct csink_jit_object *object)
{
	return !object->seen && nr_published >= object->gone_at + 1 && l->now_ns - object->gone_ns > REUSE_NS;
}

static struct csink_jit_object *new_object(struct look *l)
{
	/* Those that were used long ago first: a few are looked at. */
	for (uint32_t i = 0; i < 16 && nr_objects; i++) {
		struct csink_jit_object *object = &csink_jit_objects[next_slot++ % nr_objects];

		if (is_free(l, object))
			return object;
	}
	return nr_objects < CSINK_JIT_IMAGES ? &csink_jit_objects[nr_objects++] : NULL;
}

/* Remove an object from its list of equal hashes. Its places go with the next sweep. */
static void forget(struct look *l, struct csink_jit_object *object)
{
	uint32_t *link = bucket_of(object->entry), index = (uint32_t)(object - csink_jit_objects) + 1;

	while (*link && *link != index)
		link = &csink_jit_objects[*link - 1].next;
	if (*link)
		*link = object->next;
	nr_live--;
	live[object->live] = live[nr_live];
	csink_jit_objects[live[nr_live]].live = object->live;
	object->seen = 0;
	object->gone_ns = l->now_ns;
	object->gone_at = nr_published + 1;
	l->changed = true;
	l->has_tables |= object->has_table;
}

/* Where the names are that distinguish this image from others. */
static void choose_window(struct csink_jit_object *object, const struct csink_jit_image *image)
{
	Elf64_Shdr section;

	object->nr_window = (uint16_t)CSINK_MIN(image->bytes, (uint64_t)CSINK_JIT_WINDOW);
	if (image->bytes <= CSINK_JIT_WINDOW || !csink_jit_image_section(image, image->symbols, &section) ||
	    !csink_jit_image_section(image, section.sh_link, &section) || section.sh_type != SHT_STRTAB)
		return;
	object->window = (uint32_t)section.sh_offset;
	object->nr_window = (uint16_t)CSINK_MIN(section.sh_size, (uint64_t)CSINK_JIT_WINDOW);
}

/* Returns the lowest address of its code; UINT64_MAX if it has none, or no symbols. */
static uint64_t base_of(const struct csink_jit_image *image)
{
	uint64_t base = UINT64_MAX, at = 0;
	struct csink_jit_range range;

	while (image->symbols && csink_jit_image_next(image, &at, &range))
		base = CSINK_MIN(base, range.start);
	return base;
}

static void add_places(struct look *l, struct csink_jit_object *object, const struct csink_jit_image *image)
{
	struct csink_jit_range range;
	uint64_t at = 0;

	while (csink_jit_image_next(image, &at, &range)) {
		if (range.end - object->base >= CSINK_IMAGE_MAX_SPAN)
			continue;
		if (!csink_jit_places_add(&range, (uint32_t)(object - csink_jit_objects)))
			note_too_much(l);
		l->changed = true;
	}
}

/* What is in the scratch, and is registered, becomes of use. False: the recording has no room just now. */
static bool use_image(struct look *l, struct csink_jit_object *object)
{
	struct csink_jit_image image;

	if (!csink_jit_image_open(&image, scratch, object->bytes))
		return true;
	object->base = base_of(&image);
	if (object->base == UINT64_MAX)
		return true;
	object->ref = copy_image(l, object->bytes, object->base);
	if (object->ref == UINT32_MAX) {
		object->ref = 0;
		note_too_much(l);
		return true;
	}
	if (!object->ref)
		return false;
	choose_window(object, &image);
	csink_jit_tables_take(object, &image);
	l->has_tables |= object->has_table;
	add_places(l, object, &image);
	return true;
}

/* ---- a list ------------------------------------------------------------------------------------------------------ */

/* An entry, and where the list has its address. */
struct at {
	uintptr_t entry, from; /* from 0: the descriptor */
	struct csink_gdb_entry has;
};

static bool is_still_there(const struct csink_jit_list *list, const struct at *at)
{
	struct csink_gdb_descriptor descriptor;
	struct csink_gdb_entry now;
	uintptr_t next;

	if (!csink_copy_by_call(&now, (void *)at->entry, sizeof(now)) || now.file != at->has.file ||
	    now.bytes != at->has.bytes)
		return false;
	if (!at->from)
		return csink_jit_descriptor(list, &descriptor) && descriptor.first == at->entry;
	return csink_copy_by_call(&next, (void *)at->from, sizeof(next)) && next == at->entry;
}

/* A new entry. Returns false if it, or what it leads to, may not be what it was. */
static bool take(struct look *l, uint32_t list, const struct at *at)
{
	bool is_usable = at->has.bytes >= sizeof(Elf64_Ehdr) && at->has.bytes <= MAX_IMAGE;
	struct csink_jit_object *object;
	uint8_t *block;
	uint32_t block_bytes;

	if (is_usable && !has_scratch(at->has.bytes))
		return false;
	is_usable = is_usable && csink_copy_by_call(scratch, (void *)at->has.file, at->has.bytes);
	if (!is_still_there(&csink_jit_lists[list], at))
		return false;
	object = new_object(l);
	if (!object) {
		note_too_much(l);
		return true;
	}
	block = object->block;
	block_bytes = object->block_bytes;
	*object = (struct csink_jit_object){.entry = at->entry,
					    .file = at->has.file,
					    .bytes = at->has.bytes,
					    .list = (uint8_t)list,
					    .block = block,
					    .block_bytes = block_bytes};
	if (is_usable && !use_image(l, object)) {
		object->gone_ns = l->now_ns;
		object->gone_at = nr_published + 1;
		return false;
	}
	object->live = nr_live;
	live[nr_live++] = (uint32_t)(object - csink_jit_objects);
	object->seen = nr_reads;
	object->next = *bucket_of(at->entry);
	*bucket_of(at->entry) = (uint32_t)(object - csink_jit_objects) + 1;
	return true;
}

/* The compiler had not relocated them when they were looked at. */
static void take_tables(struct look *l, struct csink_jit_object *object)
{
	const struct csink_rec_image *copy = copy_of(l->rec, object->ref);
	struct csink_jit_image image;

	if (csink_jit_image_open(&image, copy->image, object->bytes))
		csink_jit_tables_take(object, &image);
	else
		object->nr_tries = 0;
	l->has_tables |= object->has_table;
}

/* Has this reading of the list come there before? Then it is a ring. */
static bool is_seen(const struct at *at)
{
	const struct csink_jit_object *object = find(at->entry);

	return object && object->seen == nr_reads;
}

static bool visit(struct look *l, uint32_t list, const struct at *at)
{
	struct csink_jit_object *object = find(at->entry);

	if (object && object->file == at->has.file && object->bytes == at->has.bytes &&
	    csink_jit_is_same_image(object, l->rec)) {
		object->seen = nr_reads;
		if (object->nr_tries)
			take_tables(l, object);
		return true;
	}
	/* It is another one now. */
	if (object)
		forget(l, object);
	return take(l, list, at);
}

/* Returns whether all of the list was seen, as it was at one moment. */
static bool read_list(struct look *l, uint32_t index)
{
	struct csink_jit_list *list = &csink_jit_lists[index];
	struct csink_gdb_descriptor before;
	struct at at = {0};
	uint32_t nr = 0;

	nr_reads++;
	if (!csink_jit_descriptor(list, &before)) {
		memset(&list->last, 0, sizeof(list->last));
		return true; /* the object is gone, and its list with it */
	}
	if (before.version != GDB_VERSION) {
		if (before.first)
			note(l, &is_refused,
			     "code of a just-in-time compiler has no names: its list for debuggers "
			     "is not of version 1");
		memset(&list->last, 0, sizeof(list->last));
		return true;
	}
	/* It ends where nothing is, too, if that is not because it has just changed. */
	for (at.entry = before.first; at.entry && nr < MAX_ENTRIES && !is_seen(&at); nr++) {
		if (!csink_copy_by_call(&at.has, (void *)at.entry, sizeof(at.has)))
			break;
		if (!visit(l, index, &at))
			return false;
		at.from = at.entry;
		at.entry = at.has.next;
	}
	list->last = before;
	return csink_jit_is_unchanged(list);
}

static bool has_memory(void)
{
	if (csink_jit_objects)
		return true;
	buckets = csink_private_get(NR_BUCKETS * sizeof(*buckets));
	known = csink_private_get(NR_KNOWN * sizeof(*known));
	live = csink_private_get(CSINK_JIT_IMAGES * sizeof(*live));
	if (!buckets || !known || !live || !csink_jit_places_begin())
		return false;
	csink_jit_objects = csink_private_get(CSINK_JIT_IMAGES * sizeof(*csink_jit_objects));
	return csink_jit_objects != NULL;
}

/* What is in no list any more ends. */
static void sweep(struct look *l)
{
	/* From the last one on: the one that takes the place of another has been looked at. */
	for (uint32_t i = nr_live; i--;) {
		struct csink_jit_object *object = &csink_jit_objects[live[i]];

		if (object->seen != last_reads[object->list] && !l->is_partial[object->list])
			forget(l, object);
	}
}

static int look(struct look *l)
{
	for (uint32_t i = 0; i < CSINK_JIT_LISTS; i++) {
		int round = 0;

		while (!read_list(l, i) && ++round < NR_ROUNDS)
			;
		last_reads[i] = nr_reads;
		if (round < NR_ROUNDS)
			continue;
		/* Not as it was: the next sample looks again. */
		memset(&csink_jit_lists[i].last, 0, sizeof(csink_jit_lists[i].last));
		l->is_partial[i] = true;
	}
	sweep(l);
	is_dirty |= l->changed;
	if (is_dirty) {
		csink_jit_places_sweep();
		if (csink_jit_places_publish()) {
			nr_published++;
			is_dirty = false;
		}
	}
	/* Rows of code that has no tables, or other ones, are made again. */
	if (l->changed || l->has_tables)
		csink_modules_code_changed(l->has_tables);
	return l->changed || l->has_tables;
}

static bool is_empty(void)
{
	for (int i = 0; i < CSINK_JIT_LISTS; i++) {
		struct csink_gdb_descriptor now;

		if (csink_jit_descriptor(&csink_jit_lists[i], &now) && now.first)
			return false;
	}
	return !csink_jit_objects;
}

int csink_jit_look(struct csink_recording *rec, struct csink_writer *writer)
{
	struct look l = {.rec = rec, .writer = writer};
	int result = -EAGAIN;
	uint64_t start_ns, taken_ns;

	if (csink_calls_are_off(CSINK_CALLS_SCAN | CSINK_CALLS_TIME | CSINK_CALLS_CLOCK))
		return -EAGAIN;
	if (is_empty())
		return 0;
	l.now_ns = csink_monotonic_ns();
	if (l.now_ns < atomic_load_explicit(&next_ns, memory_order_relaxed) ||
	    atomic_exchange_explicit(&looking, 1, memory_order_acquire))
		return -EAGAIN;
	start_ns = csink_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	if (has_memory())
		result = look(&l);
	taken_ns = csink_clock_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns;
	if (taken_ns > LONG_NS)
		atomic_store_explicit(&next_ns, csink_monotonic_ns() + REST * (taken_ns - LONG_NS),
				      memory_order_relaxed);
	atomic_store_explicit(&looking, 0, memory_order_release);
	return result;
}

void csink_jit_poll(struct csink_recording *rec, struct csink_writer *writer)
{
	bool is_unchanged = true;

	if (CSINK_UNLIKELY(csink_jit_wants_list() || atomic_load_explicit(&csink_jit_files_due, memory_order_relaxed)))
		csink_jit_search_files(rec, true);
	if (!csink_jit_is_on())
		return;
	for (int i = 0; i < CSINK_JIT_LISTS; i++)
		is_unchanged &= csink_jit_is_unchanged(&csink_jit_lists[i]);
	if (!is_unchanged || is_dirty)
		csink_jit_look(rec, writer);
}

void csink_jit_begin(void)
{
	/* In a program that starts there is none, and to write would touch a page more. */
	if (atomic_exchange(&csink_jit_nr_lists, 0))
		memset(csink_jit_lists, 0, sizeof(csink_jit_lists));
	atomic_store(&csink_jit_met, CSINK_JIT_NOTHING);
	atomic_store(&looking, 0);
	atomic_store(&next_ns, 0);
	csink_jit_search_begin();
	nr_copied = 0;
	is_noted = is_refused = is_dirty = false;
	if (!csink_jit_objects)
		return;
	/* A forked child: what its parent knew refers to the parent's recording. */
	for (uint32_t i = 0; i < nr_objects; i++)
		csink_jit_objects[i].seen = 0;
	nr_live = 0;
	memset(buckets, 0, NR_BUCKETS * sizeof(*buckets));
	memset(known, 0, NR_KNOWN * sizeof(*known));
	csink_jit_places_begin();
}
