/*
 * One thread's counters: a perf group whose leader samples, with a one-page ring, and no fd left open. The mapping
 * keeps the events alive; the fds are closed before the program can see them. A thread has as many groups as the
 * process planned; an event is in one of them at most, so that all of a thread's pages are fewer than two for each
 * event.
 *
 * Opened, paused and closed by the thread itself; the ring is read by the thread's own signal handler.
 */
#ifndef CSINK_GROUP_H
#define CSINK_GROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "include/internal/event.h"

struct perf_event_mmap_page;

struct csink_group {
	struct perf_event_mmap_page
		*pages[CSINK_MAX_EVENTS]; /* user pages; the leader's has the ring behind it; NULL: not open */
	uint64_t mask;                    /* of the ring's offsets */
	uint64_t base[CSINK_MAX_EVENTS];  /* counted by what was open here before */
	uint64_t rate;                    /* its leader's sample_period, or sample_freq, as it was opened */
	uint8_t members;                  /* bit i: event i; 0: none was ever open */
	uint8_t leader;
	bool elsewhere; /* opened by another task: prctl(2) does not reach it */
};

enum csink_group_signal {
	CSINK_GROUP_SIGTRAP, /* attr.sigtrap */
	CSINK_GROUP_SETSIG,  /* F_SETSIG to the opening thread */
};

/* The records of the ring since it was last read. */
struct csink_group_read {
	uint64_t nr_overflows;
	uint64_t lost;      /* records the kernel dropped */
	uint64_t throttled; /* times the kernel stopped the event for a while */
	uint64_t time_ns;   /* CLOCK_MONOTONIC of the latest overflow */
	uint64_t enabled_ns, running_ns;
	uint64_t counts[CSINK_MAX_EVENTS]; /* at the latest overflow, as counted (not scaled) */
};

/** sig_data of the agent's events, to distinguish their SIGTRAP from others. */
#define CSINK_GROUP_SIG_DATA 0x636e6b73696e6bULL

/* What opening is given. */
struct csink_group_open {
	const struct csink_event_spec *events;
	uint8_t members; /* bit i: events[i] is in it; not 0 */
	uint8_t leader;  /* the one that samples */
	enum csink_group_signal how;
	int signo;   /* for SETSIG */
	int32_t tid; /* the calling thread */
	void *stack; /* for a thread of ours that opens (fd_guard.h); NULL: there is but one thread, it needs none */
	size_t stack_bytes;
};

/**
 * Open and enable the calling thread's group.
 * @failed  set on error to the index of the event that could not be opened.
 * Returns 0 or -errno of perf_event_open, mmap (-ENOBUFS: the mlock limit) or fcntl; nothing stays open on error.
 * Context: thread.
 */
int csink_group_open(struct csink_group *group, const struct csink_group_open *open, uint32_t *failed);

_Static_assert(CSINK_MAX_EVENTS <= 8, "members is a byte");

static inline bool csink_group_is_open(const struct csink_group *group)
{
	return group->members && group->pages[group->leader];
}

/**
 * Unmap, which frees the events; what they counted is added to base. Signals that were pending are delivered
 * before this returns.
 * It is how groups are stopped: no fd is left, and prctl(PR_TASK_PERF_EVENTS_DISABLE) also stops events that the
 * program opened in this thread, whose state could not be restored (csink_engine_pause has the exception).
 * Context: thread.
 */
void csink_group_close(struct csink_group *group);

/** Read what the ring holds. Returns false if it held no overflow. Context: signal. No syscall. */
bool csink_group_drain(struct csink_group *group, struct csink_group_read *out);

/**
 * Count of one event: exact where user space may read the counter; else as its user page has it, which is exact when
 * the thread was last switched out. Context: signal. No syscall.
 */
uint64_t csink_group_page_count(const struct csink_group *group, uint32_t event);

/** Whether csink_group_page_count may not be exact now for one of @events (bit i: event i). Context: signal. No
 * syscall. */
bool csink_group_page_is_behind(const struct csink_group *group, uint32_t events);

/**
 * How long the group has had its counters since it was opened, as its leader's user page has it: exact while it has
 * none, as on a kind of CPU that its events are not of; 0 if it is not open. Context: signal. No syscall.
 */
uint64_t csink_group_page_running_ns(const struct csink_group *group);

#endif
