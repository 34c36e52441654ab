/* Options of `countersink keep`, in the form that launcher/base/options.h describes. */
#ifndef CSINK_KEEP_OPTIONS_H
#define CSINK_KEEP_OPTIONS_H

#include "launcher/base/options.h"
#include "launcher/session/slices.h"

#define CSINK_KEEP_OPTIONS(X)                                                                                          \
	CSINK_SLICES_OPTIONS(X)                                                                                        \
	X(OUTPUT, 'o', "FILE", "countersink.%p.pb.gz", 0,                                                              \
	  "names of the slices; %p PID, %h host, %c command, %r rank, %t time, %% a percent sign")                     \
	X(PID, 'p', "PID", "0", CSINK_OPT_NUMBER | CSINK_OPT_ZERO | CSINK_OPT_NO_ENV,                                  \
	  "what %p in the names stands for; 0: the first process of the run")                                          \
	X(COMMAND, 0, "NAME", "", CSINK_OPT_NO_ENV, "what %c in the names stands for (default: that process's)")       \
	X(DETACH, 0, "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_ENV,                                                       \
	  "for the library: go on in the background, once the slices have begun, and print nothing")                   \
	X(LEAVE, 0, "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_ENV,                                                        \
	  "for the library: have the process leave that writes the slices, so that another one can go on with them")   \
	X(QUIET, 'q', "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_ENV, "print only errors")

#define CSINK_KEEP_OPTION_ID(id, ...) CSINK_KEEP_OPT_##id,
enum csink_keep_opt { CSINK_KEEP_OPTIONS(CSINK_KEEP_OPTION_ID) CSINK_NR_KEEP_OPTS };

#endif
