/* What `countersink history` prints: history_table.c. */
#ifndef CSINK_HISTORY_PRINT_H
#define CSINK_HISTORY_PRINT_H

#include <stdio.h>

#include "launcher/gate/history_changes.h"

/* What is shown of a history, in every format: the series in the last line of their case; unless all are, the case's
 * CPU time or instructions, and its largest functions. */
struct csink_history_view {
	const struct csink_history *history;
	const struct csink_history_changes *changes;
	bool all;        /* every figure and function */
	uint32_t *order; /* malloc'ed: series (indices) by case, figures before functions */
	uint32_t *first; /* malloc'ed: of each case, where in the order its series begin; and the end */
	bool *is_shown;  /* malloc'ed: of each series (index) */
};

/** Set up a view whose first three members are set. Returns 0 (csink_history_view_free it) or -ENOMEM. */
int csink_history_view_init(struct csink_history_view *view);
void csink_history_view_free(struct csink_history_view *view);

/* For each series s of a case that is shown, in order. */
#define CSINK_HISTORY_EACH(view, of_case, s)                                                                           \
	for (uint32_t at_ = (view)->first[of_case]; at_ < (view)->first[(of_case) + 1]; at_++)                         \
		for (const struct csink_history_series *s = &(view)->history->series[(view)->order[at_]];              \
		     s && (view)->is_shown[(view)->order[at_]]; s = NULL)

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
