/* Facts about other processes, from /proc. */
#ifndef CSINK_PROC_H
#define CSINK_PROC_H

#include <stdbool.h>
#include <stdint.h>

/** Is it there and no zombie, and (start_monotonic_ns != 0) the one that started about then, not a later owner of its
 * pid? */
bool csink_proc_is_running(int32_t pid, uint64_t start_monotonic_ns);

/** Is it there, be it a zombie, and has been since that time or longer? */
bool csink_proc_was_there(int32_t pid, uint64_t monotonic_ns);

/** Is pid the process ancestor, or one of its descendants? Needs the chain of parents still to be there. */
bool csink_proc_is_descendant(int32_t pid, int32_t ancestor);

/** What a process or thread calls itself: its number in the innermost of its PID namespaces; -ESRCH: not known. */
int32_t csink_proc_own_number(int32_t tid);

#endif
