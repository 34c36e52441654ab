/* run, started once for each rank of a parallel job: which ranks are profiled, and which one prints. */
#ifndef CSINK_RUN_RANKS_H
#define CSINK_RUN_RANKS_H

#include <stdbool.h>
#include <stdint.h>

#include "launcher/base/options.h"

#define CSINK_RANKS_OUTPUT "countersink.%r.pb.gz" /* of a rank, where no output is named */

struct csink_run_ranks {
	bool is_rank;     /* of a job of several */
	bool is_profiled; /* else it is to run without countersink */
	bool has_others;  /* several ranks are profiled */
	bool prints;      /* its report and notes; the others print errors alone */
};

/**
 * Is a number in a list of ranks, "0,7,100-110"?
 * @lowest, @highest  of the list.
 * Returns 1 or 0, or -EINVAL: it is no such list. Context: any.
 */
int csink_ranks_have(const char *list, int32_t rank, int32_t *lowest, int32_t *highest);

/** Find out what this process is to do; what is wrong with --ranks is reported. Returns 0 or -EINVAL. Context: init. */
int csink_run_ranks_find(const struct csink_options *o, struct csink_run_ranks *ranks);

#endif
