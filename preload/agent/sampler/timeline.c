/* Times of samples: see timeline.h. Written in the handler of the thread concerned, and nowhere else. */
#include "preload/agent/sampler/timeline.h"

#include "include/internal/base.h"

enum { MOMENTS = 62 }; /* a chunk is then a quarter of a block */

static bool begin_chunk(struct csink_timeline *timeline, struct csink_recording *rec, struct csink_writer *writer,
			csink_ref_t thread, uint64_t time_ns)
{
	uint32_t bytes = (uint32_t)(sizeof(struct csink_rec_timeline) + MOMENTS * sizeof(struct csink_rec_moment));
	struct csink_rec_timeline *chunk = csink_recording_reserve(rec, writer, bytes);

	timeline->chunk = chunk;
	if (!chunk)
		return false;
	chunk->thread = thread;
	chunk->base_ns = time_ns;
	timeline->nr = 0;
	timeline->base_ns = time_ns;
	timeline->last_us = 0;
	/* Committed empty: moments are published one by one, by their number. */
	csink_recording_commit(chunk, bytes, CSINK_ENTRY_TIMELINE, 0);
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
