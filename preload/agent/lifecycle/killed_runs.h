/* Recordings of killed programs, for which no process has made a profile. */
#ifndef CSINK_KILLED_RUNS_H
#define CSINK_KILLED_RUNS_H

/**
 * Look for some in $COUNTERSINK_PLACE, in 8 directories at most, and have a helper make their profiles: at most one
 * helper a second for the same ones. Context: init, in the first process of a run, before anything is sampled.
 */
void csink_killed_runs_look(void);

#endif
