/* Options of `countersink merge`, in the form that launcher/base/options.h describes. */
#ifndef CSINK_MERGE_OPTIONS_H
#define CSINK_MERGE_OPTIONS_H

#include "launcher/base/options.h"

#define CSINK_MERGE_OPTIONS(X)                                                                                         \
	X(OUTPUT, 'o', "FILE", "merged.pb.gz", CSINK_OPT_NO_ENV, "profile to write; an older file becomes FILE.old")   \
	X(KEEP_IDS, 0, "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_ENV, "keep PIDs, TIDs and the times of samples")         \
	X(KEEP_RANKS, 0, "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_ENV, "keep the ranks of a parallel job apart")         \
	X(TREE, 0, "N", "", CSINK_OPT_OPTIONAL | CSINK_OPT_NO_ENV,                                                     \
	  "merge the profiles of a directory, N at a time (32), with other such processes at work on the same one")    \
	X(QUIET, 'q', "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_ENV, "print only errors")

#define CSINK_MERGE_OPTION_ID(id, ...) CSINK_MERGE_OPT_##id,
enum csink_merge_opt { CSINK_MERGE_OPTIONS(CSINK_MERGE_OPTION_ID) CSINK_NR_MERGE_OPTS };

#endif
