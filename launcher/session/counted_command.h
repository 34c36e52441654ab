/*
 * Running a command to its end while its whole tree is counted from outside: what run does once and gate many times.
 * Used by the launcher's one thread.
 */
#ifndef CSINK_COUNTED_COMMAND_H
#define CSINK_COUNTED_COMMAND_H

#include <stdbool.h>

#include "launcher/collect/run_directory.h"
#include "launcher/session/find_program.h"
#include "launcher/session/outside.h"
#include "launcher/session/relay.h"

/* What it takes to inject the library into a command. */
struct csink_injection {
	struct csink_program program; /* the file behind argv[0] */
	char library[PATH_MAX];       /* its entry for LD_PRELOAD */
	struct csink_run_directory directory;
};

/**
 * Find the program and the library, and make the run directory.
 * @why  "", or one line: the first obstacle. A program that cannot be injected may still start others that can be.
 * Returns 0: the library is to be injected; -ENOEXEC: the program's loader would complain about it, or fail on it;
 * -ELIBACC: it was not found; else what csink_run_directory_create() returned.
 */
int csink_injection_prepare(struct csink_injection *injection, const char *command, char *why, size_t size);

struct csink_counted_command {
	char **argv, **env;
	const int
		*fds; /* its standard streams, as csink_spawn_with() takes them; NULL: it takes the launcher's place */
	const struct csink_event_spec *specs;
	uint32_t nr_specs;
	const struct csink_program *program; /* the file behind argv[0] */
	const struct csink_inherited *inherited;
	struct csink_relay *relay;
	/* Called when the counters are open and the command is not started yet, with the watch's fd (-1: none). Returns
	 * the fd that is to be waited for in its place. NULL: it is that one. */
	int (*on_open)(void *arg, int watch_fd);
	void (*on_watch)(void *arg); /* called when the watch is to be drained, which it has to do */
	void *arg;
};

/**
 * Open the counters, start the command and wait for it. The counters stay open: csink_outside_close() them.
 * @out      receives what was counted, its status and its wall_ns; what was counted is missing if it never ran.
 * @started  false: it could not be started, which the error is about.
 * Returns 0, also where its exec failed (end->exec_errno), or -errno.
 */
int csink_counted_command_run(const struct csink_counted_command *command, struct csink_outside_watch *watch,
			      struct csink_outside *out, struct csink_relay_end *end, bool *started);

#endif
