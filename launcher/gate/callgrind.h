/*
 * Exact instruction counts for machines without counters: a run under valgrind's callgrind, whose output gives the
 * weights of functions. Other figures mean nothing there and are not taken.
 */
#ifndef CSINK_CALLGRIND_H
#define CSINK_CALLGRIND_H

#include "launcher/gate/series.h"

/**
 * Run the command of the run's side under callgrind, with all that it starts, and fill the run's weights in.
 * @directory  an empty one for callgrind's output.
 * Returns 0, -EINTR, -ECHILD or -errno, with series->error.
 */
int csink_gate_callgrind_run(struct csink_gate_series *series, struct csink_gate_run *run, const char *directory);

/**
 * Add a file that callgrind wrote to a run, and the objects that it names to the files of the run's side.
 * @why        on failure: a phrase.
 * Returns 0, -EBADMSG (not callgrind's), -ENOMEM or what opening gave.
 */
int csink_gate_callgrind_read(const char *path, struct csink_gate_functions *functions,
			      struct csink_gate_placement *placement, struct csink_gate_run *run, char *why,
			      size_t why_size);

#endif
