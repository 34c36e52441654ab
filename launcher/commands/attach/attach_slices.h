/* attach --rotate: a profile of each slice of the time for which processes are sampled from outside. */
#ifndef CSINK_ATTACH_SLICES_H
#define CSINK_ATTACH_SLICES_H

#include <stdint.h>
#include <sys/types.h>

#include "launcher/attach/follow.h"
#include "launcher/collect/run_directory.h"
#include "launcher/session/slices.h"

struct csink_attach_slices {
	struct csink_slices *s; /* shared with the children that write; NULL: none are asked for */
	struct csink_attach_follow *follow;
	struct csink_attach_base base;     /* what slices have that were written */
	uint32_t nr_processes, nr_threads; /* that these slices count */

	/* Of the slice that a child writes. */
	pid_t writer;                  /* 0: there is none */
	struct csink_attach_base next; /* the base, once it is written */
	struct csink_run_directory directory;
	uint64_t next_monotonic_ns, next_realtime_ns, next_named_ns;
	uint32_t next_nr_processes, next_nr_threads;
	int64_t next_gap_ns;

	struct csink_attach_given {
		int64_t cpu_ns;                     /* of what events counted */
		int64_t gap_ns;                     /* beside that: see attach_gap.h */
		int64_t sums[CSINK_MAX_EVENTS + 1]; /* by type, which are the same ones in all slices */
	} * given;                                  /* shared: what slices have */
};

/** Memory that children share. Returns 0 or -ENOMEM. Context: init. */
int csink_attach_slices_init(struct csink_attach_slices *slices);

/** It has been attached. */
void csink_attach_slices_begin(struct csink_attach_slices *slices, struct csink_attach_follow *follow);

/** Again and again while it goes on: a slice may have ended, or be written. */
void csink_attach_slices_poll(struct csink_attach_slices *slices, const struct csink_outside *outside);

/**
 * All was counted: write the last slice.
 * @outside  the totals. Returns 0, or -errno: that has been reported.
 */
int csink_attach_slices_finish(struct csink_attach_slices *slices, const struct csink_outside *outside);

#endif
