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
	/* Called with the command line as it was parsed, and the operands: nr of them, then NULL. */
	int (*main)(const struct csink_options *o, int nr, char **operands);
	const struct csink_option *options; /* may be NULL */
	uint32_t nr_options;
	int usage_status;  /* for a wrong command line; 0: CSINK_EXIT_USAGE */
	int failed_status; /* for what countersink itself could not do: write its answer, for one; 0: CSINK_EXIT_FAILED
			    */
};

/* The members options and nr_options by an X-macro. There is no room for more than CSINK_MAX_OPTIONS. */
#define CSINK_OPTION_ONE(...) +1
#define CSINK_COMMAND_OPTIONS(LIST)                                                                                    \
	.options = (const struct csink_option[]){LIST(CSINK_OPTION_ROW)},                                              \
	.nr_options =                                                                                                  \
		(LIST(CSINK_OPTION_ONE)) + 0 * sizeof(char[(LIST(CSINK_OPTION_ONE)) <= CSINK_MAX_OPTIONS ? 1 : -1])

/* Each command: its directory launcher/commands/NAME defines csink_command_NAME. The order is the one of `help`. */
#define CSINK_COMMANDS(X)                                                                                              \
	X(run)                                                                                                         \
	X(stat)                                                                                                        \
	X(attach)                                                                                                      \
	X(top)                                                                                                         \
	X(report)                                                                                                      \
	X(export)                                                                                                      \
	X(diff)                                                                                                        \
	X(merge)                                                                                                       \
	X(keep)                                                                                                        \
	X(salvage)                                                                                                     \
	X(send)                                                                                                        \
	X(gate)                                                                                                        \
	X(history)                                                                                                     \
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
 * Parse a command line by the command's table, answer --help, --version and --print-config, or refuse it with a line on
 * stderr; else call the command. argv[0] is skipped. Returns what to exit with.
 */
int csink_command_call(const struct csink_command *command, int argc, char **argv);

/** The commands whose names are near a word, as csink_nearest_print() has them. */
void csink_command_hint(const char *word, char *buf, size_t size);

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
