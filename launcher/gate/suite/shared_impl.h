/*
 * What suite_shared.c and suite_shared_runs.c share: the cases that one process runs, and what it reports of them.
 * Context: the launcher's one thread.
 */
#ifndef CSINK_SHARED_IMPL_H
#define CSINK_SHARED_IMPL_H

#include "launcher/gate/suite/suite.h"

/** The cases that are shared and pending, in random order; free them. Returns their number, or -ENOMEM. */
int64_t csink_shared_gather(struct csink_suite *suite, struct csink_suite_case ***out);

/** Make the job of a side that runs them. Returns 0, or -errno with suite->error. */
int csink_shared_choose(struct csink_suite *suite, int side, struct csink_suite_case *const *cases, uint32_t nr);

/** Give up those that are pending. */
void csink_shared_fail(struct csink_suite_case *const *cases, uint32_t nr, const char *why);

/** Of those, the ones that have made nothing. */
void csink_shared_fail_unmade(struct csink_suite_case *const *cases, uint32_t nr, const char *why);

/** Take the report of a process that ended with status 0. Returns whether it ended within a case, which is given up:
 * the others are worth another try. */
bool csink_shared_left_early(struct csink_suite *suite, int side, struct csink_suite_case *const *cases, uint32_t nr);

/** Take the report of a process: what each case has made, and the errors of those that fail. Returns the case that has
 * begun and not ended; NULL: none. */
struct csink_suite_case *csink_shared_take(struct csink_suite *suite, int side, struct csink_suite_case *const *cases,
					   uint32_t nr);

/** A process has failed: find the cases that did, and give them up; without any, all. Returns whether the others are
 * worth another try. */
bool csink_shared_blame(struct csink_suite *suite, int side, struct csink_suite_case *const *cases, uint32_t nr,
			const char *why);

/** Make a run of each side that is not judged, and give the cases that work elsewhere, too (in threads, in other
 * processes), or whose functions cannot be seen, a process of their own. Returns 0, -EINTR or -ENOMEM.
 * suite_shared_runs.c */
int csink_shared_check_functions(struct csink_suite *suite);

#endif
