/* When slices begin: see slice_clock.h. */
#include "launcher/session/slice_clock.h"

#include <stdbool.h>

#include "include/internal/base.h"

uint64_t csink_slice_clock_next(struct csink_slice_clock *clock, uint64_t realtime_ns, uint64_t monotonic_ns)
{
	int64_t offset_ns = (int64_t)(realtime_ns - monotonic_ns), moved_ns = offset_ns - clock->offset_ns;
	bool is_new = !clock->due_ns || moved_ns > CSINK_SLICE_MOVED_NS || moved_ns < -CSINK_SLICE_MOVED_NS;
	uint64_t begin_ns = realtime_ns;

	if (is_new) {
		clock->offset_ns = offset_ns;
		clock->due_ns = (realtime_ns / clock->slice_ns + 1) * clock->slice_ns - (uint64_t)offset_ns;
		return begin_ns;
	}
	/* Of ends that were missed, the last one. */
	while (clock->due_ns <= monotonic_ns) {
		begin_ns = clock->due_ns + (uint64_t)clock->offset_ns;
		clock->due_ns += clock->slice_ns;
	}
	return begin_ns;
}
