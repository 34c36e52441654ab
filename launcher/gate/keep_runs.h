/*
 * Profiles of several runs in one, the runs distinguished by a label: what a baseline file is made of, and what the
 * differential flame graph shows.
 */
#ifndef CSINK_KEEP_RUNS_H
#define CSINK_KEEP_RUNS_H

#include "launcher/gate/gate_functions.h"
#include "launcher/profile/profile.h"

/**
 * Add the samples of a run to a profile, with CSINK_LABEL_RUN and its number. The first run gives types and period;
 * of later ones the columns are found by name. Comments are those of all runs: what they count adds up. Threads and
 * processes are not kept apart. Returns 0, -ENOMEM or -EINVAL (to has samples, and a column of from is not among its
 * own).
 */
int csink_gate_keep(struct csink_profile *to, const struct csink_profile *from, uint32_t run);

#endif
