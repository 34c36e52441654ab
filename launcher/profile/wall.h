/*
 * What has to get faster for a run to end sooner: two columns beside CPU time, from the times of samples that
 * `run --timeline` records. "wall": each sample's CPU time divided by the number of threads that ran. "critical": its
 * CPU time, if it is on the critical path (parallelism.h).
 */
#ifndef CSINK_WALL_H
#define CSINK_WALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct csink_profile;

#define CSINK_WALL_TYPE "wall"
#define CSINK_CRITICAL_TYPE "critical"

struct csink_wall {
	uint32_t wall_type, critical_type;              /* indices of the columns in the profile */
	uint32_t nr_cpus;                               /* of the machine that ran it; 0: not known */
	double weights_ns, ran_ns, cpu_ns, critical_ns; /* as in struct csink_instants */
	double timed;                                   /* the part of the event's cost that has times: 0 to 1 */
	uint32_t nr_steps, nr_doubtful;
};

/* Whole numbers, both included: samples whose parallelism, rounded, is between. max 0: all. */
struct csink_wall_range {
	uint32_t min, max;
};

/**
 * Read "N" or "MIN-MAX": whole numbers from 1 to 65535 in order.
 * Returns 0, or -EINVAL. Context: any.
 */
int csink_wall_range_parse(const char *text, struct csink_wall_range *range);

/**
 * Append the two columns, ns. With a range, take out the samples whose parallelism is another, and those without a
 * time, and write down as a fact how much was left.
 * @why  receives a line for people on error.
 * Returns 0, -ENODATA (no sample has a time, or none is in the range) or -ENOMEM; the profile has no new columns if no
 * sample has a time. Context: thread.
 */
int csink_wall_apply(struct csink_profile *p, const struct csink_wall_range *range, struct csink_wall *wall, char *why,
		     size_t why_len);

/**
 * How many threads ran at each sample, by its index, in hundredths; 0: it has no time.
 * Returns 0 (free(3) it), -ENODATA (no sample has a time) or -ENOMEM. Context: thread.
 */
int csink_wall_parallelism(const struct csink_profile *p, uint32_t **hundredths);

/** Take the two columns out again. No column was appended since. Context: thread. */
void csink_wall_remove(struct csink_profile *p, const struct csink_wall *wall);

#endif
