/* A launcher that the library starts, at the end of a program or for the recordings of killed ones. */
#ifndef CSINK_ENDED_RUN_H
#define CSINK_ENDED_RUN_H

/**
 * If this is one: remove from the environment, which is the program's, all COUNTERSINK_ variables for the library and
 * its run, but what is meant for this launcher: how much of a place to keep, and where to send a profile.
 * Context: init, before the environment is read.
 */
void csink_ended_run_begin(void);

#endif
