/*
 * Options of `countersink report`, in the form that launcher/base/options.h describes. What it writes to is given for
 * each call: an environment variable that is meant for run must not make it write.
 */
#ifndef CSINK_REPORT_OPTIONS_H
#define CSINK_REPORT_OPTIONS_H

#include "launcher/base/options.h"

#define CSINK_REPORT_OPTIONS(X)                                                                                        \
	X(ALL, 'a', "", "0", CSINK_OPT_BOOL, "report every function, not the first 25")                                \
	X(LIMIT, 'n', "N", "25", CSINK_OPT_NUMBER | CSINK_OPT_NO_ENV, "report the first N functions")                  \
	X(TREE, 't', "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_ENV, "print the call tree, from the outermost function")   \
	X(CALLERS, 'c', "FUNCTION", "", CSINK_OPT_NO_ENV,                                                              \
	  "print the callers of FUNCTION (a name or regular expression)")                                              \
	X(ANNOTATE, 0, "FUNCTION", "", CSINK_OPT_NO_ENV, "print the cost of each line and instruction of FUNCTION")    \
	X(FOLD, 0, "PERCENT", "1", CSINK_OPT_NO_ENV, "collapse subtrees below PERCENT")                                \
	CSINK_FOLD_NATIVE_OPTION(X, 0)                                                                                 \
	X(BY, 0, "function|module|line|thread|process|phase|rank|lock|holder", "function", CSINK_OPT_NO_ENV,           \
	  "what each row stands for")                                                                                  \
	X(RANKS, 0, "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_ENV,                                                        \
	  "compare the ranks of a parallel job: least, mean, most, imbalance, lost time of each row")                  \
	X(WALL, 0, "", "0", CSINK_OPT_BOOL,                                                                            \
	  "add wall % and critical %, what must get faster for the run to end sooner, and sort by critical %")         \
	X(PARALLELISM, 0, "RANGE", "", CSINK_OPT_NO_ENV,                                                               \
	  "only samples while so many threads ran: 1, 1-2; implies --wall")                                            \
	X(EVENT, 'e', "NAME", "", CSINK_OPT_NO_ENV, "event of the profile to report")                                  \
	X(THREAD, 0, "REGEX", "", CSINK_OPT_NO_ENV, "only threads whose name or id matches")                           \
	X(COMM, 0, "REGEX", "", CSINK_OPT_NO_ENV, "only processes whose name or id matches")                           \
	X(MODULE, 0, "REGEX", "", CSINK_OPT_NO_ENV, "only samples in code of matching files")                          \
	X(FOCUS, 0, "REGEX", "", CSINK_OPT_NO_ENV, "only stacks with a matching function")                             \
	X(IGNORE, 0, "REGEX", "", CSINK_OPT_NO_ENV, "only stacks without a matching function")                         \
	X(JSON, 'j', "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_ENV, "print JSON")                                         \
	X(CSV, 'x', "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_ENV, "print comma-separated values")                        \
	X(DEBUGINFOD, 0, "", "0", CSINK_OPT_BOOL,                                                                      \
	  "for recordings: fetch missing debug information from DEBUGINFOD_URLS")                                      \
	X(NO_PAGER, 0, "", "0", CSINK_OPT_BOOL, "use no pager on a terminal")                                          \
	X(OUTPUT, 'o', "FILE", "", CSINK_OPT_NO_ENV, "also write the profile to FILE")                                 \
	X(QUIET, 'q', "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_ENV, "do not print the report")

#define CSINK_REPORT_OPTION_ID(id, ...) CSINK_REPORT_OPT_##id,
enum csink_report_opt { CSINK_REPORT_OPTIONS(CSINK_REPORT_OPTION_ID) CSINK_NR_REPORT_OPTS };

#endif
