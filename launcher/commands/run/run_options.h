/*
 * Options of `countersink run`: those that the library reads, too (include/internal/shared_options.h), and behind them
 * those of the launcher alone.
 */
#ifndef CSINK_RUN_COMMAND_OPTIONS_H
#define CSINK_RUN_COMMAND_OPTIONS_H

#include "include/internal/shared_options.h"
#include "launcher/base/options.h"
#include "launcher/base/send_url.h"
#include "launcher/session/slices.h"

#define CSINK_LAUNCH_OPTIONS(X)                                                                                        \
	X(WALL, 0, "", "0", CSINK_OPT_BOOL,                                                                            \
	  "report what must get faster for the run to end sooner: wall % and critical %; implies --timeline")          \
	X(RANKS, 0, "LIST", "", 0,                                                                                     \
	  "of a parallel job, in each rank of which countersink is started, profile these ranks alone: 0,7,100-110")   \
	CSINK_SEND_PROFILE_OPTIONS(X) CSINK_SLICES_OPTIONS(X)

#define CSINK_RUN_COMMAND_OPTIONS(X) CSINK_RUN_OPTIONS(X) CSINK_LAUNCH_OPTIONS(X)

enum csink_launch_opt {
	CSINK_LAST_SHARED_OPT = CSINK_NR_RUN_OPTS - 1,
	CSINK_LAUNCH_OPTIONS(CSINK_RUN_OPTION_ID) CSINK_NR_LAUNCH_OPTS
};

#endif
