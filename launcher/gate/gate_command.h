/* The commands that a gate compares, before they run: see gate_command.c. */
#ifndef CSINK_GATE_COMMAND_H
#define CSINK_GATE_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

/**
 * Split a command line into words, as a shell would: quotes, backslashes, $VARIABLE, wildcards. One that takes a shell
 * (pipes, several commands, redirections, assignments) becomes "/bin/sh -c LINE".
 * @shell  set to whether it does.
 * Returns a malloc'ed array ended by NULL, with its words in the same allocation; NULL without memory, or where the
 * quotes do not match (errno EINVAL).
 */
char **csink_gate_command_split(const char *line, bool *shell);

/** Print a command as a line that a shell would read back. Returns out. */
char *csink_gate_command_print(char *const *argv, char *out, size_t size);

enum csink_gate_same {
	CSINK_GATE_DIFFERENT,
	CSINK_GATE_SAME_CONTENTS, /* program and arguments have other names, and hold the same */
	CSINK_GATE_SAME_RUN,      /* nothing differs but perhaps the name of the program, which is a compiled one and
				     finds its libraries where every program does */
};

/** Are two commands the same program with the same input? */
enum csink_gate_same csink_gate_command_compare(char *const *left, char *const *right);

#endif
