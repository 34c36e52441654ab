/* A history in the formats of other programs (`countersink history --export`), and as a page (`--html`). */
#ifndef CSINK_HISTORY_EXPORT_H
#define CSINK_HISTORY_EXPORT_H

#include "launcher/commands/history/history_print.h"

/* The values of --export. */
#define CSINK_HISTORY_FORMATS "bmf|github|perfherder|csv"

/** Write what is shown of a history in a format, one of CSINK_HISTORY_FORMATS. Returns 0 or -errno of the stream, which
 * is flushed. */
int csink_history_export(FILE *out, const char *format, const struct csink_history_view *view);

/** Write a page: the ratios of what is shown by commit, and the change points with what moved under each. Returns 0,
 * -ENOMEM or -errno of the stream, which is flushed. */
int csink_history_html(FILE *out, const char *title, const struct csink_history_view *view);

#endif
