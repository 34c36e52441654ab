/*
 * Which processes use performance counters, and which have a lock file open: one pass over /proc. What belongs to
 * others and may not be looked into is counted, for absence is never proof: nor would it be if all could be seen, since
 * the kernel has counters of its own (the watchdog's, those of KVM guests, those that BPF maps hold) that no process
 * shows.
 */
#ifndef CSINK_COUNTER_SCAN_H
#define CSINK_COUNTER_SCAN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct csink_scan_process {
	int32_t pid;
	char comm[32];
	uint32_t nr_events; /* perf events: open files or mappings, whichever are more */
	bool has_file;      /* the lock file is open */
	bool reads, writes; /* and byte 0 of it locked */
	bool is_agent;      /* has the agent's name, or is a pmcd that has the file */
	bool runs_guests;   /* of KVM, whose counters are invisible here */
};

struct csink_scan {
	struct csink_scan_process *processes; /* only those with something to say, what matters most first */
	uint32_t nr;
	uint32_t nr_looked_at, nr_unseen; /* processes other than ourselves and kernel threads */
};

/**
 * Look at every process but this one.
 * @file  the lock file; NULL: none.
 * Returns 0, -ENOMEM, or -errno of opening /proc. csink_scan_free in any case.
 */
int csink_scan_run(struct csink_scan *scan, const struct stat *file);
void csink_scan_free(struct csink_scan *scan);

#endif
