/* SIGBUS from a recording that was truncated: see bus_guard.c. */
#ifndef CSINK_BUS_GUARD_H
#define CSINK_BUS_GUARD_H

#include <signal.h>
#include <stdbool.h>

/** Catch SIGBUS, if its action is the default one. Context: init, thread. */
void csink_bus_guard_enter(void);

/** Catch it no more: what the handler takes is about to be punished (confine.c). Context: thread. */
void csink_bus_guard_end(void);

/** True while SIGBUS is caught: then the handlers of our own signals do not block it. Context: any. */
bool csink_bus_guard_is_on(void);

/** sigaction(2) of SIGBUS for the program, which does not learn that it is caught. Context: any. */
int csink_bus_guard_sigaction(const struct sigaction *act, struct sigaction *old);

/* ---- signals.c ---- */

/** sigaction(2) of a signal that is not one of ours. Context: any. */
int csink_signal_set_other(int signo, const struct sigaction *act, struct sigaction *old);

/** Give the kernel the masks of our own handlers again, after csink_bus_guard_is_on() has changed. Context: any. */
void csink_signals_renew(void);

#endif
