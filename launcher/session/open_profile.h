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

/**
 * Find an event of a profile by its name.
 * @hint  receives what to append to an error where there is none: the events that have similar names, or "".
 * Returns its index among the types, or what csink_profile_type_find() does.
 */
int csink_profile_event_find(const struct csink_profile *p, const char *name, char *hint, size_t hint_bytes);

/** Whether a path is a directory, and so can hold recordings. */
bool csink_is_directory(const char *path);

#endif
