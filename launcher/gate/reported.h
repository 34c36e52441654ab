/*
 * Figures that a command reports of itself, such as the throughput that a benchmark prints: lines of a file that
 * COUNTERSINK_FIGURES names in the environment of each measured run.
 *
 *     NAME VALUE [UNIT [more|less]]        throughput 1234.5 requests/s more
 *
 * "more": more is better. Of equal names the last line counts.
 */
#ifndef CSINK_REPORTED_H
#define CSINK_REPORTED_H

#include "launcher/gate/series.h"

#define CSINK_GATE_FIGURES "COUNTERSINK_FIGURES"

/** An empty file for a run, which ends with its fd; its name is in the environment until csink_gate_reported_end().
 * Returns the fd or -errno. */
int csink_gate_reported_begin(void);
void csink_gate_reported_end(int fd);

/** Why no figure can have this name; NULL: it can. */
const char *csink_gate_reported_refuse(const char *name);

/* Another such reason. */
#define CSINK_GATE_REPORTED_TAKEN "a figure that is measured has this name"

/** Add what the lines of that file say to a run; a note for what cannot be used. Returns 0 or -ENOMEM. */
int csink_gate_reported_take(struct csink_gate_series *series, struct csink_gate_run *run, int fd);

#endif
