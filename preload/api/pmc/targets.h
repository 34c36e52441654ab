/*
 * Which threads a process has, or a whole tree of processes, as /proc shows them. Written and read by the code that
 * attaches (pmc, the attach command); one thread at a time for a list. Context of all functions here: thread.
 */
#ifndef CSINK_TARGETS_H
#define CSINK_TARGETS_H

#include <stdbool.h>
#include <stdint.h>

struct csink_target {
	int32_t pid, tid;
	uint32_t state; /* for stop_targets.c */
};

struct csink_targets {
	struct csink_target *at; /* nr of them, in order of sighting */
	uint32_t nr, cap;
	void *tids; /* the tree of tsearch(3) of their TIDs */
};

/** Add a thread. Returns 1, 0 (known already) or -ENOMEM. */
int csink_targets_add(struct csink_targets *list, int32_t pid, int32_t tid);

/**
 * Add all threads that a process has now, and with @descendants those of its children, and theirs; this process itself
 * is left out of a tree. Threads that begin or end meanwhile may be in it or not.
 * Returns how many are new, or -ESRCH (no such process, or it has ended), -ENOMEM.
 */
int csink_targets_scan(struct csink_targets *list, int32_t pid, bool descendants);

void csink_targets_free(struct csink_targets *list);

/* Processes, each once. All zero: none. */
struct csink_pids {
	int32_t *at; /* malloc'ed, the caller's */
	uint32_t nr, cap;
};

/** Returns 0 or -ENOMEM. */
int csink_pids_add(struct csink_pids *pids, int32_t pid);

/* What the kernel says of a task. */
struct csink_task {
	int32_t tgid, ppid, tracer; /* tracer: a TID; 0: it is not traced */
	char state;                 /* 'R', 'S', 'D', 'Z' ... */
	bool is_ending;             /* on its way through exit */
	uint64_t start_ticks;       /* since boot: distinguishes owners of one PID */
	char comm[16];
};

/** Read it, by pid or tid. Returns 0, or -ESRCH. */
int csink_task_read(int32_t tid, struct csink_task *task);

/**
 * The same of a process, which is ending where all its threads are: the first one may have left the others to
 * themselves, or may just be making way for one that execs. Returns 0, or -ESRCH, also of a thread.
 */
int csink_process_read(int32_t pid, struct csink_task *task);

/** A thread under whose number /proc has what belongs to the whole process: @pid, or where that has ended, another. */
int32_t csink_process_task(int32_t pid);

/** The number of the system call that it is in. Returns 0, or -ESRCH: it runs, is in none, or may not be looked at. */
int csink_task_syscall(int32_t tid, int *number);

#endif
