/*
 * A profile's waits for locks (`run -e lock`), added up: how long each function waited for each lock while each holder
 * had it. What the report prints as a table, and as JSON.
 */
#ifndef CSINK_LOCK_WAITS_H
#define CSINK_LOCK_WAITS_H

#include <stdint.h>

#include "launcher/profile/profile.h"

struct csink_lock_wait {
	csink_str_t lock, holder; /* the profile's; 0: the waits have no such label */
	char waiter[200];         /* the innermost functions, as holders have them: "take < work < main" */
	int64_t delay_ns, contentions;
};

struct csink_lock_waits {
	struct csink_lock_wait *all; /* the longest first */
	uint32_t nr, cap;
	int64_t delay_ns, contentions; /* of all */
};

/** The type that is the time of waits for locks; -ENOENT: the profile has none. Context: any. */
int csink_lock_waits_type(const struct csink_profile *p);

/** Add them up; none where the profile has none. Returns 0 (csink_lock_waits_free() it) or -ENOMEM. Context: thread. */
int csink_lock_waits_build(struct csink_lock_waits *waits, const struct csink_profile *p);
void csink_lock_waits_free(struct csink_lock_waits *waits);

#endif
