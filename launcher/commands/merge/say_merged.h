/* What merge prints once the output is written. */
#ifndef CSINK_SAY_MERGED_H
#define CSINK_SAY_MERGED_H

#include <stdint.h>

struct csink_profile;

/** Say what of so many profiles is in the output. */
void csink_say_merged(const struct csink_profile *p, uint32_t nr, const char *output);

#endif
