/*
 * The counters of an attach: each event on each thread and each CPU, inherited by what the thread starts, its samples
 * going to the rings. Values are read from the same fds that sample.
 */
#ifndef CSINK_ATTACH_COUNTERS_H
#define CSINK_ATTACH_COUNTERS_H

#include "include/internal/event.h"
#include "launcher/collect/collect.h"
#include "launcher/session/rings.h"
#include "launcher/session/run_clocks.h"
#include "preload/api/pmc/targets.h"

#define CSINK_ATTACH_STACK_BYTES 16384     /* of the stack, from its top, that come with a sample */
#define CSINK_ATTACH_MAX_STACK_BYTES 65528 /* what the kernel copies at most */

/* How samples show their stacks. */
enum csink_attach_stacks {
	CSINK_ATTACH_COPY, /* registers and a copy of the stack */
	CSINK_ATTACH_FP,   /* the kernel walks by frame pointers */
	CSINK_ATTACH_LEAF, /* none */
};

struct csink_attach_event {
	struct csink_event_spec spec;
	bool samples;     /* else it is counted with its group's first, which samples */
	int err;          /* < 0: refused */
	char reason[320]; /* then why */
	int column;       /* of a sample's weights; -1: none */
	struct perf_event_attr attr;
};

/* The first event of a thread. It hangs up when the thread, and all that it started, have ended. */
struct csink_attach_lineage {
	int32_t pid, tid;
	int fd;
	bool ended;
};

struct csink_attach_counters {
	struct csink_attach_event events[CSINK_MAX_EVENTS];
	uint32_t nr_events, nr_columns;
	enum csink_attach_stacks stacks;
	bool has_read;   /* samples carry the counts of their group in their thread */
	bool has_period; /* they carry their period, which the kernel adapts for some of the events; else it is fixed */
	bool lacks_read; /* they should, but the kernel has none of what is inherited (before Linux 6.13) */
	bool inherit;    /* what the threads start is counted, too */
	bool at_exec;    /* off until the thread, or what it starts, executes a program */
	bool in_run; /* beside what run counts: no clocks of their own, and rings come later (csink_attach_counters_map)
		      */
	uint32_t stack_bytes; /* of the stack, from its top, that come with a sample; 0: CSINK_ATTACH_STACK_BYTES */
	bool no_rings; /* no memory for any: events are counted, nothing is sampled, and no records show which tasks
			  start and end */
	int cgroup_fd; /* >= 0: a control group instead of threads */
	struct csink_rings rings;
	struct csink_attach_fd {
		int fd;
		uint32_t event;
		uint64_t id;
		uint32_t source; /* 0, or a number that all events have that were opened together: images.h */
	} * fds;                 /* fd < 0: it is closed, and its last samples may still come */
	uint32_t nr_fds, cap_fds;
	struct csink_attach_lineage *lineages;
	uint32_t nr_lineages, cap_lineages;
	int anchor_fd;
	struct csink_clocks clocks;
};

/**
 * Find out on ourselves how the events open here, so that a refusal later is the target's.
 * The specs, period or frequency resolved, are in c->events; stacks, inherit, at_exec and cgroup_fd are set. Where too
 * little memory may be locked, stacks becomes less, or no_rings is set.
 * @less  what is less than was asked for, and why, for people; "" if nothing is.
 * Returns 0, or -errno where no event that samples opens; the reasons are with the events.
 */
int csink_attach_counters_init(struct csink_attach_counters *c, char *less, size_t size);

/**
 * Open all events on one thread (0: ourselves, with at_exec), or with cgroup_fd on every CPU (tid -1).
 * Returns 0, -ESRCH (it is gone), or -errno with *refused set to the event, which has the reason.
 */
int csink_attach_counters_open(struct csink_attach_counters *c, int32_t pid, int32_t tid,
			       struct csink_attach_event **refused);

/**
 * With in_run: map the rings, of at most so many bytes each. Returns 0; -ENOBUFS (no more memory may be locked) or
 * -errno: then there are none.
 */
int csink_attach_counters_map(struct csink_attach_counters *c, uint32_t most);

/**
 * Take an event that another process has opened on itself for a CPU: its samples go to that CPU's ring.
 * @fd  is closed where it cannot be taken.
 * @id  set to the event's.
 * Returns 0, -EINVAL (no such event or ring, or no event at all) or -errno.
 */
int csink_attach_counters_adopt(struct csink_attach_counters *c, int fd, uint32_t event, uint32_t cpu, uint32_t source,
				uint64_t *id);

/** Close an event; its samples that are in the rings are still found by its id, as those of a source. */
void csink_attach_counters_drop(struct csink_attach_counters *c, uint64_t id, uint32_t source);

/** Before they are opened: wake those that poll a ring at each sample. */
void csink_attach_counters_wake(struct csink_attach_counters *c);

/** All are open: make ready to find events by id. */
void csink_attach_counters_opened(struct csink_attach_counters *c);

/** CPU time that the events have counted until now; 0: none of them counts it. */
uint64_t csink_attach_counters_cpu_ns(const struct csink_attach_counters *c);

/** The first event of CPU time that is open, or -ENOENT: profiles have no column for it. */
int csink_attach_counters_cpu_event(const struct csink_attach_counters *c);

/** Stop counting; what was counted stays to be read. */
void csink_attach_counters_stop(struct csink_attach_counters *c);

/**
 * How many of the lineages go on; newly ended ones are marked. Without threads (control group): 1. With no_rings: how
 * many of the threads themselves, whatever they have started.
 */
uint32_t csink_attach_counters_living(struct csink_attach_counters *c);

/** Put what was counted into out->counts; what could not be counted is noted there. */
void csink_attach_counters_read(struct csink_attach_counters *c, struct csink_outside *out);

/**
 * The event of a sample's id, or NULL. The others of its group follow it in c->events.
 * @source  set to its source; may be NULL.
 */
struct csink_attach_event *csink_attach_counters_find(struct csink_attach_counters *c, uint64_t id, uint32_t *source);

void csink_attach_counters_free(struct csink_attach_counters *c);

#endif
