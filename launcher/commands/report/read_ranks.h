/* Several profiles as one report's input: those of the ranks of a parallel job, merged with their ranks. */
#ifndef CSINK_READ_RANKS_H
#define CSINK_READ_RANKS_H

#include <stdbool.h>

struct csink_profile;

/**
 * Read profiles, one at a time, and add them up; what is wrong with one is reported, and unless is_quiet, that their
 * events differ.
 * Returns 0 and *out (csink_profile_free it), -ENOMEM, or what csink_profile_open() gave. Context: thread.
 */
int csink_read_ranks(char **files, int nr, bool is_quiet, struct csink_profile **out);

#endif
