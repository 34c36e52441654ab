/*
 * countersink/pmc.h - counters that are attached to processes, with the states and the errors of FreeBSD's
 * pmc_attach(3).
 *
 * A PMC is allocated for one event. A PMC of process scope is attached to processes (its targets) while it is not
 * running. Once started it counts in all threads of all targets, later threads included; with CSINK_PMC_DESCENDANTS
 * also in all current and future descendants. A PMC with CSINK_PMC_SELF counts one thread of this process. A PMC of
 * system scope counts one CPU.
 *
 *     csink_pmc_allocate   ALLOCATED
 *     csink_pmc_attach     ALLOCATED, STOPPED (targets may be added and removed whenever the PMC is not running)
 *     csink_pmc_start      RUNNING; a PMC without any target is attached to the calling process first
 *     csink_pmc_stop       STOPPED
 *     csink_pmc_read       in every state; includes the counts of targets that have ended or were detached
 *     csink_pmc_release    the handle is invalid
 *
 * To miss no thread, csink_pmc_attach stops the targets (never the calling process) for some milliseconds, by a helper
 * thread that traces them with ptrace(2) and then exits. If the calling process is killed meanwhile, the targets
 * continue. Where tracing is refused (Yama's ptrace_scope, a debugger), the threads are those of one pass over /proc,
 * and csink_pmc_attach returns 1: a thread that was created at that moment may be missing. Blocking calls of targets
 * may return EINTR, as when a debugger attaches. The calling process may get a SIGCHLD.
 *
 * Before Linux 5.13 an event cannot be inherited by threads and not by child processes. There a PMC of process scope
 * without CSINK_PMC_DESCENDANTS counts in the threads that the target has when it is attached, and in no later one:
 * csink_pmc_attach returns 1.
 *
 * A PMC belongs to the process that allocated it: in a child of fork(2) its handle is unknown. Its events are file
 * descriptors (CLOEXEC). A program that closes descriptors which it did not open (closefrom) closes these events: the
 * functions below never touch a descriptor number that has been reused, and report the loss as -EBADF. Hardware events
 * are opened pinned: they count all the time, or csink_pmc_read returns -EBUSY.
 *
 * Functions that can fail return -errno. Each value has one meaning for one function, except where pmc_attach(3) itself
 * gives it several: csink_pmc_reason distinguishes these. errno is preserved. Context of all functions: thread (any
 * thread; one lock serializes them); not async-signal-safe, they use malloc.
 */
#ifndef COUNTERSINK_PMC_H
#define COUNTERSINK_PMC_H

#include <countersink/version.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t csink_pmc_id_t; /* > 0; reused after 2^20 others at the earliest */

enum csink_pmc_flags {
	CSINK_PMC_DESCENDANTS = 1 << 0, /* targets include current and future descendants */
	CSINK_PMC_SYSTEM = 1 << 1,      /* system scope: all processes of one CPU */
	/*
	 * Counts only the thread that attaches (or starts) the PMC. In that thread csink_pmc_read makes no system call
	 * if the kernel lets user space read the counter (x86: RDPMC, see /sys/bus/event_source/devices/cpu/rdpmc;
	 * arm64: sysctl kernel.perf_user_access=1); value.how has the method. Software events (they have no counter), a
	 * stopped PMC and reads in other threads always use read(2).
	 */
	CSINK_PMC_SELF = 1 << 2,
};

enum csink_pmc_state {
	CSINK_PMC_ALLOCATED, /* never started */
	CSINK_PMC_STOPPED,
	CSINK_PMC_RUNNING,
};

enum csink_pmc_how {
	CSINK_PMC_BY_READ,  /* by read(2) */
	CSINK_PMC_BY_RDPMC, /* in user space, from the counter itself */
};

struct csink_pmc_value {
	uint64_t value;
	uint64_t enabled_ns, running_ns; /* ns: time enabled, and time on a counter; sums over all threads */
	uint32_t nr_targets;             /* attached and alive */
	uint32_t nr_ended;               /* ended while attached: their counts are in value */
	uint32_t how;                    /* enum csink_pmc_how */
	uint32_t reserved;               /* 0 */
};

/**
 * Allocate a PMC.
 * @event  one event in the syntax of `countersink -e`: "task-clock", "cycles:u", "L1-dcache-load-misses",
 *         "sched:sched_switch".
 * @flags  of enum csink_pmc_flags.
 * @cpu    the CPU with CSINK_PMC_SYSTEM; else -1.
 * Returns the handle, or
 *   -EINVAL      a syntax error, several events, an event with a period, or flags or a cpu that contradict each other;
 *   -ENOENT      this machine has no event of that name;
 *   -EOPNOTSUPP  this machine or kernel cannot count the event, or not with these modifiers;
 *   -EPERM       this user may not count it (perf_event_paranoid, seccomp);
 *   -ENOSPC      4096 PMCs are allocated;
 *   -ENOMEM, -EMFILE, or another error of perf_event_open(2).
 */
csink_pmc_id_t csink_pmc_allocate(const char *event, unsigned flags, int cpu);

/**
 * Attach a PMC of process scope to a process.
 * @pid  the process; 0: the calling process.
 * Returns 0; 1 (attached, but a thread created meanwhile may be missing, or before Linux 5.13 each later one); or
 * nothing was attached, and
 *   -EBUSY   the PMC is running; or the counter is in use, by another PMC on the process or by another program;
 *   -EEXIST  the process is a target of this PMC already;
 *   -EINVAL  the PMC is of system scope; pid is negative; or the calling process has PMCs, but not this one;
 *   -EPERM   the caller may not observe that process; or the PMC was allocated with CSINK_PMC_SELF;
 *   -ESRCH   the calling process has no PMC at all; or there is no such process;
 *   -EMFILE, -ENOMEM, -EAGAIN  no file descriptors (at most two for each thread), memory or threads are left.
 * With CSINK_PMC_DESCENDANTS, an error on one descendant undoes the whole call.
 */
int csink_pmc_attach(csink_pmc_id_t pmc, pid_t pid);

/**
 * Detach a PMC, running or not, from a process. The value keeps the counts of that process. With
 * CSINK_PMC_DESCENDANTS, descendants that cannot be detached are skipped.
 * @pid  the process; 0: the calling process.
 * Returns 0, or
 *   -EINVAL  the PMC is of system scope; pid is negative; the calling process has PMCs, but not this one; or the
 *            process is a target of another PMC and not of this one;
 *   -ESRCH   the calling process has no PMC at all; the process is not a target of any PMC; or it does not exist (if
 *            it has ended, the value keeps its counts).
 */
int csink_pmc_detach(csink_pmc_id_t pmc, pid_t pid);

/**
 * Start counting. A PMC of process scope without targets is attached to the calling process first.
 * Returns 0 (also if the PMC is running already), 1 as csink_pmc_attach, or
 *   -EINVAL, -ESRCH  the handle is not of this process;
 *   -EBADF           the program has closed some of the PMC's file descriptors: nothing was started;
 * or an error of csink_pmc_attach.
 */
int csink_pmc_start(csink_pmc_id_t pmc);

/** Stop counting. Returns 0 (also if the PMC is stopped already), or -EINVAL or -ESRCH: the handle is not of this
 * process. */
int csink_pmc_stop(csink_pmc_id_t pmc);

/**
 * Read the count since the allocation of the PMC, in any state.
 * Returns 0, or
 *   -EINVAL, -ESRCH  the handle is not of this process;
 *   -EBUSY           the PMC lost its counter to another event: the value is incomplete;
 *   -EBADF           the program has closed some of the PMC's file descriptors: the value is incomplete.
 */
int csink_pmc_read(csink_pmc_id_t pmc, struct csink_pmc_value *value);

/** Release a PMC, in any state. Returns 0, or -EINVAL or -ESRCH: the handle is not of this process. */
int csink_pmc_release(csink_pmc_id_t pmc);

/** Returns the PMC's enum csink_pmc_state, or -EINVAL or -ESRCH: the handle is not of this process. */
int csink_pmc_state(csink_pmc_id_t pmc);

/**
 * Write the reason of the last failed call of this process as "ERRNO: cause (field); remedy", or "" if no call failed.
 * Before Linux 5.13 that is also the reason of the last 1 of csink_pmc_attach or csink_pmc_start.
 * @size  of buf, bytes; a longer text is cut.
 * Returns buf.
 */
char *csink_pmc_reason(char *buf, size_t size);

#ifdef __cplusplus
}
#endif

#endif
