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

/* A case of a line. A command alone is one, whose name is the command. */
struct csink_gate_case {
	const char *name;         /* NULL: a command alone */
	const char *suite, *list; /* the harness's kind, and --list; NULL: none */
	const struct csink_gate_result *result;
	bool printed; /* of a suite: --printed */
};

/**
 * Append a line, in one write, so that jobs that append at the same time do not mix their lines. Cases without figures
 * are left out.
 * @argv  the command as it is in the tree of its commit: behind `env -C DIRECTORY`, by which scripts/perf-gate.sh runs
 *        it there.
 * Returns 0; -ENODATA: no runs were made; another -errno or a negative csink_outfile_errno. Else than with 0 the file
 * is as it was.
 */
int csink_gate_history_append(const struct csink_gate_history *history, char *const *argv,
			      const struct csink_gate_case *cases, uint32_t nr_cases);

#endif
