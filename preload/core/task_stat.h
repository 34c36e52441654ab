/* What /proc/PID/stat says of a process or thread, as far as it concerns us: the one place that reads it. */
#ifndef CSINK_TASK_STAT_H
#define CSINK_TASK_STAT_H

#include <stdint.h>

struct csink_task_stat {
	char comm[64];        /* threads of the kernel have longer names than others */
	char state;           /* R, S, D, T, t, Z, X ... */
	int32_t ppid;         /* 0: none here */
	uint32_t flags;       /* the kernel's PF_EXITING and others */
	uint64_t start_ticks; /* since boot: distinguishes owners of one PID */
	/* Of the children that the process has waited for, and theirs: CPU time, and minor page faults. */
	uint64_t children_ticks, children_faults;
};

/** Read it, by pid or tid. Returns 0, or -ESRCH, also where /proc cannot be read. Context: thread; errno is kept. */
int csink_task_stat_read(int32_t tid, struct csink_task_stat *out);

#endif
