/*
 * From a run directory to a profile: reads every recording (as untrusted input), adds what was counted from outside,
 * and gives the symbolised profile that report, export, diff and gate work on.
 */
#ifndef CSINK_COLLECT_H
#define CSINK_COLLECT_H

#include <stdbool.h>
#include <stdint.h>

#include "include/internal/recording_format.h"
#include "launcher/base/message.h"

struct csink_profile;

/* One process of the tree as the kernel's own records name it (PERF_RECORD_COMM/FORK/EXIT). */
struct csink_outside_process {
	int32_t pid;
	int32_t ppid;
	char comm[16]; /* the latest */
	uint64_t cpu_ns;
	uint8_t has_cpu;       /* cpu_ns is known */
	uint8_t still_running; /* when the launcher looked last */
	uint8_t is_sampled;    /* from outside: by events that it inherited */
	uint8_t is_unseen;     /* is_sampled, to its end, and brief: no samples of its own count, but those of CPUs */
	uint64_t end_ns;       /* CLOCK_MONOTONIC: when its events ended; 0: not known */
	uint64_t ending_ns;    /* CPU time that was sampled after that, of the kernel: no count has it */
	uint8_t is_unwaited;   /* no process of the tree waited for it, or for one above it: wait4(2)'s times lack it */
	uint8_t reason;        /* enum csink_spawn_reason, 0 unknown: why it could not be injected */
};

/* Exact totals of the whole tree. A value that could not be measured has its has_ flag clear and is never printed as 0.
 */
struct csink_outside {
	uint64_t wall_ns, user_ns, sys_ns,
		max_rss_bytes; /* wait4(2) of the command: it and all its waited-for children */
	uint8_t has_rusage;
	uint8_t is_attached;           /* by attach or top: nothing comes from wait4(2) */
	uint64_t attached_cpu_ns;      /* what an event counted of its CPU time */
	int64_t attached_gap_ns;       /* > 0: what the kernel accounts beside that */
	uint8_t attached_gap_has_more; /* of switches and exits, which no event counts, and of what else none counted */
	uint32_t attached_processes, attached_threads;            /* 0: as many as there are recordings of */
	struct csink_rec_event attached_events[CSINK_MAX_EVENTS]; /* with a column, by column */
	uint32_t nr_attached_events;
	uint8_t has_counts; /* counts[] hold; else counts_reason says why not */
	char counts_reason[CSINK_WHY_BYTES];
	uint32_t nr_counts;
	struct {
		char name[64];
		char unit[16];
		uint64_t value, time_enabled_ns, time_running_ns; /* value is already scaled */
		int column; /* of attach, among attached_events; -1: none, or what samples have is not scaled as value
			       is */
	} counts[CSINK_MAX_EVENTS];
	struct csink_outside_process
		*processes; /* nr_processes of them, or NULL where the kernel refused the records */
	uint32_t nr_processes;
	/* The threads of those processes whose cpu_ns is known, that have ended: what the kernel counted of each. */
	struct csink_outside_thread {
		int32_t pid, tid;
		uint64_t cpu_ns;
	} * threads;
	uint32_t nr_threads;
	uint8_t samples_outside; /* processes of the run are being sampled from outside */
	uint8_t is_filtered;     /* not every process was to be profiled (--follow) */
	uint8_t has_alloc;       /* allocations were asked for */
	uint8_t has_lock;        /* waits for locks were */
	int command_status;      /* waitpid(2)'s */
	char event_reason[160];  /* the reason of csink_events_auto for its choice; "": the user chose */
	char command[256];       /* what was run, for the header */
	char **notes; /* nr_notes lines for the report's header (say: frequency clamped); owned by the caller */
	uint32_t nr_notes;
};

/**
 * Make a profile from the recordings in a run directory. Symbols, inlined frames and lines are resolved here.
 * @run_dir  the directory, NULL if there is none; recordings in it that are damaged are skipped, and named in the
 * profile's notes.
 * @outside  may be NULL: environment-only runs have no totals from outside.
 * Returns 0 and *out (csink_profile_free it), -ENOENT (no recording there and no outside totals), -ENOMEM or what
 * opening gave.
 */
int csink_collect(const char *run_dir, const struct csink_outside *outside, struct csink_profile **out);

/** Whether there are at least so many recordings in a directory. Context: thread. */
bool csink_collect_has_many(const char *directory, uint32_t least);

/* When the library began to sample a program. */
struct csink_collect_start {
	int32_t pid;
	uint64_t start_ns; /* CLOCK_MONOTONIC */
};

/*
 * The same in two steps, for a command that starts more processes than a directory in memory should hold recordings of:
 * begin, take now and then, finish.
 */
struct collector;

/** @outside is filled in later, before the end. NULL: no memory. */
struct collector *csink_collect_begin(const struct csink_outside *outside);

/**
 * Read the recordings of processes that are gone, and of programs that were replaced, and remove them. Does nothing
 * while there are fewer than @least. Returns how many it took, or -errno; what is left stays for later.
 */
int csink_collect_take(struct collector *c, const char *run_dir, uint32_t least);

/**
 * List when the library began to sample programs: those of which recordings were taken, or are there.
 * @c    NULL: nothing was taken.
 * @out  malloc'ed, in the order of PIDs and times; NULL without memory.
 * Returns how many. Context: thread.
 */
uint32_t csink_collect_starts(const struct collector *c, const char *run_dir, struct csink_collect_start **out);

/** As csink_collect, with what was taken. The collector is gone in any case. */
int csink_collect_finish(struct collector *c, const char *run_dir, struct csink_profile **out);

#endif
