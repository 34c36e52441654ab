/* Options of `countersink diff`, in the form that launcher/base/options.h describes. */
#ifndef CSINK_DIFF_OPTIONS_H
#define CSINK_DIFF_OPTIONS_H

#include "launcher/base/options.h"

#define CSINK_DIFF_OPTIONS(X)                                                                                          \
	X(PER, 0, "run|second|total", "run", CSINK_OPT_NO_ENV,                                                         \
	  "unit of the values: per run, per second, or B scaled to the total of A")                                    \
	X(BY, 0, "function|module|line|lock|holder", "function", CSINK_OPT_NO_ENV, "what each row stands for")         \
	X(STACKS, 's', "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_ENV, "compare whole stacks instead of single rows")      \
	CSINK_FOLD_NATIVE_OPTION(X, CSINK_OPT_NO_ENV)                                                                  \
	X(EVENT, 'e', "NAME", "", CSINK_OPT_NO_ENV, "compare by this event")                                           \
	X(LIMIT, 'n', "N", "25", CSINK_OPT_NUMBER | CSINK_OPT_NO_ENV, "print the first N rows")                        \
	X(ALL, 'a', "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_ENV, "print every row")                                     \
	X(JSON, 'j', "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_ENV, "print JSON")                                         \
	X(HTML, 0, "FILE", "", CSINK_OPT_NO_ENV, "also write a page with a differential flame graph to FILE")          \
	X(NO_PAGER, 0, "", "0", CSINK_OPT_BOOL, "use no pager on a terminal")

#define CSINK_DIFF_OPTION_ID(id, ...) CSINK_DIFF_OPT_##id,
enum csink_diff_opt { CSINK_DIFF_OPTIONS(CSINK_DIFF_OPTION_ID) CSINK_NR_DIFF_OPTS };

#endif
