/*
 * The table of commands: main() dispatches by it, and help, completion and the man page check read it.
 */
#ifndef CSINK_LAUNCHER_COMMANDS_H
#define CSINK_LAUNCHER_COMMANDS_H

#include <stdint.h>

#include "launcher/options.h"

/* Exit statuses of our own, as env(1) and timeout(1) have them; the command's own otherwise. */
enum csink_exit {
	CSINK_EXIT_OK = 0,
	CSINK_EXIT_FAILED = 1,       /* of report and its like, where 1 is nothing that it says of its own */
	CSINK_EXIT_USAGE = 2,        /* of report and its like */
	CSINK_EXIT_REGRESSED = 3,    /* of gate */
	CSINK_EXIT_REFUSED = 3,      /* of doctor: perf_event_open is refused here */
	CSINK_EXIT_USER_ONLY = 4,    /* of doctor: rights are missing, so that the kernel is not seen */
	CSINK_EXIT_RUN_FAILED = 125, /* of run: the command was not started, by our own fault or yours; and of doctor */
	CSINK_EXIT_NOT_EXECUTABLE = 126,
	CSINK_EXIT_NOT_FOUND = 127,
	CSINK_EXIT_SIGNAL = 128, /* + the signal that ended the command */
};

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

extern const struct csink_command csink_commands[];
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

/** Say one line on stderr, "countersink: ..." with its newline, in one write. errno is kept. */
__attribute__((format(printf, 1, 2))) void csink_say(const char *fmt, ...);

/**
 * Say what could not be written, why, and what to do, in one line.
 * @what  the file, "standard output" or an option's name and its value.
 * @kept  what became of the contents ("the profile is in x.pb.gz"); NULL: they are lost.
 */
void csink_say_unwritten(const char *what, int err, const char *kept);

/**
 * The end of what the command named so has on standard output. Returns @status; or, where not all of it could be
 * written, which is said, what that command fails with.
 */
int csink_end_output(const char *command, int status);

/** What the launcher exits with for the command's waitpid(2) status. */
int csink_exit_status(int status);

/** Say why a command could not be executed. Returns what to exit with. */
int csink_say_exec_failed(const char *command, int err);

int csink_cmd_run(int argc, char **argv);
int csink_cmd_stat(int argc, char **argv);
int csink_cmd_attach(int argc, char **argv);
int csink_cmd_report(int argc, char **argv);
int csink_cmd_export(int argc, char **argv);
int csink_cmd_diff(int argc, char **argv);
int csink_cmd_merge(int argc, char **argv);
int csink_cmd_gate(int argc, char **argv);
int csink_cmd_events(int argc, char **argv);
int csink_cmd_doctor(int argc, char **argv);
int csink_cmd_reserve(int argc, char **argv);
int csink_cmd_persist(int argc, char **argv);
int csink_cmd_completion(int argc, char **argv);
int csink_cmd_help(int argc, char **argv);

#endif
