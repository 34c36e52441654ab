/* Opens what people name as a profile, for every command that takes one. */
#ifndef CSINK_OPEN_PROFILE_H
#define CSINK_OPEN_PROFILE_H

#include <stdbool.h>
#include <stddef.h>

struct csink_profile;

/**
 * Read a profile: pprof of any maker, folded stacks, a run directory; "-" is standard input.
 * @why  receives a line for people on error: "x.pb.gz: truncated gzip stream".
 * Returns 0 and *out (csink_profile_free it), or what reading gave. Context: thread.
 */
int csink_profile_open(const char *path, struct csink_profile **out, char *why, size_t why_len);

/** Whether a path is a directory, and so can hold recordings. */
bool csink_is_directory(const char *path);

#endif
