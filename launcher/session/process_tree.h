/*
 * The command's tree: every process by pid, parent, name and exact CPU time, from the kernel's own records.
 * It needs nothing inside the processes, so static, setuid and 32-bit programs are there like the others.
 *
 * A task-clock event, and for each CPU one that reports creations and exits, are opened on the launcher itself, off,
 * inherited and enabled on exec: the launcher counts nothing, and the command, being a child like those below it,
 * leaves a PERF_RECORD_READ with its exact count as it exits. The rings are read by the launcher's event loop.
 */
#ifndef CSINK_PROCESS_TREE_H
#define CSINK_PROCESS_TREE_H

#include <stdint.h>

#include "launcher/collect/collect.h"

struct csink_process_tree;

/**
 * Open the events; children forked from now on are watched from their exec on.
 * Returns 0 and *out, or -errno of perf_event_open, or -ENOBUFS (the limit of locked memory); then nothing is open.
 * Context: one thread.
 */
int csink_process_tree_open(struct csink_process_tree **out);

/** An fd that becomes readable when a ring is half full: call csink_process_tree_drain then. */
int csink_process_tree_fd(const struct csink_process_tree *tree);

/** The tree's task-clock event, to be read and not closed: a count alone, since each task leaves what is read. */
int csink_process_tree_clock_fd(const struct csink_process_tree *tree);

/** Read what the rings hold. Records younger than a millisecond stay, so that those of all CPUs can be ordered. */
void csink_process_tree_drain(struct csink_process_tree *tree);

/**
 * After the command's end, wait for processes that end with it (they read the end of a pipe, or are being killed): as
 * long as one of the tree is busy, 100 ms at most. Returns at once where all others sleep, or none is left.
 */
void csink_process_tree_settle(struct csink_process_tree *tree);

struct csink_process_tree_result {
	struct csink_outside_process *processes; /* malloc'ed, the caller's; in order of start */
	uint32_t nr_processes;
	struct csink_outside_thread *threads; /* the same: of processes that alone had their PID */
	uint32_t nr_threads;
	uint32_t nr_running; /* of them, those that are still there */
	uint64_t nr_lost;    /* records that the kernel had no room for; processes may be missing or without CPU time */
};

/**
 * Read the rest and give the processes. Call it once, after the command was waited for.
 * Returns 0 or -ENOMEM.
 */
int csink_process_tree_finish(struct csink_process_tree *tree, struct csink_process_tree_result *result);

/** Close all; children are no longer watched. NULL is fine. */
void csink_process_tree_close(struct csink_process_tree *tree);

#endif
