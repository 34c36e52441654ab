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
#include <sys/types.h>

struct csink_witness {
	pid_t pid; /* 0: there is none */
	struct csink_witness_notes *notes;
};

/**
 * Start it, before the command is forked: the kernel signals the youngest member of a group first, so that what the
 * launcher has got both others have got before. Without memory or processes there is no witness.
 */
void csink_witness_begin(struct csink_witness *witness);

/** Has it got the signal, too, that the launcher read? False if there is no witness, or no answer in time. */
bool csink_witness_saw(struct csink_witness *witness, const struct signalfd_siginfo *info);

void csink_witness_end(struct csink_witness *witness);

#endif
