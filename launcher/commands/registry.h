/*
 * The table of commands: main() dispatches by it, and help, completion and the man page check read it.
 */
#ifndef CSINK_REGISTRY_H
#define CSINK_REGISTRY_H

#include <stdint.h>

#include "launcher/base/message.h"
#include "launcher/base/options.h"

struct csink_reservation;

struct csink_command {
	const char *name;
	const char *synopsis; /* after "countersink ": operands and all */
	const char *help;     /* one line */
	int (*main)(int argc, char **argv);
	const struct csink_option *options; /* may be NULL */
	uint32_t nr_options;
	int usage_status;  /* for a wrong command line */
	int failed_status; /* for what countersink itself could not do: write its answer, for one */
};

/* Each command: its directory launcher/commands/NAME defines csink_command_NAME. The order is the one of `help`. */
#define CSINK_COMMANDS(X)                                                                                              \
	X(run)                                                                                                         \
	X(stat)                                                                                                        \
	X(attach)                                                                                                      \
	X(report)                                                                                                      \
	X(export)                                                                                                      \
	X(diff)                                                                                                        \
	X(merge)                                                                                                       \
	X(gate)                                                                                                        \
	X(events)                                                                                                      \
	X(doctor)                                                                                                      \
	X(reserve)                                                                                                     \
	X(persist)                                                                                                     \
	X(completion)                                                                                                  \
	X(help)

#define X(name) extern const struct csink_command csink_command_##name;
CSINK_COMMANDS(X)
#undef X

extern const struct csink_command *const csink_commands[];
extern const uint32_t csink_nr_commands;

/** The command of that name, or NULL. */
const struct csink_command *csink_command_find(const char *name);

/**
 * Parse a command line by the table of the command named argv[0], and answer --help, --version and --print-config.
 * Returns the index of the first operand; or -1, and *status is what to exit with (answered, or refused with a line on
 * stderr).
 */
int csink_command_parse(struct csink_options *o, int argc, char **argv, int *status);

/** Print a command's --help on stdout. */
void csink_command_print_help(const struct csink_command *command);

/**
 * The end of what the command named so has on standard output. Returns @status; or, where not all of it could be
 * written, which is reported, the exit status for that failure.
 */
int csink_end_output(const char *command, int status);

/** What the launcher exits with for the command's waitpid(2) status. */
int csink_exit_status(int status);

/** Say why a reservation that is required could not be made. @undone  what is therefore not done, as a clause. */
void csink_say_not_reserved(const struct csink_reservation *reservation, const char *undone);

/** Say why a command could not be executed. Returns what to exit with. */
int csink_say_exec_failed(const char *command, int err);

#endif
