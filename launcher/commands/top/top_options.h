/* Options of `countersink top`, in the form that launcher/base/options.h describes. */
#ifndef CSINK_TOP_OPTIONS_H
#define CSINK_TOP_OPTIONS_H

#include "launcher/base/options.h"

#define CSINK_TOP_OPTIONS(X)                                                                                           \
	X(PID, 'p', "PID", "", CSINK_OPT_NUMBER | CSINK_OPT_NO_ENV,                                                    \
	  "watch this process: by its recording if it is profiled, else sampled from outside, as attach does")         \
	X(CGROUP, 0, "PATH", "", CSINK_OPT_NO_ENV, "watch all processes in a control group, sampled from outside")     \
	X(INTERVAL, 'd', "SECONDS", "1", CSINK_OPT_SECONDS | CSINK_OPT_NO_ENV, "time between two pictures")            \
	X(BY, 0, "function|thread|phase", "function", CSINK_OPT_NO_ENV, "what each row stands for at first")           \
	X(SORT, 's', "self|total|all-self|all-total|name", "self", CSINK_OPT_NO_ENV,                                   \
	  "sort by the last interval (self, total), by the time since the start (all-...), or by name")                \
	X(LIMIT, 'n', "N", "25", CSINK_OPT_NUMBER | CSINK_OPT_NO_ENV, "with --once: print the first N rows")           \
	X(ONCE, 0, "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_ENV, "print one picture, of one interval, and end")          \
	X(JSON, 'j', "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_ENV, "with --once: print JSON, all rows")

#define CSINK_TOP_OPTION_ID(id, ...) CSINK_TOP_OPT_##id,
enum csink_top_opt { CSINK_TOP_OPTIONS(CSINK_TOP_OPTION_ID) CSINK_NR_TOP_OPTS };

#endif
