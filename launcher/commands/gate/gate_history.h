/*
 * The line of a gate in a history: a file to which each commit's gate appends the ratios to one anchor, for
 * `countersink history`. countersink-history(1) describes the format.
 */
#ifndef CSINK_GATE_HISTORY_H
#define CSINK_GATE_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "launcher/commands/gate/gate_result.h"
#include "launcher/session/git_commit.h"

/* A case of the line; a gate of one command has one. */
struct csink_gate_case {
	const char *name;
	char *const *command; /* that runs it in the commit's tree */
	const struct csink_gate_result *result;
};

struct csink_gate_history {
	const char *path, *anchor;
	struct csink_git_commit commit;
};

/**
 * Append a line, in one write, so that jobs that append at the same time do not mix their lines. Cases without figures
 * are left out.
 * @fresh  set to whether there was anything to append.
 * Returns 0, or -errno or a negative csink_outfile_errno; then the file is as it was.
 */
int csink_gate_history_append(const struct csink_gate_history *history, const struct csink_gate_case *cases,
			      uint32_t nr_cases, bool *fresh);

/** The command in the tree of its commit: behind `env -C DIRECTORY`, by which scripts/perf-gate.sh runs it there. */
char *const *csink_gate_history_command(char *const *argv);

#endif
