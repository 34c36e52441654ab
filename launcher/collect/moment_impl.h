/* What moment.c shares with the collector; no other file includes this. */
#ifndef CSINK_MOMENT_IMPL_H
#define CSINK_MOMENT_IMPL_H

#include <stdbool.h>

#include "launcher/collect/moment.h"
#include "launcher/collect/recording_read.h"

struct image;

struct csink_moment {
	uint64_t time_ns, first_ns; /* CLOCK_MONOTONIC */
	struct csink_moment_recording {
		char *path;
		struct csink_recorded copy; /* not parsed: header, data and bytes */
		bool is_collected;          /* it is as it was then, and its process goes on */
		uint32_t used_percent;      /* of what it can become; not stored */
	} * at;
	uint32_t nr, cap, nr_unread;
	/* Of each recording: CPU time that slices have given to it until then, but for its start-up. */
	int64_t *given_ns;
	/* Recordings that were removed: their programs' CPU time is the kernel's, too, and of what they became by exec.
	 * covered_cpu_ns is all of it, tids are those that were sampled. */
	struct image *gone;
	uint32_t nr_gone, cap_gone;
	bool is_last; /* recordings that were collected are as they were then */
};

/**
 * Read a recording of a moment, without what it had in another one before: its header then says that it is continued.
 * @before  NULL: nothing.
 * Returns as csink_recorded_parse().
 */
int csink_moment_read(const struct csink_moment *now, uint32_t index, const struct csink_moment *before,
		      struct csink_recorded *rec, char *why, size_t why_len);

/**
 * The same for a slice: the header's CPU clocks stay as they are, as slices note what they have given; and all programs
 * that could not be injected are there, by which the last one accounts for what it has from outside.
 */
int csink_moment_read_slice(const struct csink_moment *now, uint32_t index, const struct csink_moment *before,
			    struct csink_recorded *rec, char *why, size_t why_len);

/** The number of the same recording in another moment; -1: it is not there. @moment  may be NULL. */
int64_t csink_moment_find(const struct csink_moment *moment, const struct csink_rec_header *header);

#endif
