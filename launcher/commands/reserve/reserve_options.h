/*
 * Options of `countersink reserve`, in the form that launcher/base/options.h describes. perfalloc(1)'s letters D, d, f
 * and v, and what it does not have.
 */
#ifndef CSINK_RESERVE_OPTIONS_H
#define CSINK_RESERVE_OPTIONS_H

#include "launcher/base/options.h"

#define CSINK_RESERVE_OPTIONS(X)                                                                                       \
	X(FOREGROUND, 'D', "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_ENV,                                                 \
	  "hold the reservation in the foreground until a signal arrives (the default)")                               \
	X(BACKGROUND, 'd', "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_ENV,                                                 \
	  "hold the reservation in the background; return when it is made")                                            \
	X(LOCK_FILE, 'f', "FILE", "", CSINK_OPT_NO_ENV,                                                                \
	  "the agent's lock file (default: $PCP_PMDAS_DIR/perfevent/perflock)")                                        \
	X(SHOW_VERSION, 'v', "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_ENV, "print the version")                          \
	X(EVENTS, 'e', "LIST", "", CSINK_OPT_NO_ENV, "also check that these events fit on the counters")               \
	X(REQUIRE, 0, "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_ENV, "fail unless the reservation is confirmed")          \
	X(WAIT, 'w', "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_ENV,                                                       \
	  "wait until other holders release the counters, without limit or for --timeout")                             \
	X(TIMEOUT, 't', "SECONDS", "1", CSINK_OPT_SECONDS | CSINK_OPT_NO_ENV,                                          \
	  "time limit for the agent's confirmation")                                                                   \
	CSINK_RESERVE_HOOKS_OPTION(X)                                                                                  \
	X(STATUS, 's', "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_ENV,                                                     \
	  "report the holders and users of the counters, and the agent's state; reserve nothing")                      \
	X(JSON, 'j', "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_ENV, "with --status: print JSON")                          \
	X(QUIET, 'q', "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_ENV, "print only errors")

#define CSINK_RESERVE_OPTION_ID(id, ...) CSINK_RESERVE_OPT_##id,
enum csink_reserve_opt { CSINK_RESERVE_OPTIONS(CSINK_RESERVE_OPTION_ID) CSINK_NR_RESERVE_OPTS };

#endif
