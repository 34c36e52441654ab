/*
 * The CPU time that the kernel accounts to what is attached to. Events have less: they count from where a switch puts
 * them on a CPU to where the next one takes them off, and end before their process has freed its memory. Written and
 * read by the attach command's one thread; the beginning is read while the targets stand still, by that which stops
 * them.
 */
#ifndef CSINK_ATTACH_CLOCK_H
#define CSINK_ATTACH_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "launcher/base/table.h"

struct csink_attach_clock {
	bool is_wanted;      /* else nothing here does anything */
	bool is_known;       /* there was a clock to be read */
	bool lacks_children; /* processes may have children that are not attached to: what they wait for is not read */
	int32_t tid;         /* this thread alone; 0: processes */
	int cgroup_fd;       /* >= 0: a control group */
	struct csink_attach_clock_of {
		int32_t pid, ppid;
		bool is_self;         /* this process: of the command that it started, it waits for the end */
		bool has_ended;       /* found by the reading that goes on */
		uint64_t start_ticks; /* since boot: distinguishes owners of one PID; 0: not known */
		uint64_t cpu_ns;      /* at the last reading */
		struct csink_attach_clock_children {
			uint64_t ns, faults;
		} children;             /* that it has waited for, up to the last reading */
		uint64_t faults_before; /* at the last reading that is complete */
		bool is_parent;         /* of a process that has ended since then */
	} * at;                         /* processes that have not ended, as far as is known */
	uint32_t nr, cap;
	struct csink_table by_pid; /* of each PID: its index in at, + 1 */
	uint64_t used_ns;          /* by clocks and by children, up to the last reading, since they were attached to */
	int64_t waited_ns;         /* of children that were waited for, more than used_ns has; < 0: some were not yet */
	uint64_t read_ns;          /* CLOCK_MONOTONIC: when the last reading began */
	uint64_t next_ns;          /* when to read again */
	uint64_t nr_unread;        /* how often processes ended, and none that is read waited for them */

	uint64_t nr_unsure; /* how often processes ended, and one that is read may not have waited for them */

	/* CPU time beside what events counted. */
	int64_t gap_ns;
	int64_t shift_ns; /* what readings lacked of processes that ended */
	uint64_t nr_unsure_before;
};

/** It begins: of a thread (@tid), a control group (@cgroup_fd >= 0), or of processes, which are added. */
void csink_attach_clock_begin(struct csink_attach_clock *clock, int32_t tid, int cgroup_fd);

/** It is attached to this process, which runs, or was not waited for yet: what it used before is not counted. */
void csink_attach_clock_add(struct csink_attach_clock *clock, int32_t pid);

/** A command is about to be started by this process. */
void csink_attach_clock_add_self(struct csink_attach_clock *clock);

/** A process has started since; all its CPU time counts. It may be known already, or have ended. @ppid  0: not known */
void csink_attach_clock_add_new(struct csink_attach_clock *clock, int32_t pid, int32_t ppid);

/** Again and again while it goes on: what a process has used until shortly before its end is known so. */
void csink_attach_clock_poll(struct csink_attach_clock *clock);

/** Read all clocks now. */
void csink_attach_clock_read(struct csink_attach_clock *clock);

/**
 * How much CPU time there is beside what events counted, up to the last reading; < 0: they counted more. Where a
 * process may have ended since the last call that no other one waited for, it is no less than before: events may have
 * more of it than readings.
 * @event_ns  what they counted, read after the clock.
 * @is_whole  nothing else is counted of which no clock is read; else it is never less.
 */
int64_t csink_attach_clock_gap(struct csink_attach_clock *clock, uint64_t event_ns, bool is_whole);

void csink_attach_clock_free(struct csink_attach_clock *clock);

#endif
