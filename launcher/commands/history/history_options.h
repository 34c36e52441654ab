/* Options of `countersink history`, in the form that launcher/base/options.h describes. */
#ifndef CSINK_HISTORY_OPTIONS_H
#define CSINK_HISTORY_OPTIONS_H

#include "launcher/base/options.h"
#include "launcher/commands/history/history_export.h"

#define CSINK_HISTORY_OPTIONS(X)                                                                                       \
	X(ALL, 'a', "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_ENV,                                                        \
	  "every figure and function, not only CPU time and the 10 largest functions")                                 \
	X(HTML, 0, "FILE", "", CSINK_OPT_NO_ENV, "also write a page with the trends and the change points to FILE")    \
	X(EXPORT, 'f', CSINK_HISTORY_FORMATS, "", CSINK_OPT_NO_ENV, "write this format instead of the table")          \
	X(OUTPUT, 'o', "FILE", "-", CSINK_OPT_NO_ENV, "file of --export (-: standard output)")

#define CSINK_HISTORY_OPTION_ID(id, ...) CSINK_HISTORY_OPT_##id,
enum csink_history_opt { CSINK_HISTORY_OPTIONS(CSINK_HISTORY_OPTION_ID) CSINK_NR_HISTORY_OPTS };

#endif
