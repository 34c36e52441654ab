/* What reading the kernel's records of threads (stat_threads.c) and adding them up (stat_threads_sum.c) share. */
#ifndef CSINK_STAT_THREADS_IMPL_H
#define CSINK_STAT_THREADS_IMPL_H

#include <linux/perf_event.h>

#include "launcher/commands/stat/stat_threads.h"

/* The fields of a record that the sums need. */
struct csink_stat_thread_note {
	uint64_t time_ns;
	uint32_t type, pid, tid, parent; /* parent: the thread that forked it */
	union {
		char comm[16];
		struct {
			uint64_t value, enabled_ns, running_ns, id;
		} read;
	};
};

/*
 * A ring takes writers on one CPU only. Births, names and ends are written where they happen; but what a thread leaves
 * of an event on CPU 0 is written on the CPU that it ends on, under a lock of that event. So each event has a ring of
 * its own: two CPUs that write to one at a time lose records, and may leave it in a state in which it reports nothing.
 */
struct csink_stat_ring {
	struct perf_event_mmap_page *page;
};

struct csink_stat_threads {
	int epoll_fd, anchor_fd;
	uint32_t page_bytes, ring_bytes;
	uint32_t nr_cpus; /* configured */
	struct csink_stat_counters *counters;
	uint64_t *ids;     /* of counter i on a CPU: ids[i * nr_cpus + cpu]; 0: none there */
	uint32_t nr_reads; /* how many records a thread leaves of its counts: one for each id */
	int *lives_fds;    /* the event that reports births, names and exits, on each CPU */
	uint32_t nr_lives;
	struct csink_stat_thread_note *notes;
	uint32_t nr_notes, cap_notes;
	uint64_t nr_lost;
	bool no_memory;
	struct csink_stat_ring *rings;
	uint32_t nr_rings;
};

#endif
