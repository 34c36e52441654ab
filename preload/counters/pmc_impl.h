/* What pmc.c (handles, states, errors) and pmc_target.c (events on a process) share; nobody else includes this. */
#ifndef CSINK_COUNTERS_PMC_IMPL_H
#define CSINK_COUNTERS_PMC_IMPL_H

#include <stdbool.h>

#include "include/countersink/pmc.h"
#include "include/internal/event.h"
#include "preload/counters/own_fd.h"

#define CSINK_PMC_REASON 400

struct csink_pmc_target {
	int32_t pid;
	uint64_t start_ticks;     /* tells it from a later process of that number */
	struct csink_own_fd *fds; /* an event for each thread that it and its descendants had */
	uint32_t nr_fds, cap_fds;
	struct csink_pmc_target *next;
};

struct csink_pmc {
	csink_pmc_id_t id; /* 0: free */
	enum csink_pmc_state state;
	unsigned flags;
	int cpu;
	struct csink_event_spec spec;
	struct csink_pmc_target *targets; /* of system scope: one, pid -1 */
	struct csink_pmc_value retired;   /* of targets that were taken away */
};

/** Fill in how the PMC's event is opened on a thread. */
void csink_pmc_attr(const struct csink_pmc *pmc, struct perf_event_attr *attr);

/** Explain why an event did not open: reason has room for CSINK_PMC_REASON. Returns err, the errno that pmc.h gives. */
int csink_pmc_explain(const struct csink_pmc *pmc, int32_t tid, int err, char *reason);

/**
 * Open the events on a process, off.
 * @out  malloc'ed; to be linked into the PMC, or closed.
 * Returns 0; 1: without stopping it; or -errno as csink_pmc_attach, and reason.
 */
int csink_pmc_target_open(const struct csink_pmc *pmc, int32_t pid, struct csink_pmc_target **out, char *reason);

/** Are all of its events still open, under the numbers that they had? */
bool csink_pmc_target_is_whole(const struct csink_pmc_target *target);

/** Switch it on or off: what is still open of it. */
void csink_pmc_target_switch(const struct csink_pmc_target *target, bool on);

/** Add what it has counted. Returns 0; -EBADF: not all of its events are open any more; or -EBUSY. */
int csink_pmc_target_read(const struct csink_pmc_target *target, struct csink_pmc_value *value);

/** Is the process that was attached to still there? */
bool csink_pmc_target_lives(const struct csink_pmc_target *target);

/** Close what is still open of it, and free it. */
void csink_pmc_target_close(struct csink_pmc_target *target);

/** Free it alone. */
void csink_pmc_target_free(struct csink_pmc_target *target);

#endif
