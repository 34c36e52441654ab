/*
 * A history in memory: the lines that `countersink gate --history` appended to a file, by series: one for
 * each figure and each function of each case, with its ratios in the order of the commits. Context: thread.
 */
#ifndef CSINK_HISTORY_READ_H
#define CSINK_HISTORY_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "launcher/base/table.h"

#define CSINK_HISTORY_LINE_BYTES (8U << 20) /* of one line at most */
#define CSINK_HISTORY_DAMAGED 8             /* damaged lines that are remembered; others are counted */

struct csink_history_line {
	char *commit, *parent, *anchor, *cpu; /* malloc'ed; NULL unknown. Never NULL: commit, anchor */
	char *committed, *time;               /* UTC, "2026-11-26T11:37:32Z"; NULL unknown */
	uint32_t number;                      /* in the file, from 1 */
};

/* A ratio, new / old, and its 95 % interval, whose ends are NAN where they are not known. */
struct csink_history_point {
	uint32_t line;   /* index */
	bool is_changed; /* the first one at a new level: csink_history_changes_find() sets it */
	double ratio, low, high;
	double last; /* of a figure: its mean in the commit, in the series' unit; of a function: its share. NAN unknown
		      */
};

struct csink_history_series {
	uint32_t of_case;
	bool is_function;
	char *name; /* "cpu"; "crc32_of in bench" */
	char *unit; /* of a figure: a pprof unit; NULL: none, or unknown */
	bool more_is_better;
	struct csink_history_point *points;
	uint32_t nr_points, cap_points;
	uint32_t nr_changes; /* points that are changed */
};

struct csink_history_case {
	char *name;
	char *command; /* that runs it in its tree, quoted for a shell; NULL: not known, or too long to be shown */
	char *suite;   /* of a suite's case: the harness's kind, of letters alone; NULL: a command alone */
	char *list;    /* of it: the gate's --list; NULL: none */
	bool printed;  /* of it: the gate's --printed */
	bool fold_native;
};

struct csink_history {
	struct csink_history_line *lines; /* in the order of commits */
	uint32_t nr_lines, cap_lines;
	struct csink_history_case *cases;
	uint32_t nr_cases, cap_cases;
	struct csink_history_series *series; /* in the order in which they appear: by case, figures before functions */
	uint32_t nr_series, cap_series;
	struct csink_table known_cases, known_series;        /* index + 1 */
	uint32_t nr_damaged, damaged[CSINK_HISTORY_DAMAGED]; /* lines that were skipped: their numbers */
	uint32_t nr_later; /* lines of a later version of the format, which were skipped */
};

/**
 * Read a file. Damaged lines are skipped and counted.
 * @path  "-": standard input.
 * Returns 0 (csink_history_free it), or -errno and why; -ENODATA: it has no line that can be used.
 */
int csink_history_read(const char *path, struct csink_history *history, char *why, size_t why_bytes);

/** The same of an open stream, which may have no line that can be used. Returns 0 or -errno. */
int csink_history_read_stream(FILE *file, struct csink_history *history);

void csink_history_free(struct csink_history *history);

/** Its latest point. */
const struct csink_history_point *csink_history_latest(const struct csink_history_series *series);

/** Is a ratio of it that of something that got slower, or worse? */
bool csink_history_is_worse(const struct csink_history_series *series, double ratio);

/** Is it the figure of a case that stands for all of its time: CPU time, or counted instructions? */
bool csink_history_is_main(const struct csink_history_series *series);

#endif
