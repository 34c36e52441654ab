/*
 * The search for the field that makes perf_event_open fail: shared by the files explain_open.c (the order of the
 * steps), explain_rows.c (attributes, as a table), explain_event.c (which event), explain_target.c (on which target, in
 * which group) and explain.c (words).
 *
 * A probe starts as the least event there is, and takes over the caller's values step by step. A step that fails is a
 * fault; it is noted and left out, and the search goes on, so that faults behind it come to light too.
 */
#ifndef CSINK_EXPLAIN_PROBE_H
#define CSINK_EXPLAIN_PROBE_H

#include <stdbool.h>

#include "include/internal/base.h"
#include "include/internal/event.h"
#include "preload/core/perf_system.h"

#define CSINK_PROBE_MAX_FAULTS 16
#define CSINK_ATTR_MAX_SIZE 4096 /* the kernel takes at most a page */

/* A copy of the caller's attr: the kernel writes into attr.size, and what the caller has is not ours to change. */
union csink_attr_copy {
	struct perf_event_attr attr;
	char bytes[CSINK_ATTR_MAX_SIZE + 8];
};

struct csink_probe {
	const struct csink_perf_call *call;
	const union csink_attr_copy *passed; /* call->attr */
	struct csink_perf_system system;
	struct perf_event_attr want; /* the caller's attr, as far as this build knows it; size is our own */
	/* What is tried now. */
	struct perf_event_attr attr;
	pid_t pid;
	int cpu, group_fd;
	unsigned long flags;
	bool fds_full;   /* no fd is left, so EMFILE means that every check before it was passed */
	bool no_event;   /* the event itself is a fault: what follows is tried with the dummy in its place */
	bool whole_cpus; /* the event counts whole CPUs, so pid and cpu have been taken over with it */
	uint32_t nr_probes;
	uint32_t nr_faults;
	struct csink_explanation faults[CSINK_PROBE_MAX_FAULTS + 1]; /* the last takes what is one too many */
};

/** Open what the probe holds now, and close it. Returns 0 (it opens) or the errno, positive. */
int csink_probe_try(struct csink_probe *probe);

/** Note a fault; the caller goes on to describe what is returned. field may be NULL. */
struct csink_explanation *csink_probe_fault(struct csink_probe *probe, int err, enum csink_cause cause,
					    const char *field);

/** Note a fault and describe it. */
__attribute__((format(printf, 6, 7))) void csink_probe_blame(struct csink_probe *probe, int err, enum csink_cause cause,
							     const char *field, const char *remedy, const char *fmt,
							     ...);

/** Describe a fault: whose field (NULL: as it is), what to do, and in fmt what is wrong. */
__attribute__((format(printf, 5, 6))) void csink_explain_as(struct csink_explanation *out, enum csink_cause cause,
							    const char *field, const char *remedy, const char *fmt,
							    ...);
/** Set a remedy that has figures. */
__attribute__((format(printf, 2, 3))) void csink_explain_remedy(struct csink_explanation *out, const char *fmt, ...);

/* What a refusal means. */
struct csink_verdict {
	const char *field; /* of which fields: a pattern of fnmatch(3) */
	int err;           /* 0: whatever the errno */
	enum csink_cause cause;
	const char *text, *remedy;
	int level; /* of CSINK_CAUSE_PARANOID: text and remedy are csink_explain_permission's what and avoid */
	void (*detail)(const struct csink_probe *probe, struct csink_explanation *out); /* says it all, with figures */
};

/** The first verdict that fits a field and an errno; NULL: there is none. */
const struct csink_verdict *csink_verdict_find(const struct csink_verdict *verdicts, size_t nr, const char *field,
					       int err);

/** Note a fault, as a verdict has it. */
void csink_probe_judge(struct csink_probe *probe, int err, const char *field, const struct csink_verdict *verdict);

/** The size of the attr. */
void csink_probe_size(struct csink_probe *probe);
/** Attributes that are checked before the event is looked at. */
void csink_probe_rows_before(struct csink_probe *probe);
/** type and config. */
void csink_probe_event(struct csink_probe *probe);
/** Attributes that the event's PMU has a say in. */
void csink_probe_rows_after(struct csink_probe *probe);
/** flags, pid, cpu. */
void csink_probe_target(struct csink_probe *probe);
/** group_fd, and what only matters in a group. */
void csink_probe_group(struct csink_probe *probe);

/** Add the remedy to what csink_explain_refusal() has found. */
void csink_explain_refusal_remedy(struct csink_explanation *refusal);

/** A permission that needs perf_event_paranoid <= level is missing (level -2: a capability only). what: the thing
 * asked. */
void csink_explain_permission(const struct csink_perf_system *system, int level, const char *what, const char *avoid,
			      struct csink_explanation *out);

#endif
