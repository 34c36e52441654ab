/* What the report*.c files share; no other file includes this. */
#ifndef CSINK_REPORT_IMPL_H
#define CSINK_REPORT_IMPL_H

#include <stdio.h>

#include "include/internal/cleanup.h"

#include "launcher/base/format.h"
#include "launcher/base/text.h"
#include "launcher/output/report.h"
#include "launcher/output/report_table.h"
#include "launcher/profile/derived.h"
#include "launcher/profile/facts.h"
#include "launcher/profile/own_types.h"
#include "launcher/profile/profile.h"
#include "launcher/profile/wall.h"

#define MAX_TEXT 4096
#define NARROW_COLUMNS 110 /* of a terminal: below, bars, wide figures and long module names give way to functions */

struct printer {
	FILE *out;
	const struct csink_profile *p;
	const struct csink_report_options *o;
	struct csink_report_table table;
	struct csink_scale scales[8]; /* of the columns */
	uint32_t columns[8];          /* types: the table's own first */
	uint32_t nr_columns;
	struct csink_derived derived[4];  /* columns behind them */
	uint32_t nr_derived, nr_left_out; /* left out: columns that the terminal has no room for */
	int64_t alloc_period;             /* of a table of allocations: it has a column of margins; 0: it is another */
	int alloc_bytes;                  /* the type that is bytes of the same kind */
};

/** Free what a printer has. */
static inline void csink_report_done(struct printer *r)
{
	csink_report_table_free(&r->table);
}

enum style { STYLE_NONE, STYLE_BOLD, STYLE_DIM, STYLE_WARN, STYLE_HOT };

/** Switch to a style, if the stream has colours. */
void csink_report_style(const struct printer *r, enum style what);

/** How many rows a further table has: a third of the first one's; 0: all. */
static inline uint32_t csink_report_third(const struct printer *r)
{
	return r->o->limit / 3 + !!(r->o->limit % 3);
}

/** "function" or "functions". */
static inline const char *plural(int64_t n, const char *one, const char *many)
{
	return n == 1 ? one : many;
}

/** Print the verdict and the lines of facts. The table is that of the default type. */
void csink_report_head(const struct printer *r);

/** "NN.NN" of what part of a whole. */
double csink_report_percent(int64_t part, int64_t whole);

/** Print who waited for which lock, and who held it, where that was measured. Returns 0 or -ENOMEM. */
int csink_report_locks(const struct printer *r);

/** Print the table of the default type, then that of time off the CPU. Returns 0 or -ENOMEM. */
int csink_report_tables(struct printer *r);

#endif
