/* The text report: a verdict, what to know about the measurement, and the table of functions. */
#ifndef CSINK_REPORT_H
#define CSINK_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "launcher/profile/rows.h"

struct csink_profile;
struct csink_wall;

#define CSINK_REPORT_DEFAULT_ROWS 25
#define CSINK_REPORT_DEFAULT_FOLD 1.0

struct csink_report_options {
	uint32_t limit;                /* rows at most; 0: all */
	uint32_t width;                /* columns to fit; 0: no limit (plain, for pipes and files) */
	bool color;                    /* escape sequences */
	bool bars;                     /* a bar beside each row */
	bool utf8;                     /* the bars may use block characters */
	const char *file;              /* where the profile is, for the suggested next command; NULL: suggest none */
	enum csink_by by;              /* what the rows of the table are */
	double fold;                   /* of a tree: what has less than this many percent is folded */
	const struct csink_wall *wall; /* of the columns wall % and critical %, which the profile has; NULL: none */
};

/**
 * The defaults for a stream: 25 rows; bars, colour and width on a terminal only, by NO_COLOR > CLICOLOR_FORCE > isatty,
 * TERM=dumb off.
 */
void csink_report_options_init(struct csink_report_options *o, FILE *out);

/** Flush what was printed. Returns 0, or -errno of the stream, also of what was written before. */
int csink_report_flush(FILE *out);

/**
 * Print the report. Everything comes from the profile itself, so that one read back from a file prints the same.
 * Returns 0, -ENOMEM, or -errno of the stream.
 */
int csink_report_print(FILE *out, const struct csink_profile *p, const struct csink_report_options *o);

/**
 * Print the stacks as a tree under the report's head: top-down, or from the functions that callers chooses (by row of
 * rows, which are functions of p) to their callers. Returns as csink_report_print.
 */
int csink_report_tree_print(FILE *out, const struct csink_profile *p, const struct csink_report_options *o,
			    const struct csink_rows *rows, const bool *callers);

/** The same for machines: every row or node (o->limit of a table), values as they are. Returns as csink_report_print.
 */
int csink_report_json(FILE *out, const struct csink_profile *p, const struct csink_report_options *o);
int csink_report_csv(FILE *out, const struct csink_profile *p, const struct csink_report_options *o);
int csink_report_tree_json(FILE *out, const struct csink_profile *p, const struct csink_rows *rows,
			   const bool *callers);
int csink_report_tree_csv(FILE *out, const struct csink_profile *p, const struct csink_rows *rows, const bool *callers);

/**
 * Print what rows cost in the ranks of a parallel job, for people and for machines. Returns as csink_report_print, or
 * -ENOENT: no sample has a rank.
 */
int csink_report_ranks_print(FILE *out, const struct csink_profile *p, const struct csink_report_options *o);
int csink_report_ranks_json(FILE *out, const struct csink_profile *p, const struct csink_report_options *o);
int csink_report_ranks_csv(FILE *out, const struct csink_profile *p, const struct csink_report_options *o);

/** Print what the lines and instructions of picked functions cost, or JSON. Returns as csink_report_print. */
int csink_report_annotate(FILE *out, const struct csink_profile *p, const struct csink_report_options *o,
			  const struct csink_rows *rows, const bool *picked, bool json);

#endif
