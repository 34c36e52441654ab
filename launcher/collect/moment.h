/*
 * What the recordings of a run hold at one moment, copied while their processes write them. Nothing of the run is
 * changed. A recording only grows, so that the difference of two moments is what came between them.
 */
#ifndef CSINK_MOMENT_H
#define CSINK_MOMENT_H

#include <stdbool.h>
#include <stdint.h>

struct csink_moment;
struct csink_outside;
struct csink_profile;

/**
 * Copy the recordings in a run directory, and in those beside it.
 * @pid  of this process alone, as it calls itself; 0: of all.
 * Returns 0 and *out (csink_moment_free it), -ENOENT (there is no recording), -ENOMEM, or what opening the directory
 * gave. Context: thread.
 */
int csink_moment_take(const char *run_dir, int32_t pid, struct csink_moment **out);
void csink_moment_free(struct csink_moment *moment);

/**
 * The same for slices.
 * @former   the moment up to which slices were made, which hands on what it has of recordings that were removed; NULL:
 *           there is none.
 * @is_last  the run has ended, and csink_run_directory_mark() was called: what processes that go on have done since is
 *           in the profiles that they leave.
 * Without recordings -ENOENT is returned where there is no former moment.
 */
int csink_moment_take_after(const char *run_dir, const struct csink_moment *former, bool is_last,
			    struct csink_moment **out);

/** Let programs that go on use again what slices until this moment have: the times of samples. Context: thread. */
void csink_moment_give_back(const struct csink_moment *moment);

/**
 * Remove the recordings of programs that have ended, where there are at least so many: slices until this moment have
 * them. What later slices need of them is kept in the moment, and handed on by csink_moment_take_after().
 * Returns how many were removed. Context: thread.
 */
uint32_t csink_moment_take_ended(struct csink_moment *moment, uint32_t least);

/**
 * Store a moment in a file, from an offset to its end; and have it again, in another process of the same build.
 * Loading returns 0 and *out (csink_moment_free it), -EBADMSG (it is none, or is damaged), -ENOMEM or -errno; storing
 * 0 or -errno. Context: thread.
 */
int csink_moment_store(const struct csink_moment *moment, int fd, int64_t from);
int csink_moment_load(int fd, int64_t from, struct csink_moment **out);

/** When it was taken, and when the first of its processes started: ns of CLOCK_MONOTONIC. */
uint64_t csink_moment_ns(const struct csink_moment *moment);
uint64_t csink_moment_first_ns(const struct csink_moment *moment);

/** When the last of its processes was last seen to run, by its recording. */
uint64_t csink_moment_last_ns(const struct csink_moment *moment);

/** How many recordings it has, and how many are left out since they could not be read. */
uint32_t csink_moment_nr(const struct csink_moment *moment);
uint32_t csink_moment_nr_unread(const struct csink_moment *moment);

/**
 * Make the profile of what came between two moments of the same run, as csink_collect() does.
 * @before  NULL: all until now.
 * Returns 0 and *out (csink_profile_free it), or -ENOMEM. Context: thread.
 */
int csink_collect_between(const struct csink_moment *before, const struct csink_moment *now,
			  const struct csink_outside *outside, struct csink_profile **out);

/* What the comments of a slice's profile have about it. */
struct csink_slice {
	uint64_t number; /* in its run, from 1 */
	uint64_t start_realtime_ns, duration_ns;
	uint64_t run_start_realtime_ns;
	bool is_last;                        /* the run has ended */
	uint32_t nr_missed;                  /* slices before it that were not written: it has what they would have */
	const char *missed_why;              /* "": there was no time */
	const struct csink_outside *outside; /* its command and notes; of the last slice, also its totals */
	/* From a directory: what slices before have of outside's. */
	uint32_t former_processes, former_threads;
	const int64_t *former_sums; /* by type; NULL: of its counts nothing */
};

/**
 * Make the profile of a slice, of what came between two moments. Those of consecutive moments add up to the profile of
 * the whole run: CPU time that no sample has is given once its program has ended, since a later sample may have it, and
 * start-up in the first of them.
 * @before  the moment up to which slices were made; NULL: this is the first one.
 * @now     receives what the slices until now have; NULL in the last slice: nothing was recorded.
 * Returns 0 and *out (csink_profile_free it), or -ENOMEM. Context: thread.
 */
int csink_collect_slice(const struct csink_moment *before, struct csink_moment *now, const struct csink_slice *slice,
			struct csink_profile **out);

/**
 * The same from a directory with recordings of what came in a slice alone, of processes that are sampled from outside.
 * @slice  its outside has what was counted in it.
 */
int csink_collect_slice_directory(const char *directory, const struct csink_slice *slice, struct csink_profile **out);

#endif
