/*
 * Attaching to what runs already: the counters are opened on all threads of the targets, or on a control group, at one
 * moment. Written and read by the attach command's one thread; while they stand still, by that which stops them.
 */
#ifndef CSINK_ATTACH_TARGET_H
#define CSINK_ATTACH_TARGET_H

#include "launcher/attach/follow.h"
#include "launcher/attach/select_targets.h"
#include "preload/api/pmc/stop_targets.h"

struct csink_attach_target {
	/* Asked for. */
	struct csink_pids choice; /* with tid: its process; with cgroup_fd: those in it */
	int32_t tid;              /* this thread only; 0: processes */
	int cgroup_fd;            /* >= 0: all processes in it */
	const char *cgroup;       /* then its path, for users */
	bool may_stop;            /* they may be stopped for the moment of attaching */
	/* Found. */
	char name[16]; /* of the first process */
	struct csink_stop stop;
	uint64_t from_ns;                  /* CLOCK_MONOTONIC: from here on everything was counted */
	uint32_t nr_threads, nr_processes; /* attached to */
};

/** Set the name, where there is a process. */
void csink_attach_name(struct csink_attach_target *target);

/**
 * Attach. The events of follow->counters have been made ready. The last note of follow->outside then says what was
 * attached to, and how.
 * @why  on failure, one line.
 * Returns 0, or -errno: -ESRCH (all have ended), -EACCES or -EPERM (not ours to watch)...
 */
int csink_attach_begin(struct csink_attach_target *target, struct csink_attach_follow *follow, char *why,
		       size_t why_size);

#endif
