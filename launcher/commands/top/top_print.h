/* The lines of a picture of `countersink top`, on a terminal or not, and its JSON. */
#ifndef CSINK_TOP_PRINT_H
#define CSINK_TOP_PRINT_H

#include <stdio.h>

#include "launcher/commands/top/top_picture.h"
#include "launcher/commands/top/top_source.h"

enum { CSINK_TOP_HEAD_LINES = 3 }; /* of csink_top_print_head() */

/**
 * Print what the picture is of, in three lines of at most `columns` characters (0: no limit).
 * @line  0, 1 or 2. Without a newline.
 */
void csink_top_print_head(FILE *out, const struct csink_top_source *source, const struct csink_top_picture *picture,
			  uint32_t line, const char *state, uint32_t columns);

/** Print the titles of the columns of a view, without a newline. */
void csink_top_print_titles(FILE *out, const struct csink_top_picture *picture, enum csink_top_view view,
			    uint32_t columns);

/** Print a row, without a newline. */
void csink_top_print_row(FILE *out, const struct csink_top_picture *picture, enum csink_top_view view, uint32_t row,
			 uint32_t columns);

/** Print the whole picture as JSON: all rows of all views. Returns 0 or -errno of the stream. */
int csink_top_print_json(FILE *out, const struct csink_top_source *source, struct csink_top_picture *picture,
			 enum csink_top_sort by, bool has_ended);

#endif
