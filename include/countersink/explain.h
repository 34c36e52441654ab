/*
 * Why perf_event_open(2), or mmap(2) of its ring, failed: the cause, the field to blame, and what to do about it. One
 * errno of that call stands for up to 35 causes; which one it was is found by trying: from an event that opens, the
 * caller's attributes are put back one at a time, in the order in which the kernel checks them, and what makes it fail
 * is named.
 *
 * Nothing is allocated, printed or left open; fds are CLOEXEC and closed at once; probes are disabled events, so
 * nothing is counted and no signal can come. errno is kept. Any thread with 32 KiB of stack; not async-signal-safe.
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
	CSINK_CAUSE_UNKNOWN,     /* nothing that was tried changed the outcome */
	CSINK_CAUSE_NONE,        /* the same call works now */
	CSINK_CAUSE_SECCOMP,     /* a seccomp filter answered; the kernel was not reached */
	CSINK_CAUSE_NO_PERF,     /* the kernel was built without perf events */
	CSINK_CAUSE_PARANOID,    /* kernel.perf_event_paranoid, and the capability that overrules it is missing */
	CSINK_CAUSE_USER_NS,     /* the capability is there, but only in a user namespace */
	CSINK_CAUSE_LSM,         /* a security module or the lockdown mode */
	CSINK_CAUSE_NO_PMU,      /* no hardware PMU at all */
	CSINK_CAUSE_NO_EVENT,    /* the PMU, or the event, is not known to this kernel and CPU */
	CSINK_CAUSE_UNSUPPORTED, /* the event is there, but not with this feature */
	CSINK_CAUSE_BAD_VALUE,   /* a field's value is out of its range, or contradicts another field */
	CSINK_CAUSE_NEW_FIELD,   /* a field or bit that this kernel does not know yet */
	CSINK_CAUSE_LIMIT,    /* a limit of the process or the system: fds, locked memory, stack depth, sample rate */
	CSINK_CAUSE_RESOURCE, /* hardware that is used up or held by another event */
	CSINK_CAUSE_GROUP,    /* the event cannot be in this group */
	CSINK_CAUSE_TARGET,   /* the process, CPU or control group is not there, or is not ours to look at */
	CSINK_CAUSE_RETRY,    /* interrupted: call again */
	CSINK_CAUSE_CALLER,   /* a pointer or fd that the caller got wrong */
	CSINK_NR_CAUSES
};

/* A perf_event_open(2) that failed. attr as it was passed: after E2BIG the kernel has overwritten attr.size. */
struct csink_perf_call {
	const struct perf_event_attr *attr;
	pid_t pid;
	int cpu, group_fd;
	unsigned long flags;
};

struct csink_explanation {
	enum csink_cause cause;
	int err;          /* errno that this fault gives */
	char field[48];   /* "exclude_kernel", "sample_type: PHYS_ADDR", "pid" ...; "" where no field is to blame */
	char text[200];   /* the cause, for people; no full stop */
	char remedy[240]; /* what to do; "" where nothing can be done */
};

/* A call can have several faults, the kernel tells of the first only. */
#define CSINK_EXPLAIN_MAX 4

/**
 * Explain a failed perf_event_open.
 * @err  the errno it gave (positive).
 * @out  room for max explanations; out[0] is the fault that gave err, the rest come to light when it is mended.
 * Returns how many there are (at least 1).
 */
int csink_explain_open(const struct csink_perf_call *call, int err, struct csink_explanation *out, unsigned max);

/**
 * Explain a failed mmap of an event's ring.
 * @attr  of the event that fd is.
 */
void csink_explain_mmap(const struct perf_event_attr *attr, int fd, size_t bytes, int prot, int map_flags, int err,
			struct csink_explanation *out);

/** Write "ERRNO: text (field); remedy" as one line. Returns buf. */
char *csink_explain_print(const struct csink_explanation *explanation, char *buf, size_t size);

/**
 * Why perf_event_open is refused altogether in this process: a few words after which the caller goes on with something
 * else, as in "a seccomp filter refuses perf_event_open". Two probes; for a refusal of one event only, the errno's name
 * and its usual meaning. ENOBUFS stands for what mmap of a ring calls EPERM: the limit of locked memory. Returns buf.
 */
char *csink_explain_brief(int err, char *buf, size_t size);

/** The errno's name, "EACCES"; "errno" for one that perf_event_open does not give. */
const char *csink_errno_name(int err);

#ifdef __cplusplus
}
#endif

#endif
