/*
 * What is long goes through a pager, as git does it: on a terminal only; $COUNTERSINK_PAGER, else $PAGER, else less,
 * which gets LESS=FRX unless LESS is set: it ends by itself where all fits. "" and "cat" mean none.
 */
#ifndef CSINK_PAGER_H
#define CSINK_PAGER_H

/** Send standard output through the pager from now on. Where it cannot be started, all goes to the terminal. Context:
 * main, before output. */
void csink_pager_start(void);

/**
 * Close standard output and wait for the pager. Nothing, if there is none.
 * @err  what printing ended with, 0 or -errno.
 * Returns it; 0, if the pager was left early: the rest is not wanted.
 */
int csink_pager_end(int err);

#endif
