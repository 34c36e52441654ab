/*
 * Names of output files by a template, with the letters that only the launcher has (%t, %j, %s, %n) beside those of
 * preload/core/record/output_path.h; and the names of slices of a run, of which old ones are removed. Context of
 * everything here: thread.
 */
#ifndef CSINK_SLICE_NAMES_H
#define CSINK_SLICE_NAMES_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "preload/core/record/output_path.h"

/**
 * Replace %t (UTC, 20261122T081500Z), %j (the batch job, else 0), %s (its step, else 0) and %n (how many ranks the
 * parallel job has, else 1) in a template; the rest is for csink_output_expand().
 * @time  for %t.
 * @pid   for %p; NULL: it stays.
 * @why   on failure, a phrase for people.
 * Returns 0, -EINVAL (another letter) or -ENAMETOOLONG.
 */
int csink_output_letters(const char *template, const char *time, const char *pid, char *out, size_t size, char *why,
			 size_t why_size);

/** A time as %t has it. */
void csink_output_time(uint64_t realtime_ns, char text[24]);

struct csink_slice_names {
	char pattern[PATH_MAX]; /* with marks for what differs from slice to slice */
	size_t name_at;         /* where the name of the file begins, behind its directory */
	bool has_time;          /* the template has %t: a number is added only where a file has that name */
	int32_t pid;
};

/**
 * Prepare the names of slices. A template without %t gets it, with a number that grows, before its ending:
 * redis.pb.gz becomes redis.20261122T081500Z.0007.pb.gz.
 * Returns 0, -EINVAL or -ENAMETOOLONG and why.
 */
int csink_slice_names_init(struct csink_slice_names *names, const char *template,
			   const struct csink_output_names *values, char *why, size_t why_size);

/**
 * The name of a slice.
 * @number    that it has; 0: none, where the template has %t.
 */
int csink_slice_names_make(const struct csink_slice_names *names, uint64_t realtime_ns, uint64_t number, char *out,
			   size_t size);

/** The number after those of all slices that are there; 1: there is none. */
uint64_t csink_slice_names_next(const struct csink_slice_names *names);

/**
 * Remove the oldest slices, so that at most so many, and so many bytes, are left; the newest one always stays. A file
 * is taken for a slice if it is a regular one of this user's with a name that the template can make, %p being any PID.
 * Where the template has %t, a file whose time is still to come is older than all others: the clock was set back.
 * @realtime_ns        now.
 * @keep, @keep_bytes  0: no bound.
 * Returns how many were removed.
 */
uint32_t csink_slice_names_keep(const struct csink_slice_names *names, uint64_t realtime_ns, uint64_t keep,
				uint64_t keep_bytes);

#endif
