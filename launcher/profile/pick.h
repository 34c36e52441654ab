/* Which functions of a profile a user means. */
#ifndef CSINK_PICK_H
#define CSINK_PICK_H

#include <stddef.h>

#include "launcher/profile/rows.h"

/**
 * Pick functions by name: those of exactly that name, with or without parameters and template arguments, or the
 * line that distinguishes several functions of one name; else those of which it is the last part; if there are
 * none, those whose name the extended regular expression is found in.
 * @picked  malloc'ed, by row; unchanged on error.
 * @why     receives a line for people on error.
 * Returns 0, -ENODATA (there is none), -EINVAL (no regular expression either) or -ENOMEM. Context: thread.
 */
int csink_pick_functions(const struct csink_rows *rows, const char *pattern, bool **picked, char *why, size_t why_len);

#endif
