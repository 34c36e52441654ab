/*
 * How many threads ran at each sample, and which samples are on the critical path: the chain of threads that the end of
 * the run waited for. Both are computed from times alone, those of samples and of releases. Pure arithmetic, O(n log
 * n).
 */
#ifndef CSINK_PARALLELISM_H
#define CSINK_PARALLELISM_H

#include <stdbool.h>
#include <stdint.h>

/* One sample. */
struct csink_instant {
	int64_t time_ns;    /* of any clock that all threads share */
	int64_t cpu_ns;     /* the CPU time that it stands for: what its thread ran before it; 1 or more */
	uint32_t thread;    /* from 0 */
	uint32_t sample;    /* the caller's */
	double parallelism; /* result: threads that ran, itself included; 1 to nr_cpus */
	bool is_critical;   /* result: on the critical path */
};

/* A wait of a thread that ended when another one released what it waited for. */
struct csink_release {
	int64_t time_ns;
	uint32_t waiter, releaser; /* threads, below nr_threads */
};

struct csink_instants {
	struct csink_instant *all; /* in any order; in order of time afterwards */
	uint32_t nr, nr_threads, nr_cpus;
	struct csink_release *releases; /* those that are known, in any order; sorted afterwards */
	uint32_t nr_releases;
	int64_t period_ns; /* between two samples of a thread that runs all the time */
	/* Results. */
	double weights_ns;    /* the sum of cpu_ns / parallelism */
	double ran_ns;        /* the time in which any thread ran: the same, if the samples are sound */
	double cpu_ns;        /* the sum of cpu_ns */
	double critical_ns;   /* of those on the critical path */
	uint32_t nr_steps;    /* from a thread to the one that released what it waited for, or that ran before it */
	uint32_t nr_doubtful; /* of them: another thread ran, too, so that it may have been that one */
};

/* The critical path follows a thread backwards over gaps up to this: a thread that waits for a CPU has such gaps, too.
 */
#define CSINK_STREAK_GAP_NS 12000000

/**
 * Fill the results. No thread has a number of nr_threads or more; times and weights may be anything.
 * Returns 0 or -ENOMEM. Context: thread.
 */
int csink_instants_compute(struct csink_instants *instants);

/** The median of the gaps between samples of a thread, ns; 0 where no thread has two, or without memory. The order of
 * all is changed. Context: thread. */
int64_t csink_instants_median_gap(const struct csink_instants *instants);

#endif
