/* What reading the kernel's records of threads (threads.c) and adding them up (threads_sum.c) share. */
#ifndef CSINK_LAUNCHER_STAT_THREADS_IMPL_H
#define CSINK_LAUNCHER_STAT_THREADS_IMPL_H

#include <linux/perf_event.h>

#include "launcher/stat/threads.h"

/* A record that says something, cut to what is of use. */
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

struct csink_stat_ring {
	int fd; /* of the CPU's first event, which owns the ring; not ours to close */
	struct perf_event_mmap_page *page;
};

struct csink_stat_threads {
	int epoll_fd, anchor_fd;
	uint32_t page_bytes, ring_bytes;
	struct csink_stat_counters *counters;
	uint64_t *ids; /* of counter i on CPU number k of those that are there: ids[i * nr_rings + k] */
	struct csink_stat_thread_note *notes;
	uint32_t nr_notes, cap_notes;
	uint64_t nr_lost;
	bool no_memory;
	uint32_t nr_rings;
	struct csink_stat_ring rings[];
};

#endif
