/*
 * countersink/pmc.h - counters that are attached to processes, with the states and the errors of FreeBSD's
 * pmc_attach(3).
 *
 * A PMC is allocated for one event. One of process scope is then attached to processes, while it does not run; started
 * it counts what all of its targets do, in all their threads, those that begin later as well, and with
 * CSINK_PMC_DESCENDANTS in all that they start and have started. One with CSINK_PMC_SELF counts a thread of this
 * process alone. One of system scope counts a CPU.
 *
 *     csink_pmc_allocate   ALLOCATED
 *     csink_pmc_attach     ALLOCATED, STOPPED (targets may be added and taken away any time that it does not run)
 *     csink_pmc_start      RUNNING; a PMC without any target is attached to the calling process first
 *     csink_pmc_stop       STOPPED
 *     csink_pmc_read       in every state; what targets counted that have ended or were detached stays in it
 *     csink_pmc_release    gone
 *
 * So that no thread is missed, targets (but never the calling process) stand still for the moment of attaching: some
 * ms. They are traced for it by a thread that ends at once, and go on by themselves if we are killed. Where that is
 * refused (Yama's ptrace_scope, a debugger), they are attached to as one look at /proc finds them, and
 * csink_pmc_attach returns 1: a thread that was born in that very moment may be missing. Calls of theirs that wait may
 * return EINTR, as they do where a debugger attaches. SIGCHLD may come to the calling process.
 *
 * A PMC belongs to the process that allocated it: in a child made by fork its handle is unknown. Its events are file
 * descriptors (CLOEXEC). A program that closes descriptors which it did not open (closefrom) ends them: a number that
 * has become another file's by then is left alone, and -EBADF says that the PMC is not whole. Hardware events are
 * opened pinned: they count all of the time, or csink_pmc_read says -EBUSY.
 *
 * Every function that can fail returns -errno; each value means one thing for one function, but for those that
 * pmc_attach(3) itself gives several meanings: csink_pmc_reason tells them apart. errno is kept. Context of everything
 * here: thread (any; one lock serves all), not from a signal handler. Uses malloc.
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

typedef int32_t csink_pmc_id_t; /* > 0; not given again before 2^20 others */

enum csink_pmc_flags {
	CSINK_PMC_DESCENDANTS = 1 << 0, /* targets: with current and future descendants */
	CSINK_PMC_SYSTEM = 1 << 1,      /* system scope: a CPU, whatever runs there */
	/*
	 * Counts only the thread that attaches (or starts) the PMC. In that thread csink_pmc_read makes no system call
	 * if the kernel lets user space read the counter (x86: RDPMC, see /sys/bus/event_source/devices/cpu/rdpmc;
	 * arm64: sysctl kernel.perf_user_access=1). value.how says which way it was read. Software events (they have no
	 * counter), a stopped PMC and reads in other threads always use read(2).
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
	uint64_t enabled_ns, running_ns; /* how long it was to count, and did; all threads together */
	uint32_t nr_targets;             /* attached, and there */
	uint32_t nr_ended;               /* attached, and ended since: their counts are in value */
	uint32_t how;                    /* enum csink_pmc_how */
	uint32_t reserved;               /* 0 */
};

/**
 * Allocate a PMC.
 * @event  one event, as `countersink -e` takes it: "task-clock", "cycles:u", "L1-dcache-load-misses",
 * "sched:sched_switch".
 * @cpu    with CSINK_PMC_SYSTEM; else -1.
 * Returns its handle, or
 *   -EINVAL      not an event (syntax), more than one, a period, or flags or cpu that contradict each other;
 *   -ENOENT      no event of that name here;
 *   -EOPNOTSUPP  this machine or kernel cannot count it, or not so;
 *   -EPERM       this user may not (perf_event_paranoid; seccomp);
 *   -ENOSPC      4096 are allocated;
 *   -ENOMEM, -EMFILE, or what perf_event_open(2) gives otherwise.
 */
csink_pmc_id_t csink_pmc_allocate(const char *event, unsigned flags, int cpu);

/**
 * Attach a PMC of process scope to a process.
 * @pid  0: the calling one.
 * Returns 0; 1 (attached, but see above); or nothing is attached that was not before, and
 *   -EBUSY   the PMC runs;
 *   -EBUSY   its counter is in use: by another PMC on the process, or by somebody else;
 *   -EEXIST  the process is tracked by this PMC already;
 *   -EINVAL  the PMC is of system scope; pid is negative; or the process owns no PMC of that handle;
 *   -EPERM   no right to watch that process; or the PMC was allocated with CSINK_PMC_SELF;
 *   -ESRCH   the calling process owns no PMC at all; or there is no process of that number;
 *   -EMFILE, -ENOMEM, -EAGAIN  files (two for each thread, at most), memory or threads have run out.
 * With descendants a refusal of one of them undoes all of it.
 */
int csink_pmc_attach(csink_pmc_id_t pmc, pid_t pid);

/**
 * Detach it, running or not; what was counted there stays in its value. With CSINK_PMC_DESCENDANTS descendants that
 * cannot be detached any more are passed over.
 * @pid  0: the calling process.
 * Returns 0 or
 *   -EINVAL  the PMC is of system scope; pid is negative; the calling process owns no PMC of that handle; or the
 *            process is another PMC's target and not this one's;
 *   -ESRCH   the calling process owns no PMC at all; the process is no target of any; or there is no such process (any
 *            more: what it counted is in the value).
 */
int csink_pmc_detach(csink_pmc_id_t pmc, pid_t pid);

/**
 * Let it count. Returns 0 (also where it runs already), 1 as csink_pmc_attach, where it attached; -EINVAL, -ESRCH (the
 * handle, as above); -EBADF: the program has closed some of its file descriptors, and nothing is started; or what
 * csink_pmc_attach gives.
 */
int csink_pmc_start(csink_pmc_id_t pmc);

/** Let it rest. Returns 0 (also where it does), or -EINVAL, -ESRCH as above. */
int csink_pmc_stop(csink_pmc_id_t pmc);

/**
 * What it has counted since its allocation.
 * Returns 0, or -EINVAL or -ESRCH as above. The value is incomplete with -EBUSY (the PMC lost its counter to another
 * event) and with -EBADF (the program has closed some of its file descriptors).
 */
int csink_pmc_read(csink_pmc_id_t pmc, struct csink_pmc_value *value);

/** Give it back, from whatever state. Returns 0, or -EINVAL, -ESRCH as above. */
int csink_pmc_release(csink_pmc_id_t pmc);

/** Its enum csink_pmc_state, or -EINVAL, -ESRCH as above. */
int csink_pmc_state(csink_pmc_id_t pmc);

/**
 * Why the last call of this process that failed did, in words: "ERRNO: cause (field); remedy". "" if none did.
 * Returns buf.
 */
char *csink_pmc_reason(char *buf, size_t size);

#ifdef __cplusplus
}
#endif

#endif
