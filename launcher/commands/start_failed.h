/* The command could not be started to be measured. */
#ifndef CSINK_START_FAILED_H
#define CSINK_START_FAILED_H

#include "launcher/session/alone.h"

/**
 * Print the reason and the remedy, and become the command without measuring it.
 * @err        what csink_spawn returned.
 * @inherited  as for csink_run_alone().
 * Returns only if that fails: -errno of execvp(3).
 */
int csink_start_failed(int err, char **argv, const struct csink_inherited *inherited);

#endif
