/*
 * Tasks of tinybench, which a program or vitest imports. A module (tasks.mjs), which node loads first, has one of them
 * make an exact number of iterations, and reports it. For the harnesses of node; context as in harness.h.
 */
#ifndef CSINK_TASKS_H
#define CSINK_TASKS_H

#include "launcher/gate/suite/harness.h"

/** Before anything else: put the module where node can read it. Returns 0, or -errno with suite->error. */
int csink_tasks_begin(struct csink_suite *suite);

/** The environment of a command that runs tasks for n iterations. @name  of the one that runs; NULL: those that it
 * chooses itself. @reports  into suite->report. */
void csink_tasks_choose(struct csink_suite *suite, const char *name, uint64_t n, bool reports,
			struct csink_suite_job *job);

/** Add the tasks of a report as cases. Returns 0 or -ENOMEM. */
int csink_tasks_list(struct csink_suite *suite, int side, const char *report);

/** Remember of a case what is known by its first runs: csink_tasks_count needs it. Returns 0 or -ENOMEM. @text  kept
 * for the harness, csink_tasks_text(). */
int csink_tasks_keep(struct csink_suite_case *c, const char *text);
const char *csink_tasks_text(const struct csink_suite_case *c);

/* Of struct csink_suite_harness. */
double csink_tasks_count(const struct csink_suite_case *c, const char *out, const char *report, char *why, size_t size);
double csink_tasks_seconds(const struct csink_suite_case *c, const char *out, const char *report);
bool csink_tasks_holds(void *c, int side, const char *function);

#endif
