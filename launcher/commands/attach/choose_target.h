/* The targets of an attach, from its command line. */
#ifndef CSINK_CHOOSE_TARGET_H
#define CSINK_CHOOSE_TARGET_H

#include <stdbool.h>

#include "launcher/attach/attach_counters.h"
#include "launcher/attach/attach_target.h"
#include "launcher/base/options.h"

/**
 * Find the targets by --pid, --tid, --cgroup, a pattern for names or a command to start (counters->at_exec then): in
 * one way, and one only.
 * @is_command  the operands came after "--".
 * Returns 0 or -errno, which has been reported.
 */
int csink_attach_choose(const struct csink_options *options, int nr_operands, char **operands, bool is_command,
			struct csink_attach_target *target, struct csink_attach_counters *counters);

#endif
