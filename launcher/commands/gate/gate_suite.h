/* `countersink gate --suite`: see gate_suite.c. */
#ifndef CSINK_GATE_SUITE_H
#define CSINK_GATE_SUITE_H

#include "launcher/commands/gate/gate_history.h"
#include "launcher/commands/gate/gate_result.h"
#include "launcher/commands/gate/gate_settings.h"

/** Were a suite's options given? */
bool csink_gate_is_suite(const struct csink_gate_settings *set);

/** Refuse options that exclude each other. Returns 0; -errno, and one line on stderr has the reason. */
int csink_gate_suite_check(const struct csink_gate_settings *set);

/** Run a suite and write its result. @result  what is the same for all cases. Returns what to exit with. */
int csink_gate_suite_run(struct csink_gate_settings *set, struct csink_gate_series *series,
			 const struct csink_gate_history *history, struct csink_gate_result *result);

#endif
