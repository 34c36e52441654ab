/*
 * A program that runs under a seccomp filter which was there before us. A filter may kill for calls that only a
 * profiler makes: features that need a deadly call are off, or the program is not profiled.
 *
 * The process that begins a run (the launcher, or the first process where there is none) tries the calls in a child and
 * passes the result on in CSINK_ENV_RUN_FILTERS. A process under more filters than those, which an untracked program
 * installed, tries the calls only if its own parent has the same filters: then the program starts children anyway.
 */
#ifndef CSINK_FILTERED_H
#define CSINK_FILTERED_H

#include <stdbool.h>

struct csink_status;

/**
 * May anything be done here? Sets csink_deadly_calls and csink_calls_off by what is found. Comes before any call of
 * ours in a process but csink_status_read: until then only what any program's loader calls is known to be let through.
 * @status  the calling process's own; NULL: it could not be read.
 * @why     set to the reason, "" where all is well; also where something else than all was given up.
 * Context: init.
 */
bool csink_filtered_may_begin(const struct csink_status *status, const char **why);

/** The program has installed one more filter, which allows all our calls: programs that it starts need not try them
 * again. Context: thread. */
void csink_filtered_one_more(void);

#endif
