/* Options of `countersink stat`, in the form that launcher/base/options.h describes. */
#ifndef CSINK_STAT_OPTIONS_H
#define CSINK_STAT_OPTIONS_H

#include "launcher/base/options.h"

#define CSINK_STAT_OPTIONS(X)                                                                                          \
	X(EVENTS, 'e', "LIST", "", CSINK_OPT_NO_ENV,                                                                   \
	  "events to count, comma-separated, at most 32 (default: time, scheduling, faults, cycles, instructions, "    \
	  "branches); a group {a,b} is counted together")                                                              \
	X(REPEAT, 'r', "N", "1", CSINK_OPT_NUMBER | CSINK_OPT_NO_ENV,                                                  \
	  "run the command N times; print the mean and its 95 % confidence interval")                                  \
	X(INTERVAL, 'I', "MS", "", CSINK_OPT_NUMBER | CSINK_OPT_NO_ENV, "print the counts of every MS milliseconds")   \
	X(PER_THREAD, 0, "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_ENV, "also print the counts of each thread")           \
	X(OUTPUT, 'o', "FILE", "", CSINK_OPT_NO_ENV, "write to FILE instead of standard error")                        \
	X(JSON, 'j', "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_ENV, "print JSON")                                         \
	X(CSV, 'x', "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_ENV, "print comma-separated values")                        \
	CSINK_RESERVATION_OPTIONS(X, "the command is not run")

#define CSINK_STAT_OPTION_ID(id, ...) CSINK_STAT_OPT_##id,
enum csink_stat_opt { CSINK_STAT_OPTIONS(CSINK_STAT_OPTION_ID) CSINK_NR_STAT_OPTS };

#endif
