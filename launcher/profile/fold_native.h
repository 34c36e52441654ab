/* Attributes the time of native code to the interpreted functions that called it: --fold-native. */
#ifndef CSINK_FOLD_NATIVE_H
#define CSINK_FOLD_NATIVE_H

#include <stdbool.h>

struct csink_profile;

/** Has a sample native code that an interpreted function called? Context: thread. */
bool csink_has_native_calls(const struct csink_profile *p);

/**
 * Take out of each stack the native frames that an interpreted function called, directly or not. Stacks without
 * interpreted functions stay as they are, and so do the native frames outside of the outermost interpreted function.
 * Returns 0 or -ENOMEM. Context: thread.
 */
int csink_fold_native(struct csink_profile *p);

#endif
