/*
 * countersink/explain.h - why perf_event_open(2), or mmap(2) of its ring, failed: the cause, the field to blame, and
 * the remedy. One errno of that call stands for up to 35 causes. The library finds the cause by trying: it starts with
 * an event that opens, and puts the caller's attributes back one at a time, in the order in which the kernel checks
 * them, until the call fails.
 *
 * Nothing is allocated, printed or left open; fds are CLOEXEC and closed at once; probes are disabled events: they
 * count nothing and raise no signal. errno is preserved. Context of all functions: any thread with 32 KiB of stack; not
 * async-signal-safe.
 */
#ifndef COUNTERSINK_EXPLAIN_H
#define COUNTERSINK_EXPLAIN_H

#include <countersink/version.h>
#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

enum csink_cause {
	CSINK_CAUSE_UNKNOWN,     /* no trial changed the outcome */
	CSINK_CAUSE_NONE,        /* the same call works now */
	CSINK_CAUSE_SECCOMP,     /* a seccomp filter refused the call */
	CSINK_CAUSE_NO_PERF,     /* the kernel was built without perf events */
	CSINK_CAUSE_PARANOID,    /* kernel.perf_event_paranoid; the capability that overrides it is missing */
	CSINK_CAUSE_USER_NS,     /* the process has the capability only in a user namespace */
	CSINK_CAUSE_LSM,         /* a security module or the lockdown mode */
	CSINK_CAUSE_NO_PMU,      /* no hardware PMU at all */
	CSINK_CAUSE_NO_EVENT,    /* the PMU, or the event, is not known to this kernel and CPU */
	CSINK_CAUSE_UNSUPPORTED, /* the event exists, but not with this feature */
	CSINK_CAUSE_BAD_VALUE,   /* a field's value is out of its range, or contradicts another field */
	CSINK_CAUSE_NEW_FIELD,   /* a field or bit that this kernel does not know yet */
	CSINK_CAUSE_LIMIT,    /* a limit of the process or the system: fds, locked memory, stack depth, sample rate */
	CSINK_CAUSE_RESOURCE, /* hardware that is used up or held by another event */
	CSINK_CAUSE_GROUP,    /* the event cannot be in this group */
	CSINK_CAUSE_TARGET,   /* the process, CPU or control group is missing, or may not be observed */
	CSINK_CAUSE_RETRY,    /* interrupted: call again */
	CSINK_CAUSE_CALLER,   /* a wrong pointer or fd of the caller */
	CSINK_NR_CAUSES
};

/* A failed perf_event_open(2), with attr as it was passed: after E2BIG the kernel has overwritten attr.size. */
struct csink_perf_call {
	const struct perf_event_attr *attr;
	pid_t pid;
	int cpu, group_fd;
	unsigned long flags;
};

struct csink_explanation {
	enum csink_cause cause;
	int err;          /* the errno of this fault */
	char field[48];   /* "exclude_kernel", "sample_type: PHYS_ADDR", "pid" ...; "" if no field is to blame */
	char text[200];   /* the cause, for users; no full stop */
	char remedy[240]; /* what to do; "" if there is no remedy */
};

/* A call can have several faults; the kernel reports the first. */
#define CSINK_EXPLAIN_MAX 4

/**
 * Explain a failed perf_event_open.
 * @err  its errno (positive).
 * @out  an array of max explanations (CSINK_EXPLAIN_MAX are enough); out[0] explains err, the others the faults that
 *       appear when out[0] is corrected.
 * Returns the number of explanations (at least 1).
 */
int csink_explain_open(const struct csink_perf_call *call, int err, struct csink_explanation *out, unsigned max);

/**
 * Explain a failed mmap of an event's ring.
 * @attr   of the event behind fd.
 * @bytes  the length of the mapping.
 * @err    the errno of mmap(2) (positive).
 */
void csink_explain_mmap(const struct perf_event_attr *attr, int fd, size_t bytes, int prot, int map_flags, int err,
			struct csink_explanation *out);

/** Write "ERRNO: text (field); remedy" as one line. @size: of buf, bytes. Returns buf. */
char *csink_explain_print(const struct csink_explanation *explanation, char *buf, size_t size);

/**
 * Write in a few words why this process may not use perf_event_open at all, as in "a seccomp filter refuses
 * perf_event_open", for callers that continue without it. Takes two probes; if only one event is refused, the words are
 * the errno's name and its usual meaning.
 * @err   the errno (positive); ENOBUFS: an mmap of a ring failed with EPERM, for the limit of locked memory.
 * @size  of buf, bytes.
 * Returns buf.
 */
char *csink_explain_brief(int err, char *buf, size_t size);

/** Returns an errno's name, such as "EACCES"; "errno" for an errno that perf_event_open(2) never gives. */
const char *csink_errno_name(int err);

#ifdef __cplusplus
}
#endif

#endif
