/*
 * Which addresses registered code has: a snapshot for handlers, as modules.c has one of objects. Written by the thread
 * that looks at the lists (jit_list.c), read by handlers of all threads. No lock.
 */
#include <string.h>

#include "preload/agent/unwind/jit_impl.h"
#include "preload/core/private_memory.h"

enum { NR_VERDICTS = 8 };

/* One is current; the other is filled, if no reader is left in it, and made current. Readers mark what they use. */
struct snapshot {
	_Atomic uint32_t readers;
	uint32_t nr;
	struct csink_jit_place *places;
};

static struct snapshot snapshots[2];
static _Atomic uint32_t current;

/* Of the thread that looks: what the next snapshot will be. */
static struct csink_jit_place *places;
static uint32_t nr_places;

static struct snapshot *snapshot_get(void)
{
	for (;;) {
		uint32_t i = atomic_load_explicit(&current, memory_order_acquire);

		atomic_fetch_add_explicit(&snapshots[i].readers, 1, memory_order_seq_cst);
		/* Still current: a thread that fills the other one and then this one sees us. */
		if (atomic_load_explicit(&current, memory_order_seq_cst) == i)
			return &snapshots[i];
		atomic_fetch_sub_explicit(&snapshots[i].readers, 1, memory_order_release);
	}
}

static void snapshot_put(struct snapshot *snap)
{
	atomic_fetch_sub_explicit(&snap->readers, 1, memory_order_release);
}

/* The number of places that start at or below an address. */
static uint32_t upper(const struct csink_jit_place *all, uint32_t nr, uint64_t address)
{
	uint32_t low = 0, high = nr;

	while (low < high) {
		uint32_t mid = (low + high) / 2;

		if (all[mid].start <= address)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* The object whose code is at an address, or NULL. */
static struct csink_jit_object *find(const struct snapshot *snap, uint64_t address)
{
	uint32_t at;

	if (!snap->nr || address < snap->places[0].start)
		return NULL;
	at = upper(snap->places, snap->nr, address) - 1;
	return address < snap->places[at].end ? &csink_jit_objects[snap->places[at].object] : NULL;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

bool csink_jit_places_begin(void)
{
	size_t bytes = CSINK_JIT_RANGES * sizeof(*places);

	for (int i = 0; i < 2; i++) {
		if (!snapshots[i].places)
			snapshots[i].places = csink_private_get(bytes);
		if (!snapshots[i].places)
			return false;
		snapshots[i].nr = 0;
		atomic_store(&snapshots[i].readers, 0);
	}
	nr_places = 0;
	places = places ? places : csink_private_get(bytes);
	return places != NULL;
}

bool csink_jit_places_add(const struct csink_jit_range *range, uint32_t object)
{
	uint32_t at = upper(places, nr_places, range->start);

	if (nr_places == CSINK_JIT_RANGES)
		return false;
	/* After one that starts there: what was registered last is found. */
	memmove(places + at + 1, places + at, (nr_places - at) * sizeof(*places));
	places[at] = (struct csink_jit_place){range->start, range->end, object};
	nr_places++;
	return true;
}

void csink_jit_places_sweep(void)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < nr_places; i++) {
		if (csink_jit_objects[places[i].object].seen)
			places[nr++] = places[i];
	}
	nr_places = nr;
}

bool csink_jit_places_publish(void)
{
	uint32_t now = atomic_load_explicit(&current, memory_order_relaxed);
	struct snapshot *next = &snapshots[!now];

	if (atomic_load_explicit(&next->readers, memory_order_seq_cst))
		return false;
	memcpy(next->places, places, nr_places * sizeof(*places));
	next->nr = nr_places;
	/* Partner: the loads in snapshot_get(). */
	atomic_store_explicit(&current, !now, memory_order_seq_cst);
	return true;
}

/* ---- samples ----------------------------------------------------------------------------------------------------- */

/* Where a frame is in code: a return address may be behind the end of its function. */
static uint64_t address_of(uint64_t frame)
{
	return (frame & ~CSINK_FRAME_EXACT) - !(frame & CSINK_FRAME_EXACT);
}

static const struct csink_jit_object *find_frame(const struct snapshot *snap, uint64_t frame)
{
	return frame & CSINK_FRAME_CODE ? NULL : find(snap, address_of(frame));
}

static const struct csink_jit_object *find_innermost(const struct snapshot *snap, const struct csink_walk *walk,
						     uint64_t leaf)
{
	const struct csink_jit_object *object = snap->nr ? find(snap, leaf) : NULL;

	for (uint32_t i = 0; snap->nr && !object && i < walk->nr_frames; i++)
		object = find_frame(snap, walk->frames[i]);
	return object;
}

static bool are_lists_unchanged(void)
{
	bool unchanged = true;

	for (int i = 0; i < CSINK_JIT_LISTS && unchanged; i++)
		unchanged = csink_jit_is_unchanged(&csink_jit_lists[i]);
	return unchanged;
}

bool csink_jit_check(const struct csink_walk *walk, uint64_t leaf, struct csink_recording *rec,
		     struct csink_writer *writer)
{
	const struct csink_jit_object *object;
	struct snapshot *snap;
	bool met, is_known;

	if (csink_jit_wants_list())
		csink_jit_search_files(rec, false);
	if (!csink_jit_is_on())
		return false;
	met = atomic_load_explicit(&csink_jit_met, memory_order_relaxed) == CSINK_JIT_MET;
	snap = snapshot_get();
	object = find_innermost(snap, walk, leaf);
	is_known = !object || (!object->nr_tries && csink_jit_is_same_image(object, rec));
	snapshot_put(snap);
	if (!met && !object)
		return false;
	atomic_store_explicit(&csink_jit_met, CSINK_JIT_NOTHING, memory_order_relaxed);
	return (!is_known || !are_lists_unchanged()) && csink_jit_look(rec, writer) == 1;
}

/* Of one sample: which objects are what they were. */
struct verdict {
	const struct csink_jit_object *object;
	bool is_current;
};

static bool is_current(struct verdict *verdicts, const struct csink_jit_object *object,
		       const struct csink_recording *rec)
{
	struct verdict *verdict = &verdicts[(size_t)(object - csink_jit_objects) % NR_VERDICTS];

	if (verdict->object != object)
		*verdict = (struct verdict){object, csink_jit_is_current(object, rec)};
	return verdict->is_current;
}

static uint64_t word_of(const struct csink_jit_object *object, uint64_t frame)
{
	uint64_t distance = (frame & ~CSINK_FRAME_EXACT) - object->base;

	return CSINK_FRAME_CODE | (uint64_t)object->ref << 32 | (distance << 1 & UINT32_MAX) |
	       (frame & CSINK_FRAME_EXACT ? 1 : 0);
}

/* A frame, or what stands for it. */
static uint64_t name(const struct snapshot *snap, uint64_t frame, struct verdict *verdicts,
		     const struct csink_recording *rec)
{
	const struct csink_jit_object *object = find_frame(snap, frame);

	return object && is_current(verdicts, object, rec) ? word_of(object, frame) : frame;
}

void csink_jit_name(struct csink_walk *walk, uint64_t leaf, const struct csink_recording *rec, uint64_t *room)
{
	struct verdict verdicts[NR_VERDICTS] = {{0}};
	struct snapshot *snap = snapshot_get();
	uint64_t first;

	if (!find_innermost(snap, walk, leaf)) {
		snapshot_put(snap);
		return;
	}
	first = name(snap, leaf | CSINK_FRAME_EXACT, verdicts, rec);
	if (first & CSINK_FRAME_CODE && walk->nr_frames == walk->max_frames) {
		walk->nr_frames--;
		walk->end = CSINK_WALK_DEPTH;
	}
	/* From the last one on: they may move by one, in place. */
	for (uint32_t i = walk->nr_frames; i--;)
		room[i + !!(first & CSINK_FRAME_CODE)] = name(snap, walk->frames[i], verdicts, rec);
	snapshot_put(snap);
	if (first & CSINK_FRAME_CODE) {
		room[0] = first | CSINK_FRAME_EVALUATED;
		walk->nr_frames++;
	}
	walk->frames = room;
	walk->same = 0;
}

bool csink_jit_locate(uintptr_t pc, struct csink_cfi_table *table)
{
	struct snapshot *snap = snapshot_get();
	const struct csink_jit_object *object = find(snap, pc);
	bool found = object && object->has_table;

	if (found)
		*table = object->table;
	snapshot_put(snap);
	return found;
}
