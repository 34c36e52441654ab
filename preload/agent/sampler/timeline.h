/* When each sample was: written beside the table of stacks, where --timeline asks for it. */
#ifndef CSINK_TIMELINE_H
#define CSINK_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/core/record/recording.h"

/* Where one thread appends its moments. All zero: begin a new chunk with the first one. */
struct csink_timeline {
	struct csink_rec_timeline *chunk, *oldest;
	uint32_t nr;      /* moments in it */
	uint64_t base_ns; /* its base */
	uint64_t last_us; /* time of the latest moment, since the chunk's base */
};

/**
 * Append a moment: at @time_ns, @weight of event @event of @thread went to @row, a row or a cell.
 * Returns false when the recording is full: the moment is lost, the row has its weight all the same.
 * Context: signal; by the thread that @timeline and @writer belong to.
 */
bool csink_timeline_add(struct csink_timeline *timeline, struct csink_recording *rec, struct csink_writer *writer,
			csink_ref_t thread, csink_ref_t row, uint32_t event, uint64_t weight, uint64_t time_ns);

#endif
