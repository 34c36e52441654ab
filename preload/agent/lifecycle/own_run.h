/*
 * A run directory that was inherited and cannot be used: the environment came from another machine (mpirun, srun), into
 * a container, or was kept from a run that is over. This process then owns a run of its own, as the first one does
 * where there is no launcher, and what it starts shares that.
 *
 * Not so where a launcher of this boot and pid namespace gave the directory: it names in its report what could not
 * record (after chroot, or with other credentials), or has ended, and nothing that starts afterwards belongs to its
 * run.
 */
#ifndef CSINK_OWN_RUN_H
#define CSINK_OWN_RUN_H

#include <stdbool.h>
#include <sys/types.h>

/** Why the inherited run directory cannot be used, in words; NULL: it can, there is none, or its launcher is here.
 * Context: init. */
const char *csink_own_run_is_due(void);

/** Is the inherited run directory one that cannot be used, and its launcher here? Then this process records nothing.
 * Context: init. */
bool csink_own_run_is_launchers(void);

/** May this process own a run in place of the one that it has inherited? False if it has inherited none. Context: init.
 */
bool csink_own_run_may_replace(void);

/** Change csink_config so that this process owns a run, without a directory yet. @why goes into the profile. Context:
 * init. */
void csink_own_run_begin(const char *why);

/**
 * Change csink_config so that a child that came to run as the run of its parent was collected owns a run, without a
 * directory yet. Its profile's name has the pid appended, as that of every process that goes on after the profile was
 * made. Context: init, in the child.
 */
void csink_own_run_of_child(void);

/** If the run's owner was @owner, which has ended without making the profile, this process owns it. Keeps errno.
 * Context: thread. */
void csink_own_run_take_over(pid_t owner);

#endif
