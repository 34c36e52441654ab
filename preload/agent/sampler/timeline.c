/* Times of samples: see timeline.h. Written in the handler of the thread concerned, and nowhere else. */
#include "preload/agent/sampler/timeline.h"

#include "include/internal/base.h"

enum {
	MOMENTS = 61, /* a chunk is then a quarter of a block */
	CHUNK_BYTES = sizeof(struct csink_rec_timeline) + MOMENTS * sizeof(struct csink_rec_moment)
};

/* The thread's oldest chunk, if slices have all of it: NULL otherwise. It ends before the one after it begins. */
static struct csink_rec_timeline *take_saved(struct csink_timeline *timeline, const struct csink_recording *rec)
{
	struct csink_rec_timeline *oldest = timeline->oldest, *next;
	csink_ref_t ref = oldest ? __atomic_load_n(&oldest->next, __ATOMIC_RELAXED) : 0;

	if (!ref || ref >= csink_recording_end(rec, CHUNK_BYTES))
		return NULL;
	next = csink_recording_at(rec, ref);
	if (next->base_ns + CSINK_MOMENT_LATE_NS >= __atomic_load_n(&rec->header->saved_ns, __ATOMIC_RELAXED))
		return NULL;
	timeline->oldest = next;
	return oldest;
}

static bool begin_chunk(struct csink_timeline *timeline, struct csink_recording *rec, struct csink_writer *writer,
			csink_ref_t thread, uint64_t time_ns)
{
	struct csink_rec_timeline *chunk = take_saved(timeline, rec), *former = timeline->chunk;

	if (!chunk)
		chunk = csink_recording_reserve(rec, writer, CHUNK_BYTES);
	if (!chunk)
		return false;
	chunk->thread = thread;
	chunk->next = 0;
	/* A reader has no moments of another base. */
	__atomic_store_n(&chunk->nr, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&chunk->base_ns, time_ns, __ATOMIC_RELEASE);
	if (former)
		former->next = csink_recording_ref(rec, chunk);
	else
		timeline->oldest = chunk;
	timeline->chunk = chunk;
	timeline->nr = 0;
	timeline->base_ns = time_ns;
	timeline->last_us = 0;
	/* Committed empty: moments are published one by one, by their number. */
	csink_recording_commit(chunk, CHUNK_BYTES, CSINK_ENTRY_TIMELINE, 0);
	return true;
}

bool csink_timeline_add(struct csink_timeline *timeline, struct csink_recording *rec, struct csink_writer *writer,
			csink_ref_t thread, csink_ref_t row, uint32_t event, uint64_t weight, uint64_t time_ns)
{
	struct csink_rec_timeline *chunk = timeline->chunk;
	struct csink_rec_moment *moment;
	uint64_t now_us;

	if ((!chunk || timeline->nr == MOMENTS || time_ns < timeline->base_ns ||
	     (time_ns - timeline->base_ns) / 1000 - timeline->last_us > UINT32_MAX) &&
	    !begin_chunk(timeline, rec, writer, thread, time_ns))
		return false;
	chunk = timeline->chunk;
	now_us = CSINK_MAX((time_ns - timeline->base_ns) / 1000, timeline->last_us);
	moment = &chunk->moments[timeline->nr++];
	moment->row = row;
	moment->delta_us = (uint32_t)(now_us - timeline->last_us);
	moment->event_weight =
		(uint64_t)event << CSINK_MOMENT_WEIGHT_BITS | CSINK_MIN(weight, (1ULL << CSINK_MOMENT_WEIGHT_BITS) - 1);
	timeline->last_us = now_us;
	/* Pairs with the reader's acquire: what is counted is written. */
	__atomic_store_n(&chunk->nr, timeline->nr, __ATOMIC_RELEASE);
	return true;
}
