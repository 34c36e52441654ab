/* Options of `countersink salvage`, in the form that launcher/base/options.h describes. */
#ifndef CSINK_SALVAGE_OPTIONS_H
#define CSINK_SALVAGE_OPTIONS_H

#include "launcher/base/options.h"

#define CSINK_SALVAGE_OPTIONS(X)                                                                                       \
	X(MAX_PLACE, 0, "BYTES", "64M", CSINK_OPT_BYTES,                                                               \
	  "room that recordings of killed runs without a profile may take in a place; the oldest runs are removed")    \
	X(DETACH, 0, "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_ENV,                                                       \
	  "for the library: leave session, files and directory of the starting program, and print nothing")            \
	X(QUIET, 'q', "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_ENV, "print only errors")

#define CSINK_SALVAGE_OPTION_ID(id, ...) CSINK_SALVAGE_OPT_##id,
enum csink_salvage_opt { CSINK_SALVAGE_OPTIONS(CSINK_SALVAGE_OPTION_ID) CSINK_NR_SALVAGE_OPTS };

#endif
