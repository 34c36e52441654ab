/*
 * Following what is attached to: the kernel's records become processes and threads, its samples stacks and weights.
 * Written and read by the attach command's one thread.
 */
#ifndef CSINK_FOLLOW_H
#define CSINK_FOLLOW_H

#include "launcher/attach/attach_clock.h"
#include "launcher/attach/attach_counters.h"
#include "launcher/attach/cpu_samples.h"
#include "launcher/attach/images.h"
#include "launcher/attach/pythons.h"
#include "launcher/attach/walk_libunwind.h"

struct csink_attach_follow {
	struct csink_attach_counters counters;
	struct csink_attach_clock clock;
	struct csink_cpu_samples cpus; /* in a run */
	struct csink_attach_images images;
	struct csink_attach_pythons pythons;
	uint32_t max_depth;
	enum csink_walk_by walk_by; /* over copies of stacks */
	int32_t leave_out;          /* records of this process are not taken: the launcher, before its child's exec */
	struct csink_outside *outside;
	uint64_t nr_samples, nr_deep, nr_throttled; /* nr_deep: stacks of which the copy has the top only */
	uint64_t added_lost, added_throttled;       /* which the images have already */
	uint64_t nr_helped;                         /* stacks that libunwind took over */
	uint64_t nr_by_code, nr_guessed;            /* stacks through code without tables: see csink_walk_trust */
	/* What each thread's event had counted at its last sample. */
	struct csink_attach_last {
		uint64_t id, value;
		uint32_t owner;
	} * last;
	uint32_t nr_last, cap_last;
	struct csink_table last_index;
};

/** Before the targets are looked at. */
void csink_attach_follow_begin(struct csink_attach_follow *follow);

/** The same as draining without all, in steps of so many bytes. Returns whether another one is due. */
struct csink_attach_step {
	uint32_t bytes;
	uint64_t before_ns; /* 0 before the first */
};
bool csink_attach_follow_step(struct csink_attach_follow *follow, struct csink_attach_step *step);

/** Take the records that there are; all: also those of the last moment, whose order may still change. */
void csink_attach_follow_drain(struct csink_attach_follow *follow, bool all);

/**
 * At the end: notes and losses, and the recordings in a directory.
 * Returns 0 or -errno.
 */
int csink_attach_follow_save(struct csink_attach_follow *follow, const char *directory);

/* What rows had counted at a moment; all 0: at the beginning. */
struct csink_attach_base {
	struct csink_attach_counted {
		uint64_t nr_samples, weights[CSINK_MAX_EVENTS];
	} * rows;
	uint32_t nr_rows;
};

/** While it goes on: the recordings of what was sampled until now; outside has their events. Returns 0 or -errno. */
int csink_attach_follow_write(struct csink_attach_follow *follow, const char *directory);

/**
 * The same of what came since a base.
 * @now  becomes the base of what comes next; its rows are freed by free(3).
 * Returns 0 or -errno; then there is nothing to be freed.
 */
int csink_attach_follow_since(struct csink_attach_follow *follow, const char *directory,
			      const struct csink_attach_base *base, struct csink_attach_base *now);

void csink_attach_follow_free(struct csink_attach_follow *follow);

#endif
