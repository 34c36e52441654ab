/* SIGBUS from a recording that was truncated: see bus_guard.c. */
#ifndef CSINK_BUS_GUARD_H
#define CSINK_BUS_GUARD_H

#include <signal.h>
#include <stdbool.h>

/** Catch SIGBUS, if its action is the default one. Context: init, thread. */
void csink_bus_guard_enter(void);

/** Stop catching it: the program is about to install a filter that kills for the handler's system calls (confine.c).
 * Context: thread. */
void csink_bus_guard_end(void);

/** True while SIGBUS is caught: then the handlers of our own signals do not block it. Context: any. */
bool csink_bus_guard_is_on(void);

/** sigaction(2) of SIGBUS for the program, which does not learn that it is caught. Context: any. */
int csink_bus_guard_sigaction(const struct sigaction *act, struct sigaction *old);

#endif
