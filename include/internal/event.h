/*
 * From the name of an event to the perf_event_attr that opens it.
 *
 * The launcher parses what the user asked for, binds it to this machine's PMUs and hands it on with csink_events_print
 * in a form that needs no file to be read again; the injected library parses that. With the environment alone, the
 * library does all of it. Nothing here allocates; libpfm4 is loaded (dlopen, RTLD_LOCAL) only for a name that none of
 * the cheaper sources knows.
 *
 * A list is events separated by commas; {a,b} is a group that the kernel counts together or not at all. An event is
 *
 *     cycles, task-clock, page-faults    one of perf's generic names (csink_events_generic)
 *     L1-dcache-load-misses              a cache, an operation, a result
 *     r1c2                               a raw code, in hexadecimal
 *     cpu/event=0x3c,umask=1/            fields that PMU/format in sysfs names, or one of PMU/events; known to
 *                                        all: config= config1= config2= name= period= freq=
 *     #4/config=0x3c,name=x/             the same, with the PMU's type for its name: no file is read
 *     sched:sched_switch                 a tracepoint
 *     INST_RETIRED:ANY_P                 anything that libpfm4 knows, with its attributes
 *
 * and modifiers after a ':' (u k h G H I: where to count; p pp ppp: less skid; D: pinned; e: exclusive), or the long
 * ones: pinned, excl, period=N, freq=N, precise=N.
 */
#ifndef CSINK_INTERNAL_EVENT_H
#define CSINK_INTERNAL_EVENT_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "include/internal/nearest.h"
#include "include/internal/recording_format.h"

struct csink_event_spec {
	/*
	 * Ready to be written to a recording: name, unit, type, config; flags of CPU_NS and USER_ONLY. The caller adds
	 * LEADER, IMPLIED, REFUSED, SCALED. period is what the event asks for in events (ns for clocks), 0 for nothing.
	 */
	struct csink_rec_event rec;
	/*
	 * size, type, config*, exclude_*, precise_ip, pinned, exclusive; and sample_period, or freq and sample_freq,
	 * where the event's own text asks for them. Everything else is 0, the caller's to set.
	 */
	struct perf_event_attr attr;
	uint8_t braced;          /* it stands in {}, alone or with others: csink_events_plan leaves it where it is */
	uint32_t group;          /* equal in the members of one {group}, which are neighbours; from 0, ascending */
	uint32_t offset, length; /* where it stands in the list that was parsed */
	double scale;            /* count * scale is in rec.unit; 1 nearly always */
	char pmu[32];            /* its name in sysfs, "" where it was not looked up */
	char cpus[64];           /* the PMU belongs to these CPUs only (hybrid: counts only there), "" all */
	uint8_t cpu_wide;        /* the PMU counts whole CPUs or packages: pid must be -1, and cpu one of cpus */
};

struct csink_event_error {
	int err;                 /* -errno, as returned */
	uint32_t offset, length; /* of the offending part of the list; length 0: its end */
	char line[640];          /* what, why, nearest names; no newline */
};

/* Where PMUs and tracepoints are described; tests have their own. NULL members mean the defaults. */
struct csink_event_roots {
	const char *devices; /* /sys/bus/event_source/devices */
	const char *tracefs; /* /sys/kernel/tracing, else /sys/kernel/debug/tracing */
};

/**
 * Parse a list of events.
 * @list  as above. "auto" is the caller's to resolve first (csink_events_auto).
 * @err   set on failure; may not be NULL.
 * Returns the number of events (at least 1), or -EINVAL (syntax, value out of range), -ENOENT (no such event, PMU,
 * field or tracepoint), -E2BIG (more than max), -EACCES (tracefs is not readable for this user), -EOPNOTSUPP (the
 * modifier means nothing for this event).  Generic, cache, raw and # events: no file touched, no syscall, < 1 us each.
 * Context: init, thread. Touches nothing shared, save for libpfm4's own state (loaded once; not for two threads at
 * once).
 */
int csink_events_parse(const char *list, struct csink_event_spec *out, uint32_t max, struct csink_event_error *err);

/** The same, with PMUs and tracepoints looked up elsewhere. Context: init, thread. */
int csink_events_parse_at(const struct csink_event_roots *roots, const char *list, struct csink_event_spec *out,
			  uint32_t max, struct csink_event_error *err);

/**
 * Bind generic and raw events to this machine's PMUs. On a hybrid machine (several core PMUs: cpu_core and cpu_atom,
 * or two ARM clusters) each such event becomes one for each PMU, named pmu/name/; elsewhere nothing changes.
 * @nr  events in specs, of room for max.
 * Returns the new number of events, or -E2BIG and *err. Reads sysfs. Context: init, thread.
 */
int csink_events_bind(const struct csink_event_roots *roots, struct csink_event_spec *specs, uint32_t nr, uint32_t max,
		      struct csink_event_error *err);

/** Does the event's PMU count on this CPU? Elsewhere the event cannot be opened for a CPU alone. Context: any. */
bool csink_event_is_on(const struct csink_event_spec *spec, uint32_t cpu);

/** Does the kernel itself count it, as it happens? Context: any. */
static inline bool csink_event_is_kernel_counted(const struct csink_event_spec *spec)
{
	return spec->attr.type == PERF_TYPE_SOFTWARE || spec->attr.type == PERF_TYPE_TRACEPOINT ||
	       spec->attr.type == PERF_TYPE_BREAKPOINT;
}

/** Does the hardware count it? The kernel counts uprobes and kprobes, too. Context: any. */
bool csink_event_is_hardware(const struct csink_event_spec *spec);

/** Does it take one of a CPU's counters? Anything but software events, tracepoints and what counts whole CPUs. Context:
 * any. */
bool csink_event_takes_counter(const struct csink_event_spec *spec);

/** Are they the same event of two kinds of CPU: cpu_core/cycles/ and cpu_atom/cycles/? Context: any. */
bool csink_event_is_counterpart(const struct csink_event_spec *a, const struct csink_event_spec *b);

/* How long an event was enabled for some tasks, and how much of that it counted. Of several fds of the same tasks, one
 * for each CPU, enabled_ns is their mean, running_ns their sum. */
struct csink_event_times {
	const struct csink_event_spec *spec;
	uint64_t enabled_ns, running_ns;
	bool is_clock; /* a software event, in no hardware event's group: it measures the time (of spec's cpus) */
};

/**
 * How long an event could have run, had it never had to wait for a counter: its count is to be scaled by this over its
 * running_ns. An event of one kind of CPU is enabled on the others as well, where there is nothing for it to count:
 * that is no time in which it could have run.
 * @times  of all events that were on and off together, for the same tasks, with what clocks there are. With a clock of
 *         its kind of CPU, or of all CPUs where it counts on all, the answer is exact. Else the time of all is shared
 * out as the events of the kinds ran, which takes these to have waited alike, and to be all kinds that there are; and
 * where they are of one kind, an event could have run as long as the one that ran longest. Returns ns, not less than
 * running_ns; of an event that never ran, the time that it was enabled. Context: any.
 */
uint64_t csink_event_could_run_ns(const struct csink_event_times *times, uint32_t nr, uint32_t i);

/**
 * Does a modifier ask for what the kernel would ignore without an error, so that the event counted 0 or something else?
 * Returns 0, or -EOPNOTSUPP and *why, a text that names no event. May look at sysfs. Context: init, thread.
 */
int csink_event_check(const struct csink_event_spec *spec, const char **why);

/**
 * The same of an event that takes no samples: of these, :u has a meaning for clocks, too (where they are taken).
 * Context: init, thread.
 */
int csink_event_check_count(const struct csink_event_spec *spec, const char **why);

/**
 * An event was counted for a while, and it is 0. May that be because the CPU does not have it? Of the codes that each
 * CPU has for its own, an ARM CPU does not say which it counts; the kernel opens them all, and the others stay 0.
 * @why  set to what people should know, beginning with "is 0, "; 240 bytes are enough.
 * Returns whether there is anything to say. May load libpfm4. Context: init, thread.
 */
bool csink_event_doubt_zero(const struct csink_event_spec *spec, char *why, size_t size);

/** csink_event_check of several, the first one to blame in *err. Context: init, thread. */
int csink_events_check(const struct csink_event_spec *specs, uint32_t nr, struct csink_event_error *err);

/**
 * The shortest period at which sampling leaves a program time of its own. A hardware event of which it is unknown how
 * fast it comes is counted for some microseconds on the caller, if the period that is asked for is short.
 * @asked     the period, in events.
 * @measured  set to whether the answer was measured, not assumed.
 * Returns a number of events; 0: any will do. Clocks are not counted. Context: init, thread.
 */
uint64_t csink_event_shortest_period(const struct csink_event_spec *spec, uint64_t asked, bool *measured);

struct csink_perf_call;
struct csink_explanation;

/** csink_explain_open for an event of a list: of what happens in the kernel only, it is no remedy to leave that out.
 * Context: init, thread. */
void csink_event_explain(const struct csink_event_spec *spec, const struct csink_perf_call *call, int err,
			 struct csink_explanation *why);

/**
 * See that each {group} can be counted at once on this machine's counters, even if other events hold them now: each is
 * opened, disabled, and closed again. Returns 0, also where an event cannot be opened for another reason; or -E2BIG and
 * *err, which names what fits and what does not. Context: init, thread.
 */
int csink_events_fit(const struct csink_event_spec *specs, uint32_t nr, struct csink_event_error *err);

/**
 * What a command line asks for, on this machine: parse a list, bind it to the PMUs, and see that it means something
 * (csink_events_check), that its groups can be counted (csink_events_fit) and that there are no more than max events.
 * @max  less than CSINK_PLAN_MAX_EVENTS.
 * Returns the number of events, or -errno of those and *err; of too many events it names those that fit and those that
 * do not. Context: init, thread.
 */
int csink_events_take(const char *list, struct csink_event_spec *specs, uint32_t max, struct csink_event_error *err);

/**
 * Decide which events are sampled together: each group's first event samples, the others are counted with it. A {group}
 * is as the user wrote it. Of the other events, the first one leads a group that the rest join, as far as they fit on
 * the counters beside each other, and as far as they do not say themselves how often they are to be sampled (period,
 * freq); those that do not join lead groups of their own. Afterwards all are braced, and in the order of their groups.
 * @nr  at most CSINK_PLAN_MAX_EVENTS.
 * Returns 0, -E2BIG and *err as csink_events_fit does, or -EINVAL (nr). Opens events only where several take counters.
 * Context: init, thread.
 */
#define CSINK_PLAN_MAX_EVENTS 32
int csink_events_plan(struct csink_event_spec *specs, uint32_t nr, struct csink_event_error *err);

/**
 * Write events as a list that csink_events_parse reads back, to equal attrs, names and groups, with no file touched.
 * Returns the length, or -ENOSPC. Context: any.
 */
int csink_events_print(const struct csink_event_spec *specs, uint32_t nr, char *buf, size_t size);

/**
 * The event to sample when none is named: cycles where a PMU opens and counts, else task-clock.
 * @reason  one line for people that names the event and says why; at least 160 bytes.
 * Always succeeds; whether task-clock itself opens is for the caller to find out. Opens and closes an fd (CLOEXEC).
 * Context: init, thread.
 */
void csink_events_auto(struct csink_event_spec *out, char *reason, size_t size);

/**
 * Leave the kernel out, as perf_event_paranoid 2 asks of unprivileged users: exclude_kernel, exclude_hv,
 * exclude_callchain_kernel and CSINK_EVENT_USER_ONLY. Context: any.
 */
void csink_event_set_user_only(struct csink_event_spec *spec);

/** Does it happen in the kernel only, or is it asked to count there only (:k)? With the kernel left out it counts 0,
 * whatever went on. Context: any. */
bool csink_event_is_kernels_own(const struct csink_event_spec *spec);

/* One of perf's generic names. */
struct csink_event_generic {
	char name[24];  /* no pointers: the loader would have to relocate each of them in every program */
	char alias[21]; /* "": none */
	uint8_t type;
	uint8_t config;
};

/** The table of generic names; *nr is set to its length. Context: any. */
const struct csink_event_generic *csink_events_generic(uint32_t *nr);

/** What a row of that table counts, in words. Context: any. */
const char *csink_event_generic_help(const struct csink_event_generic *generic);

/* What users read of sigtrap, remove_on_exec and inherit_thread on an older kernel. */
#define CSINK_SINCE_5_13 "needs Linux 5.13"

/** perf_event_open(2); returns the fd or -errno (errno itself is kept). Context: any. */
int csink_perf_open(const struct perf_event_attr *attr, int32_t pid, int32_t cpu, int32_t group_fd, uint64_t flags);

/** An event that counts nothing, of user space, disabled: the least that may be opened. Context: any. */
static inline struct perf_event_attr csink_perf_least(void)
{
	return (struct perf_event_attr){.type = PERF_TYPE_SOFTWARE,
					.size = sizeof(struct perf_event_attr),
					.config = PERF_COUNT_SW_DUMMY,
					.disabled = 1,
					.exclude_kernel = 1,
					.exclude_hv = 1};
}

#endif
