/*
 * Telling a signal that was sent to the launcher alone from one that was sent to its whole process group: by kill(2)
 * both look the same. The witness is a process in the launcher's group that gets the latter only. It has every signal
 * blocked, takes them with sigwaitinfo(2), and writes them down in memory that it shares with the launcher; it has no
 * file descriptors. There is one for the launcher's life, so that it starts before the counters that children inherit
 * are opened: it is no process of the command's.
 */
#ifndef CSINK_LAUNCHER_RUN_WITNESS_H
#define CSINK_LAUNCHER_RUN_WITNESS_H

#include <stdbool.h>
#include <sys/signalfd.h>

/**
 * Start it, unless there is one, before the command is forked: the kernel signals the youngest member of a group first,
 * so that what the launcher has got both others have got before. Without memory or processes there is no witness.
 * Context: thread, the launcher's first one.
 */
void csink_witness_begin(void);

/**
 * Has it got the signal, too, that the launcher read? Each is told of once. False if there is no witness, or no answer
 * in time. Context: thread.
 */
bool csink_witness_saw(const struct signalfd_siginfo *info);

/** End it for good, if there is one. It ends with the launcher in any case, but not with an exec. Context: thread. */
void csink_witness_end(void);

#endif
