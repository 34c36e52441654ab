/*
 * What perf's records say about the command's processes: a table by pid, fed in order of time. No kernel is needed to
 * test it.
 */
#ifndef CSINK_PROCESS_TABLE_H
#define CSINK_PROCESS_TABLE_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

#include "launcher/base/table.h"
#include "launcher/collect/collect.h"
#include "launcher/session/process_tree.h"

/* The records that are understood, as the events of process_tree.c lay them out. */
union csink_process_record {
	struct perf_event_header head;
	struct { /* PERF_RECORD_FORK, PERF_RECORD_EXIT */
		struct perf_event_header head;
		uint32_t pid, ppid, tid, ptid;
		uint64_t time;
	} task;
	struct { /* PERF_RECORD_COMM */
		struct perf_event_header head;
		uint32_t pid, tid;
		char comm[]; /* NUL-ended, padded to 8 bytes */
	} comm;
	struct { /* PERF_RECORD_READ, of a task that exits, once for each event */
		struct perf_event_header head;
		uint32_t pid, tid;
		uint64_t value;
	} read;
	struct { /* PERF_RECORD_LOST */
		struct perf_event_header head;
		uint64_t id, lost;
	} lost;
	char bytes[96];
};

struct csink_process_entry {
	struct csink_outside_process info;
	uint64_t start_ns; /* CLOCK_MONOTONIC of the first record that names it */
	uint64_t exit_ns;  /* the same of the last record of an exit of its tasks */
	uint32_t parent;   /* index + 1 of the process that forked it; 0: none of the table */
	uint32_t nr_tasks; /* threads seen, the first included */
	uint32_t nr_live;
	uint64_t nr_reads;
	bool is_reused; /* another process of the table had its PID, or has it */
};

/* What an event counted of one task, or of several of a process that had its TID. */
struct csink_process_task {
	uint32_t process; /* its index */
	int32_t tid;
	uint64_t cpu_ns;
};

struct csink_process_table {
	struct csink_process_entry *processes; /* in order of start */
	uint32_t nr, cap;
	struct csink_process_task *tasks; /* those that have ended */
	uint32_t nr_tasks, cap_tasks;
	struct csink_table pids; /* index + 1 of the latest process of a pid */
	uint32_t nr_events;      /* how many reads a task leaves */
	uint64_t nr_lost;
	uint64_t now_ns; /* time of the record that is being fed */
	int error;
};

void csink_process_table_init(struct csink_process_table *table, uint32_t nr_events);
void csink_process_table_free(struct csink_process_table *table);

/** Take in one record; its last eight bytes are its time (sample_id_all). */
void csink_process_table_feed(struct csink_process_table *table, const union csink_process_record *record);

/** True if a process has ended of whose exit no record was fed: records are waiting, of its children's start as well.
 */
bool csink_process_table_is_behind(struct csink_process_table *table);

/** True if a process is on a CPU, or waits for one or for a disk: it may be ending. */
bool csink_process_table_is_busy(struct csink_process_table *table);

/** Settle what is complete and what still runs (asks the kernel about those only). Returns 0 or -ENOMEM. */
int csink_process_table_finish(struct csink_process_table *table, struct csink_process_tree_result *result);

#endif
