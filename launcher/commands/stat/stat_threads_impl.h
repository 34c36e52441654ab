/* What opening the rings of threads' records (stat_threads.c) and adding these up (stat_threads_sum.c) share. */
#ifndef CSINK_STAT_THREADS_IMPL_H
#define CSINK_STAT_THREADS_IMPL_H

#include "launcher/base/table.h"
#include "launcher/commands/stat/stat_threads.h"
#include "launcher/session/rings.h"

/*
 * A ring takes writers on one CPU only. Births, names and ends are written where they happen; but what a thread leaves
 * of an event on CPU 0 is written on the CPU that it ends on, under a lock of that event. So each event has a ring of
 * its own: two CPUs that write to one at a time lose records, and may leave it in a state in which it reports nothing.
 */
struct csink_stat_threads {
	struct csink_rings rings; /* of each CPU one for births, names and ends, then one for each counter */
	int anchor_fd;
	uint32_t nr_cpus; /* configured */
	struct csink_stat_counters *counters;
	uint64_t *ids;     /* of counter i on a CPU: ids[i * nr_cpus + cpu]; 0: none there */
	uint32_t nr_reads; /* how many records a thread leaves of its counts: one for each id */

	struct csink_stat_thread *threads; /* in order of start */
	uint32_t nr, cap;
	struct csink_table tids; /* index + 1 of the latest thread of a TID */
	int err;                 /* -ENOMEM: some are missing */
};

/** Take in a record, as an event of stat_threads.c lays it out; they come in the order of their times. */
void csink_stat_threads_feed(struct csink_stat_threads *threads, const struct perf_event_header *record);

/** The threads, of which all records were fed. Returns 0 or -ENOMEM. */
int csink_stat_threads_settle(struct csink_stat_threads *threads, struct csink_stat_threads_result *result);

#endif
