/* Sending a profile: by countersink-send, a program of its own, once the file is written. */
#ifndef CSINK_SEND_PROFILE_H
#define CSINK_SEND_PROFILE_H

#include <limits.h>
#include <stdbool.h>

#include "launcher/base/options.h"
#include "launcher/session/inherited.h"

/** The path of countersink-send: beside this program. Returns false where that is not known. Context: any. */
bool csink_send_program(char path[PATH_MAX]);

/**
 * Whether --send, if it is given, is an address that can be sent to, as far as that is known before there is a profile;
 * what is wrong is reported. @send  the row of SEND in the command's table (CSINK_SEND_PROFILE_OPTIONS).
 * Returns 0 or -EINVAL. Context: init.
 */
int csink_send_check(const struct csink_options *o, uint32_t send);

/**
 * Send a file that has a finished profile, if --send is given, and wait until that is done or its time is over. What
 * fails is reported, and changes nothing else. The file is only read, and a copy of it is kept where it cannot be sent:
 * it may be changed or removed then.
 * @path  "": the profile is in no file.
 * Returns 0 (also where nothing was to be sent), -EAGAIN (the server is away: it is kept) or -EIO. Context: init.
 */
int csink_send_profile(const struct csink_options *o, uint32_t send, const char *path,
		       const struct csink_inherited *inherited, bool is_quiet);

/** The same by the environment alone: if COUNTERSINK_SEND is there. Context: init. */
int csink_send_by_environment(const char *path, bool is_quiet);

#endif
