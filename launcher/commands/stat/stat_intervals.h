/*
 * What a command counts in each interval of its run: read on a fixed schedule, from the event loop that waits for the
 * command, and written at once.
 */
#ifndef CSINK_STAT_INTERVALS_H
#define CSINK_STAT_INTERVALS_H

#include <stdint.h>

#include "launcher/commands/stat/stat_result.h"

struct csink_stat_intervals;

/**
 * Start with a command that was started at start_ns (CLOCK_MONOTONIC). counters, argv and writer stay the caller's.
 * Returns 0, -ENOMEM or -errno of timerfd_create.
 */
int csink_stat_intervals_start(struct csink_stat_intervals **out, const struct csink_stat_counters *counters,
			       char **argv, struct csink_stat_writer *writer, uint64_t interval_ns, uint64_t start_ns);

/** Readable when csink_stat_intervals_run should be called. */
int csink_stat_intervals_fd(const struct csink_stat_intervals *intervals);

/** Write what is due. */
void csink_stat_intervals_run(struct csink_stat_intervals *intervals);

/** Write the last one, which is shorter, and free it all. Returns how many could not be read in time. */
int64_t csink_stat_intervals_end(struct csink_stat_intervals *intervals);

#endif
