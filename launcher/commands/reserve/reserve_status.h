/*
 * The state of the counters, without reserving them: the holders of the agent's lock, the waiting processes, what the
 * agent does, the watchdog, and other processes with perf events. For `countersink reserve --status`.
 */
#ifndef CSINK_RESERVE_STATUS_H
#define CSINK_RESERVE_STATUS_H

#include <limits.h>

#include "launcher/session/counter_scan.h"
#include "preload/api/reserve/reserve_impl.h"

#define CSINK_MAX_WAITERS 16

struct csink_reserve_status {
	char lock_file[PATH_MAX];
	int lock_err; /* -errno of opening it; 0: it is there and readable */
	bool is_locked, is_write_locked;
	/* Those that the kernel lists as blocked on it; a pid of 0 is one that it does not name. */
	uint32_t nr_waiters;
	int32_t waiters[CSINK_MAX_WAITERS];
	struct csink_agent agent;
	int active;             /* perfevent.active, or -errno as of csink_pcp_active */
	char active_words[200]; /* then the text */
	int64_t watchdog;       /* kernel.nmi_watchdog; -1: not known */
	struct csink_scan scan;
	int scan_err;
};

/**
 * Find all that out.
 * @lock_file   NULL: the usual one.
 * @timeout_ns  how long the agent may take to answer.
 */
void csink_reserve_status_read(struct csink_reserve_status *status, const char *lock_file, uint64_t timeout_ns);

#endif
