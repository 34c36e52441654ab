/* Sending the profile of a run: by countersink-send, a program of its own, once the file is written. */
#ifndef CSINK_SEND_PROFILE_H
#define CSINK_SEND_PROFILE_H

#include <stdbool.h>

#include "launcher/base/options.h"
#include "launcher/session/inherited.h"

/**
 * Whether --send, if it is given, is an address that can be sent to, as far as that is known before the command runs;
 * what is wrong is reported. Returns 0 or -EINVAL. Context: init.
 */
int csink_send_check(const struct csink_options *o);

/**
 * Send the file that a profile is in, if --send is given, and wait until that is done or its time is over. What fails
 * is reported, and changes nothing else. @path  "": the profile is in no file. Context: init.
 */
void csink_send_profile(const struct csink_options *o, const char *path, const struct csink_inherited *inherited,
			bool is_quiet);

#endif
