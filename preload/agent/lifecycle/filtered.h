/*
 * A program that runs under a seccomp filter which was there before us. A filter may kill for calls that only a
 * profiler makes, and the program is not to die of us: what is deadly is left out, or all is.
 *
 * The process that begins a run (the launcher, or the first process where there is none) tries the calls in a child and
 * tells the others by CSINK_ENV_RUN_FILTERS. A process that finds itself under more filters than those, from a program
 * that we did not see do it, tries them only where its own parent lives under the same ones: then children are no
 * novelty.
 */
#ifndef CSINK_FILTERED_H
#define CSINK_FILTERED_H

#include <stdbool.h>

struct csink_status;

/**
 * May anything be done here? Sets csink_deadly_calls and csink_calls_off by what is found. Comes before any call of
 * ours in a process but csink_status_read: until then only what any program's loader calls is known to be let through.
 * @status  the calling process's own; NULL: it could not be read.
 * @why     set to the reason, "" where all is well; also also where something else than all was given up.
 * Context: init.
 */
bool csink_filtered_may_begin(const struct csink_status *status, const char **why);

/** The program has put one more filter onto itself, under which all our calls are known to be harmless: programs that
 * it starts need not wonder. Context: thread. */
void csink_filtered_one_more(void);

#endif
