/*
 * Telling a signal that was sent to the launcher alone from one that was sent to its whole process group: by kill(2)
 * both look the same. The witness is a process in the launcher's group that gets the latter only. It has every signal
 * blocked, takes them with sigwaitinfo(2), and writes them down in memory that it shares with the launcher; it has no
 * file descriptors.
 */
#ifndef CSINK_LAUNCHER_RUN_WITNESS_H
#define CSINK_LAUNCHER_RUN_WITNESS_H

#include <stdbool.h>
#include <sys/signalfd.h>

/**
 * Start it, before any event is opened that children inherit, so that it is no part of what is measured. The kernel
 * signals the youngest member of a group first: what the launcher has got the witness has got before. Without memory or
 * processes there is no witness. It ends with exit(3). Context: init.
 */
void csink_witness_begin(void);

/** End it, where the launcher becomes another program. Context: thread. */
void csink_witness_end(void);

/** Has it got the signal, too, that the launcher read? False if there is no witness, or no answer in time. */
bool csink_witness_saw(const struct signalfd_siginfo *info);

#endif
