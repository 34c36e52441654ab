/*
 * How many killed runs were not kept in a place for run directories, because recordings of killed runs took more room
 * there than they may. A file of this user's in that place has the number.
 */
#ifndef CSINK_LOST_RUNS_H
#define CSINK_LOST_RUNS_H

#include <stdint.h>

/** Add to the number of the directory @place. Returns 0 or -errno: it could not be stored. Context: thread. */
int csink_lost_runs_add(const char *place, uint32_t nr);

/** The number for the place of a run directory; 0: none were lost. Context: thread. */
uint32_t csink_lost_runs(const char *run_dir);

#endif
