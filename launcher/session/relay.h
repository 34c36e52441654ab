/*
 * Waiting for the command, with its signals: the launcher stands where the shell expects the command, so what reaches
 * the launcher alone is forwarded (by kill(2), or by the kernel to the session's leader), what reaches its whole
 * process group is not sent twice, and stopping and continuing the one does it to the other.
 *
 * All signals are taken from a signalfd in one poll loop: there are no handlers, and nothing is interrupted.
 */
#ifndef CSINK_RELAY_H
#define CSINK_RELAY_H

#include <stdbool.h>
#include <sys/resource.h>

#include "launcher/session/inherited.h"
#include "launcher/session/spawn.h"

struct csink_relay {
	int signal_fd;
	sigset_t relayed;           /* signals that are handed on; blocked from init on, until the launcher ends */
	void (*on_term)(void *arg); /* called once, when SIGTERM was passed on; NULL: nothing is */
	void *on_term_arg;
	int ending;       /* the last INT, TERM, HUP or QUIT from outside, whatever the command made of it; 0: none */
	bool holds_first; /* the first of these is not handed on: the command cleans up. Set by the caller */
};

/** Block and collect the signals that are to be relayed (those that were ignored when we started stay so). 0 or -errno.
 */
int csink_relay_init(struct csink_relay *relay, const struct csink_inherited *inherited);

struct csink_relay_end {
	int status;     /* waitpid(2)'s */
	int exec_errno; /* != 0: the command never ran */
	struct rusage usage;
};

/**
 * Wait until the command has ended, relaying signals.
 * @watch_fd  when it becomes readable, on_watch(arg) is called; -1: none.
 * Returns 0, or -errno of wait4 or poll, which do not fail.
 */
int csink_relay_wait(struct csink_relay *relay, struct csink_child *child, int watch_fd, void (*on_watch)(void *arg),
		     void *arg, struct csink_relay_end *end);

/**
 * The command has ended and the launcher works on its own: from now on INT, TERM, HUP and QUIT end it, as the shell
 * expects. on_signal(arg) is called first, in a thread of its own, once. Returns 0 or -errno.
 */
int csink_relay_release(struct csink_relay *relay, void (*on_signal)(void *arg), void *arg);

#endif
