/* Writing a gate's result to where the options, and GitHub, say: cmd_gate_print.c, for cmd_gate.c. */
#ifndef CSINK_CMD_GATE_PRINT_H
#define CSINK_CMD_GATE_PRINT_H

#include "launcher/commands/gate/gate_result.h"
#include "launcher/commands/gate/gate_settings.h"

struct csink_html_side;

/** Before minutes are spent on what could not be kept: can all of it be written? If not, a line on stderr has reported
 * what. */
bool csink_gate_can_tell(const struct csink_gate_settings *s);

/**
 * Write the result in all its formats. An output that cannot be written is reported on stderr, together with the
 * verdict.
 * @series  gives its notes, and takes some.
 * @sides   of the differential flame graph; those without a profile give none.
 * Returns what to exit with.
 */
int csink_gate_tell(const struct csink_gate_settings *s, struct csink_gate_series *series,
		    const struct csink_html_side *sides, struct csink_gate_result *r);

#endif
