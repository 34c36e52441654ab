/*
 * Distinguishes a signal that was sent to the launcher alone from one that was sent to its whole process group: after
 * kill(2) both look the same. The witness is a process in the launcher's group that gets the latter only. It has every
 * signal blocked, takes them with sigwaitinfo(2), and writes them to memory that it shares with the launcher. It has no
 * file descriptors.
 */
#ifndef CSINK_WITNESS_H
#define CSINK_WITNESS_H

#include <stdbool.h>
#include <sys/signalfd.h>

/**
 * Start the witness, before any event is opened that children inherit, so that the witness is not measured. The kernel
 * signals the youngest member of a group first, so the witness gets a signal before the launcher does. If there is no
 * memory, or no further process is allowed, there is no witness. It ends with exit(3). Context: init.
 */
void csink_witness_begin(void);

/** End the witness, before the launcher executes another program. Context: thread. */
void csink_witness_end(void);

/** Did the witness get the signal as well that the launcher read? False if there is no witness, or no answer in time.
 */
bool csink_witness_saw(const struct signalfd_siginfo *info);

#endif
