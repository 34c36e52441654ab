/* What moment.c shares with the collector; no other file includes this. */
#ifndef CSINK_MOMENT_IMPL_H
#define CSINK_MOMENT_IMPL_H

#include "launcher/collect/moment.h"
#include "launcher/collect/recording_read.h"

struct csink_moment {
	uint64_t time_ns, first_ns; /* CLOCK_MONOTONIC */
	struct csink_moment_recording {
		char *path;
		struct csink_recorded copy; /* not parsed: header, data and bytes */
	} * at;
	uint32_t nr, cap, nr_unread;
};

/**
 * Read a recording of a moment, without what it had in another one before: its header then says that it is continued.
 * @before  NULL: nothing.
 * Returns as csink_recorded_parse().
 */
int csink_moment_read(const struct csink_moment *now, uint32_t index, const struct csink_moment *before,
		      struct csink_recorded *rec, char *why, size_t why_len);

#endif
