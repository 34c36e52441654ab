/*
 * A run whose profile is written in slices while it goes on. A slice is what came between two moments of the recordings
 * (launcher/collect/moment.h), so that nothing is asked of the programs. They are written by a process of their own,
 * which writes a last one if the launcher is killed; one that could not be written leaves its time to the next. Context
 * of everything here: thread.
 */
#ifndef CSINK_SLICES_H
#define CSINK_SLICES_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "launcher/base/options.h"
#include "launcher/collect/moment.h"
#include "launcher/collect/run_directory.h"
#include "launcher/session/slice_clock.h"
#include "launcher/session/slice_names.h"

/* Rows of the commands that can write slices. */
#define CSINK_SLICES_OPTIONS(X)                                                                                        \
	X(ROTATE, 0, "SECONDS", "", CSINK_OPT_SECONDS | CSINK_OPT_UNITS,                                               \
	  "write a profile of each such time (60s, 5m, 1h) while the run goes on: slices; samples 97 times a second")  \
	X(KEEP, 0, "N", "24", CSINK_OPT_NUMBER | CSINK_OPT_ZERO,                                                       \
	  "with --rotate: how many slices are kept; the oldest are removed; 0: all")                                   \
	X(KEEP_BYTES, 0, "BYTES", "0", CSINK_OPT_BYTES | CSINK_OPT_ZERO,                                               \
	  "with --rotate: how many bytes of slices are kept (K, M, G); 0: no limit")

struct csink_profile;

struct csink_slices {
	/* Set by the caller. */
	char run_dir[CSINK_RUN_DIRECTORY_PATH]; /* of the recordings; "": there are none */
	struct csink_slice_names names;
	struct csink_slice_clock clock; /* slice_ns */
	uint64_t keep, keep_bytes;      /* 0: no bound */
	struct csink_outside *outside;  /* the run's description, and at its end its totals */
	/* Send a slice that is written, in a process of its own; returns as csink_send_profile(). May be NULL. */
	int (*on_written)(void *arg, const char *path);
	void *arg;
	bool is_stored; /* what the next slices need is kept in run_dir, for a process that goes on with them */

	/* Of the launcher, and in the end what came of it. */
	int fd; /* to the process that writes slices, and in that one to the launcher; -1: there is none */
	pid_t writer;
	struct csink_slices_answer {
		int err; /* of the last slice, which has been reported */
		uint64_t nr_written, nr_removed;
		uint64_t nr_taken;        /* recordings that are no longer there: slices alone have them */
		char last_path[PATH_MAX]; /* before the run: the first one's */
	} answer;

	/* Of that process. */
	int timer_fd;
	uint64_t next_number;
	uint64_t run_start_realtime_ns, start_monotonic_ns, start_realtime_ns; /* start: of the slice that goes on */
	uint64_t named_ns;                                                     /* that its name has */
	uint64_t next_start_realtime_ns, next_named_ns;                        /* of the one after it */
	uint32_t nr_missed;                                                    /* before it, whose time it has */
	char missed_why[200];
	bool is_failing; /* that has been reported */
	bool is_ending;  /* the last slice is written */
	struct csink_slices_server {
		bool is_away;        /* which has been reported */
		uint64_t reached_ns; /* CLOCK_MONOTONIC: when it took a slice last */
	} * server;                  /* shared with the processes that send; NULL: each is reported */
	struct csink_moment *base;   /* that the slices until now reach to; NULL: none yet */
};

/**
 * Do the options ask for slices?
 * @row  of --rotate in their table.
 * Returns 1, 0, or -EINVAL: an option was given that needs --rotate, which has been reported.
 */
int csink_slices_wanted(const struct csink_options *o, uint32_t row);

/**
 * Find out what the options ask for: names, length and bounds; the first slice's name is in answer.last_path.
 * @row, @output  of --rotate and of --output in their table: what is wrong with them is reported.
 * Returns 1, 0 (no slices), or -EINVAL.
 */
int csink_slices_resolve(struct csink_slices *slices, const struct csink_options *o, uint32_t row, uint32_t output,
			 const char *command, int32_t pid);

/** Is the timer engine the better one at a rate? Where no PMU's event samples, and the kernel's tick is twice as often.
 */
bool csink_slices_prefer_timer(uint64_t frequency);

/**
 * The run begins: start the process that writes slices. It is called before events are opened that children inherit,
 * and when signals are blocked. Returns 0 or -errno; then all of the run is in the last slice.
 */
int csink_slices_begin(struct csink_slices *slices);

/**
 * The run has ended, and its recordings are complete: have the last slice written, elsewhere where its place cannot be
 * written. Returns 0, or -errno: that has been reported.
 */
int csink_slices_finish(struct csink_slices *slices);

/** Are the recordings of the whole run there, to be reported? If not, a message is printed. */
bool csink_slices_has_whole(const struct csink_slices *slices);

/** Say how many there are, and which is the last one. */
void csink_slices_say(const struct csink_slices *slices);

/** The command was not run: nothing is written. */
void csink_slices_cancel(struct csink_slices *slices);

/*
 * The parts of it, for a command that takes what came in a slice from elsewhere. The structure may be in memory that is
 * shared with the process that writes.
 */

/** The run begins: its first slice, and the end of that. */
void csink_slices_start(struct csink_slices *slices);

/** Set timer_fd to the end of the slice that goes on. Returns 0 or -errno. */
int csink_slices_arm(const struct csink_slices *slices);

/** That end: write what came in the slice, from the recordings in run_dir. Without those nothing happens. */
void csink_slices_cut(struct csink_slices *slices);

/**
 * The run has ended: write the last slice, elsewhere where its place cannot be written.
 * @was_killed  it ended when the last of its processes was last seen, and not now.
 * Returns as csink_slices_finish().
 */
int csink_slices_end(struct csink_slices *slices, bool was_killed);

/** The slice that goes on, up to a moment of CLOCK_MONOTONIC. */
struct csink_slice csink_slices_describe(const struct csink_slices *slices, uint64_t end_ns, bool is_last);

/** Write a slice under its name, and remove what is too old. Returns 0, -errno or a negative csink_outfile_errno. */
int csink_slices_write(struct csink_slices *slices, const struct csink_profile *profile);

/** The same of the last one: elsewhere where its place cannot be written. What fails is reported. */
int csink_slices_write_last(struct csink_slices *slices, const struct csink_profile *profile);

/**
 * Count ends of slices that passed while one was written, or the machine slept.
 * @former_ns  the clock's due_ns before csink_slice_clock_next().
 */
void csink_slices_count_missed(struct csink_slices *slices, uint64_t former_ns);

/** A slice could not be written: report it, once, and have the next one say that it has its time. */
void csink_slices_miss(struct csink_slices *slices, int err);

#endif
