/*
 * What this process may do with perf events, read from /proc: for explanations and for `countersink doctor`.
 * Context of everything here: any, but for signal.
 */
#ifndef CSINK_PERF_SYSTEM_H
#define CSINK_PERF_SYSTEM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "include/countersink/explain.h"

/* mmap(2) of a ring says EPERM for it, here and in the launcher -ENOBUFS; what users read wherever it is met. */
#define CSINK_NO_LOCKED_MEMORY                                                                                         \
	"no memory may be locked any more for rings: raise ulimit -l, or sysctl kernel.perf_event_mlock_kb"

/* Values that could not be read are -1, but for paranoid, which can be negative: has_paranoid. */
struct csink_perf_system {
	bool has_proc;     /* /proc is there; without it nothing of this is known but euid */
	bool has_paranoid; /* /proc/sys/kernel/perf_event_paranoid is there: the kernel has perf events */
	int64_t paranoid;
	int64_t max_sample_rate, mlock_kb, max_stack; /* the other perf_event_ sysctls */
	bool has_perfmon;  /* CAP_PERFMON or CAP_SYS_ADMIN, effective, whatever the namespace */
	bool has_admin;    /* CAP_SYS_ADMIN */
	bool has_ipc_lock; /* CAP_IPC_LOCK: locked memory is not limited */
	bool in_user_ns;   /* not the initial one: capabilities are worth nothing to perf */
	int64_t seccomp;   /* 0 none, 1 strict, 2 filter */
	uid_t euid;
};

/** Is the process in another user namespace than the initial one? 1 or 0; -errno: it cannot be known. Context: any. */
int csink_is_in_user_ns(void);

void csink_perf_system_read(struct csink_perf_system *system);

/** True if the system lets this process do what needs perf_event_paranoid <= level. */
static inline bool csink_perf_system_allows(const struct csink_perf_system *system, int64_t level)
{
	return (system->has_perfmon && !system->in_user_ns) || (system->has_paranoid && system->paranoid <= level);
}

/**
 * Is perf_event_open refused to this process whatever is asked? Two probes: a NULL attr (the kernel says EFAULT;
 * anything else came from a filter before it) and the least event there is.
 * @call  its arguments are used with the NULL attr, for filters that look at them; NULL: plain ones.
 * Returns true and *out if so, without the remedy (csink_explain_refusal_remedy() in preload/api adds it): the library
 * that is injected reports causes alone.
 */
bool csink_explain_refusal(const struct csink_perf_call *call, const struct csink_perf_system *system,
			   struct csink_explanation *out);

#endif
