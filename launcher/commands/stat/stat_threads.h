/*
 * Counts of single threads, from outside: as a thread exits, the kernel leaves a PERF_RECORD_READ with what each event
 * inherited by it had counted. For that each event is opened on each CPU, with a ring of its own, and so is one that
 * reports births and names; the launcher's event loop reads them.
 *
 * Linux 5.13 to about 6.15 leaves no such record where the task has ended already (the record was lost in a rewrite of
 * the kernel's exit path): then no thread has counts, and has_counts is false.
 */
#ifndef CSINK_STAT_THREADS_H
#define CSINK_STAT_THREADS_H

#include <stdbool.h>
#include <stdint.h>

#include "launcher/commands/stat/stat_counters.h"

struct csink_stat_threads;

struct csink_stat_thread {
	int32_t pid, tid;
	char comm[16];
	bool ended;
	uint32_t nr_reads;                                     /* records it left */
	bool has_counts;                                       /* it left all of them */
	struct csink_stat_value values[CSINK_STAT_MAX_EVENTS]; /* of the counters, in their order */
};

struct csink_stat_threads_result {
	struct csink_stat_thread *threads; /* malloc'ed; in order of start */
	uint32_t nr;
	bool has_counts;        /* some thread left counts */
	uint32_t nr_incomplete; /* threads that have ended, of which there is a part of the counts at most */
	uint64_t nr_lost;       /* the kernel's records that there was no room for */
};

/**
 * Open the counters on each CPU, and what reads them. Refusals of single events are kept with the counters.
 * Returns 0, or -errno of the rings (-ENOBUFS: the limit of locked memory); then nothing is open.
 */
int csink_stat_threads_open(struct csink_stat_threads **out, struct csink_stat_counters *counters);

/** Readable when csink_stat_threads_drain should be called. */
int csink_stat_threads_fd(const struct csink_stat_threads *threads);
void csink_stat_threads_drain(struct csink_stat_threads *threads);

/** What all threads left. Returns 0 or -ENOMEM. */
int csink_stat_threads_finish(struct csink_stat_threads *threads, struct csink_stat_threads_result *result);

/** Close what was opened here, but for the counters. NULL is fine. */
void csink_stat_threads_close(struct csink_stat_threads *threads);

#endif
