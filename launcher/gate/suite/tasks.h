/*
 * Tasks of tinybench, which a program or vitest imports. A module (tasks.mjs), which node loads first, has some of them
 * make exact numbers of iterations, and reports these. For the harnesses of node; context as in harness.h.
 */
#ifndef CSINK_TASKS_H
#define CSINK_TASKS_H

#include "launcher/gate/suite/harness.h"

/** Have the command's processes load the module: without csink_suite_put_cases(), it runs all tasks once. Returns 0, or
 * -errno with suite->error. */
int csink_tasks_load(struct csink_suite *suite, struct csink_suite_job *job);

/* Of struct csink_suite_harness. */
bool csink_tasks_holds(void *c, int side, const char *function);

#endif
