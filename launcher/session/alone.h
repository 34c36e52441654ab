/*
 * What the launcher does where it cannot do its work: it leaves a few file descriptors for starting the command, and if
 * even that fails, the command takes its place.
 */
#ifndef CSINK_ALONE_H
#define CSINK_ALONE_H

#include <stdbool.h>

#include "launcher/session/inherited.h"

#define CSINK_SPARE_FDS 4

struct csink_spare_fds {
	int fds[CSINK_SPARE_FDS];
};

/** Reserve file descriptors while counters are opened. Returns whether there are that many; release them in any case.
 */
bool csink_spare_fds_take(struct csink_spare_fds *spare);
void csink_spare_fds_release(const struct csink_spare_fds *spare);

/**
 * Run the command in place of the launcher, as if it had been started without it. The caller has printed the reason.
 * @inherited  put back; NULL: nothing has been changed.
 * Returns only if that fails: -errno of execvp(3).
 */
int csink_run_alone(char **argv, const struct csink_inherited *inherited);

#endif
