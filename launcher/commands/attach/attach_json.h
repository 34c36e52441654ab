/* An attach for programs. */
#ifndef CSINK_ATTACH_JSON_H
#define CSINK_ATTACH_JSON_H

#include "launcher/attach/attach_target.h"
#include "launcher/attach/follow.h"

/** Print what was attached to and counted as one JSON object, on standard output. @profile  its path; "": none. */
void csink_attach_print_json(const struct csink_attach_target *target, const struct csink_attach_follow *follow,
			     const struct csink_outside *outside, const char *profile);

#endif
