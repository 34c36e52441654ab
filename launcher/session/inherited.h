/*
 * What a launcher changes for itself and must hand on to its commands unchanged: signal dispositions, the signal mask
 * and the limit on open files; and the CPUs of its commands, if they differ from the launcher's own.
 */
#ifndef CSINK_INHERITED_H
#define CSINK_INHERITED_H

#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>

struct csink_inherited {
	sigset_t mask;
	struct sigaction actions[_NSIG]; /* [signal] */
	struct rlimit files;
	bool has_cpus; /* commands may run on those of cpus alone; set by the caller, not by csink_inherited_take() */
	cpu_set_t cpus;
};

/**
 * Ignore SIGXFSZ, for every command: an output that exceeds RLIMIT_FSIZE is then reported as an error, and does not end
 * the launcher. Context: init, once.
 */
void csink_inherited_begin(void);

/** Undo that, where a command is executed without csink_inherited_take(). Context: any; also between fork and exec. */
void csink_inherited_end(void);

/** Remember them, then set the launcher's own: SIGPIPE ignored, SIGCHLD default, as many files as the hard limit
 * allows. */
void csink_inherited_take(struct csink_inherited *inherited);

/** Put them back. Context: any; also between fork and exec. */
void csink_inherited_restore(const struct csink_inherited *inherited);

/** The signals that end a command: INT, TERM, HUP, QUIT; without those that are ignored now. Context: any. */
void csink_ending_signals(sigset_t *set);

/** Was the signal ignored when the launcher was started (nohup, a background job of a script)? */
bool csink_inherited_ignores(const struct csink_inherited *inherited, int signo);

#endif
