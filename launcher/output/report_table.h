/* The rows of a report: samples added up by function, or by whatever else there is (rows.h). */
#ifndef CSINK_REPORT_TABLE_H
#define CSINK_REPORT_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "launcher/profile/rows.h"

struct csink_profile;

struct csink_row {
	const char *name;
	const char *module;  /* the end of its file's path, as short as it differs from others; "": none */
	const char *file;    /* source file of a line, or of an interpreted function; "": not known */
	int64_t line;        /* in it: the line, or the function's first; 0: not known */
	bool is_pseudo;      /* no function: what was accounted or counted, and not sampled */
	bool is_inlined;     /* seen only inlined into others */
	uint32_t stamp;      /* while samples are added up: the last one whose total it has, + 1 */
	int64_t self, total; /* of the table's type */
	int64_t first;       /* what rows are sorted by before that; 0: nothing */
	int64_t *extra;      /* self of every type: nr_types of them */
};

struct csink_report_table {
	struct csink_row *rows; /* by first, then self, then total, largest first */
	uint32_t nr_rows;
	int64_t *sums;          /* of each type, over all samples */
	int64_t *pseudo_sums;   /* over the samples that are none */
	int64_t *extras;        /* the rows' extra */
	struct csink_rows keys; /* with the rows' texts */
};

/** Add up the type with that index by what is asked for. Returns 0 (csink_report_table_free it),
 * -EINVAL (a profile without types) or -ENOMEM; on error there is nothing to free. Context: thread. */
int csink_report_table_build_by(struct csink_report_table *table, const struct csink_profile *p, uint32_t type,
				enum csink_by by);
/** Sort the rows of a table by their own part of another type first. Context: thread. */
void csink_report_table_sort(struct csink_report_table *table, uint32_t type);
void csink_report_table_free(struct csink_report_table *table);

#endif
