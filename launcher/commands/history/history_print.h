/* What `countersink history` prints: history_table.c. */
#ifndef CSINK_HISTORY_PRINT_H
#define CSINK_HISTORY_PRINT_H

#include <stdio.h>

#include "launcher/gate/history_changes.h"

/* What is shown of a history, in every format. */
struct csink_history_view {
	const struct csink_history *history;
	const struct csink_history_changes *changes;
	bool all; /* every figure and function */
};

/** Whether a series is shown: it is in the last line of its case, and (unless all are) is the case's CPU time or one of
 * its largest functions. */
bool csink_history_is_shown(const struct csink_history_view *view, const struct csink_history_series *series);

/** A commit for people: 12 characters of an id, else as it was named. buf has room for 80. Returns buf. */
const char *csink_history_commit(const struct csink_history_line *line, char *buf);

/** The command that confirms a change point, in pairs of runs of the two commits that surround it; or, @bisect, the one
 * that then finds the commit between them. It is to be pasted into a shell: nothing of the history is more than a word
 * in it, and all of it is visible text. Returns false where there is none: no commit lies between, or one has a name
 * that git does not give. */
bool csink_history_confirm(const struct csink_history *history, const struct csink_history_change *change, bool bisect,
			   char *buf, size_t size);

/** Print the tables and the change points. */
void csink_history_print_table(FILE *out, const struct csink_history_view *view);

#endif
