/* The names that --follow lists. */
#ifndef CSINK_NAMES_MATCH_H
#define CSINK_NAMES_MATCH_H

#include <stdbool.h>

/** Is @name one of @names, separated by commas, in which * matches any text and ? any character? Context: thread; also
 * in a vfork child (allocates nothing). */
bool csink_names_match(const char *names, const char *name);

#endif
