/*
 * Stopping all threads of some processes for a moment, so that counters can be opened on every thread and no thread is
 * created unseen.
 *
 * It is done by a thread of its own that traces them (PTRACE_SEIZE, which sends no signal). When that thread ends, in
 * whatever way, the kernel lets all of them go on by itself, with the signals that came meanwhile: nothing has to be
 * undone, and a SIGKILL of this process leaves nothing stopped.
 */
#ifndef CSINK_STOP_TARGETS_H
#define CSINK_STOP_TARGETS_H

#include "preload/api/pmc/targets.h"

struct csink_stop {
	struct csink_targets targets; /* what was found; the caller frees it */
	int err;                      /* 0: all were stopped; else -errno: why act was called while some ran */
	int32_t tracer;               /* with -EBUSY: the process that traces one of them already */
	uint32_t nr_asleep;           /* threads that were left asleep: a stop would have made their call fail */
	uint64_t stopped_ns;          /* from the first stop to the last continue; 0: none was stopped */
};

/* Called with all targets found, also with those that have ended meanwhile. */
typedef int (*csink_stop_act)(struct csink_targets *targets, void *arg);

/**
 * Stop processes, call act in the tracing thread, let them continue.
 * @descendants  with all that they started, and what these did.
 * @may_stop     false: act is called at once, on what one look at /proc finds; out->err is -ECANCELED.
 * Where stopping fails (-EPERM: rights, Yama; -EBUSY: a debugger traces them; -ETIMEDOUT: one did not stop in time)
 * act is called all the same. -EAGAIN: one that slept woke and started a task while act was at work, which may have
 * come too late for it, or too early. The calling process itself, where it is one of them, is never stopped. Returns
 * what act returned, or without calling it -ESRCH (none of the processes is there), -ENOMEM, -EAGAIN (no thread to be
 * had). Context: thread; signals of the tracing thread are blocked, SIGCHLD may come to the process.
 */
int csink_stop_targets(const int32_t *pids, uint32_t nr_pids, bool descendants, bool may_stop, csink_stop_act act,
		       void *arg, struct csink_stop *out);

#endif
