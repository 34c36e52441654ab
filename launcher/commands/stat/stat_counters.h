/*
 * The counters of `stat`: each event once for the whole tree of the command, from outside, by inheritance. Nothing is
 * in the command's processes, so any program can be counted, and costs what the kernel's own switching of counters
 * costs.
 *
 * Order: init; for each run open, fork the command, read as often as wanted, close.
 */
#ifndef CSINK_STAT_COUNTERS_H
#define CSINK_STAT_COUNTERS_H

#include <stdint.h>

#include "include/internal/event.h"
#include "launcher/session/run_clocks.h"

#define CSINK_STAT_MAX_EVENTS 32

enum csink_stat_state {
	CSINK_STAT_COUNTED,
	CSINK_STAT_NOT_SUPPORTED, /* it does not open: see the counter's reason */
	CSINK_STAT_NOT_COUNTED,   /* it opened, and never was on a counter */
};

/* What an event counted so far. Of one that did not count, value is 0 and means nothing. */
struct csink_stat_value {
	enum csink_stat_state state;
	uint64_t value; /* in the event's unit; scaled where it shared a counter */
	uint64_t raw;   /* as counted */
	uint64_t enabled_ns, running_ns;
};

/* The clocks of the events' CPU kinds at one moment. */
struct csink_stat_moment {
	struct csink_event_times clocks[CSINK_MAX_CLOCKS];
};

/* What the kernel says of them all, one after the other: nothing is scaled, and value is not set. */
struct csink_stat_reading {
	struct csink_stat_value values[CSINK_STAT_MAX_EVENTS];
	struct csink_stat_moment moments[CSINK_STAT_MAX_EVENTS + 1]; /* values[i] was read between i and i + 1 */
	uint32_t nr_clocks;
};

struct csink_stat_counter {
	struct csink_event_spec spec; /* as opened: USER_ONLY is in rec.flags if the kernel was left out */
	int *fds;                     /* one, or one for each CPU (stat_threads.h); -1: not open */
	uint32_t nr_fds;
	int err;          /* -errno of what did not open; 0: open */
	char reason[560]; /* then: why, what to do */
};

struct csink_stat_counters {
	struct csink_stat_counter counters[CSINK_STAT_MAX_EVENTS];
	uint32_t nr;
	struct csink_clocks clocks;
};

/** Take events over; nothing is opened yet. nr is at most CSINK_STAT_MAX_EVENTS. */
void csink_stat_counters_init(struct csink_stat_counters *counters, const struct csink_event_spec *specs, uint32_t nr);

/**
 * Can it be counted for processes, or "threads", at all? It cannot where its PMU counts whole CPUs, and where the
 * kernel would ignore its modifiers. Returns 0, or -EOPNOTSUPP with the counter's err and reason.
 */
int csink_stat_counter_check(struct csink_stat_counter *counter, const char *whom);

/** Open them on the caller, off until a child of its own execs. What is refused is remembered with its reason. */
void csink_stat_counters_open(struct csink_stat_counters *counters);

/** Read all counters, with what every process of the tree has counted so far. */
void csink_stat_counters_read(const struct csink_stat_counters *counters, struct csink_stat_reading *reading);

/**
 * What was counted until a reading, or between two, scaled by the time in which it could have been: enabled_ns of each
 * value is that.
 * @then    the earlier reading; NULL: since they were opened.
 * @values  one for each counter.
 */
void csink_stat_counters_since(const struct csink_stat_counters *counters, const struct csink_stat_reading *now,
			       const struct csink_stat_reading *then, struct csink_stat_value *values);

/** Scale what was counted by the time it had a counter. */
void csink_stat_value_scale(struct csink_stat_value *value, double unit_scale);

/** Remember why an event did not open. err: -errno. */
void csink_stat_counter_refuse(struct csink_stat_counter *counter, const struct perf_event_attr *attr, int cpu,
			       int group_fd, int err);

/** Close all. */
void csink_stat_counters_close(struct csink_stat_counters *counters);

#endif
