/*
 * Folded stacks, as flame graph tools take them: a line for each stack, its functions from the outermost to the
 * innermost with semicolons between, a blank, and a number. The reader trusts nothing in them.
 */
#ifndef CSINK_FOLDED_H
#define CSINK_FOLDED_H

#include <stdbool.h>
#include <stddef.h>

struct csink_profile;

/**
 * Read folded stacks from memory. The one type is "samples"; functions have a name and nothing else. Lines that are
 * empty or begin with '#' say nothing.
 * @why  receives a phrase for people on error: "line 3 does not end in a number"; may be NULL, then why_len is 0.
 * Returns 0 and *out (csink_profile_free it), -EBADMSG or -ENOMEM. Context: thread.
 */
int csink_folded_parse(const void *buf, size_t len, struct csink_profile **out, char *why, size_t why_len);

/** Whether bytes look like text, and so may be folded stacks but no protobuf. */
bool csink_folded_is_text(const void *buf, size_t len);

#endif
