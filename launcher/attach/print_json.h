/* An attach for programs. */
#ifndef CSINK_LAUNCHER_ATTACH_PRINT_JSON_H
#define CSINK_LAUNCHER_ATTACH_PRINT_JSON_H

#include "launcher/attach/follow.h"
#include "launcher/attach/target.h"

/** Print what was attached to and counted as one JSON object, on standard output. @profile  its path; "": none. */
void csink_attach_print_json(const struct csink_attach_target *target, const struct csink_attach_follow *follow,
			     const struct csink_outside *outside, const char *profile);

#endif
