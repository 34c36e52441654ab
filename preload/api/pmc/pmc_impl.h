/* What pmc.c (handles, states, errors) and pmc_target.c (events on a process) share; no other file includes this. */
#ifndef CSINK_PMC_IMPL_H
#define CSINK_PMC_IMPL_H

#include <linux/perf_event.h>
#include <pthread.h>
#include <stdbool.h>

#include "include/countersink/pmc.h"
#include "include/internal/event.h"
#include "preload/core/own_fd.h"

#define CSINK_PMC_REASON 400

struct csink_pmc_target {
	int32_t pid;
	uint64_t start_ticks;     /* distinguishes it from a later process with that PID */
	struct csink_own_fd *fds; /* an event for each thread that it and its descendants had */
	uint32_t nr_fds, cap_fds;
	struct perf_event_mmap_page *page; /* with CSINK_PMC_SELF, where it can be mapped: of the only event */
	pthread_t thread;                  /* with CSINK_PMC_SELF: whose event it is */
	struct csink_pmc_target *next;
};

struct csink_pmc {
	csink_pmc_id_t id; /* 0: free */
	enum csink_pmc_state state;
	unsigned flags;
	int cpu;
	bool is_by_thread; /* the kernel cannot inherit by threads alone: each thread that there is has an event */
	bool asks_access;  /* attr.config1 asks for reading in user space, as arm64's PMU wants it */
	struct csink_event_spec spec;
	struct csink_pmc_target *targets; /* of system scope: one, pid -1 */
	struct csink_pmc_value retired;   /* of targets that were taken away */
};

/** Fill in how the PMC's event is opened on a thread. */
void csink_pmc_attr(const struct csink_pmc *pmc, struct perf_event_attr *attr);

/**
 * Explain why an event did not open: reason has room for CSINK_PMC_REASON. Returns the errno that pmc.h gives, which
 * reason begins with.
 * @allocating  for csink_pmc_allocate; else for csink_pmc_attach.
 */
int csink_pmc_explain(const struct csink_pmc *pmc, int32_t tid, int err, bool allocating, char *reason);

/** The name of an errno that something here returns. */
const char *csink_pmc_errno_name(int err);

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

/** Free it alone, in a child of a fork: it does not have the page. */
void csink_pmc_target_free(struct csink_pmc_target *target);

/* How a counter and the clock of the page's times are read. */
struct csink_pmc_self_counters {
	uint64_t (*read)(uint32_t index);
	uint64_t (*ticks)(void);
};
extern const struct csink_pmc_self_counters csink_pmc_self_counters; /* this machine's */

/**
 * Add what an event of the calling thread has counted, from its page and its counter.
 * Returns false, and nothing is added, where the kernel does not let that be or the event has no counter now.
 */
bool csink_pmc_self_read(const struct perf_event_mmap_page *page, const struct csink_pmc_self_counters *counters,
			 struct csink_pmc_value *sum);

#endif
