/*
 * The line of a gate in a history: a file to which each commit's gate appends the ratios to one anchor, for
 * `countersink history`. countersink-history(1) describes the format.
 */
#ifndef CSINK_GATE_HISTORY_H
#define CSINK_GATE_HISTORY_H

#include "launcher/commands/gate/gate_result.h"
#include "launcher/session/git_commit.h"

struct csink_gate_history {
	const char *path, *anchor;
	struct csink_git_commit commit;
};

/**
 * Append a line, in one write, so that jobs that append at the same time do not mix their lines. It has one case, the
 * command as it is in the tree of its commit: behind `env -C DIRECTORY`, by which scripts/perf-gate.sh runs it there.
 * Returns 0; -ENODATA: no runs were made; another -errno or a negative csink_outfile_errno. Else than with 0 the file
 * is as it was.
 */
int csink_gate_history_append(const struct csink_gate_history *history, char *const *argv,
			      const struct csink_gate_result *r);

#endif
