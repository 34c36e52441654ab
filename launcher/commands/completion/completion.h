/* Shell completion: cmd_completion.c derives it from the option tables; completion_bash.c, completion_zsh.c and
 * completion_fish.c print it for a shell.
 */
#ifndef CSINK_COMPLETION_H
#define CSINK_COMPLETION_H

#include <stdbool.h>

#include "launcher/commands/registry.h"

/* What can be completed at a place of a command line. The shells' texts have the names of csink_completion_name(). */
enum csink_completion {
	CSINK_COMPLETE_NOTHING,
	CSINK_COMPLETE_WORDS, /* csink_completion's words */
	CSINK_COMPLETE_FILE,
	CSINK_COMPLETE_DIRECTORY,
	CSINK_COMPLETE_PROFILE, /* a file or directory with a profile or recordings */
	CSINK_COMPLETE_PID,
	CSINK_COMPLETE_PROCESS, /* a process by its name; a program behind "--" */
	CSINK_COMPLETE_PROGRAM, /* in $PATH; with its own completion behind it, where it is an operand */
};

struct csink_completed {
	enum csink_completion what;
	char words[1024]; /* of CSINK_COMPLETE_WORDS, a blank between them */
};

/** What an option takes: by the name of its value in the table. */
void csink_completion_of_option(const struct csink_option *opt, struct csink_completed *out);

/** What a command's operands are, by its synopsis. CSINK_COMPLETE_WORDS describes its first operand only. */
void csink_completion_of_operands(const struct csink_command *command, struct csink_completed *out);

/** Whether an option takes a value. */
static inline bool csink_completion_takes_value(const struct csink_option *opt)
{
	return !(opt->flags & CSINK_OPT_BOOL);
}

/* A loop over a command's options, but for those that cannot be given on a command line. */
#define CSINK_COMPLETION_EACH(opt, command)                                                                            \
	for (const struct csink_option *opt = (command)->options; opt < (command)->options + (command)->nr_options;    \
	     opt++)                                                                                                    \
		if (!(opt->flags & CSINK_OPT_ENV_ONLY))

/** "<file>" and the like, or the words. */
const char *csink_completion_name(const struct csink_completed *completed);

/** A text inside single quotes, with a backslash before what is special there. */
void csink_completion_print_quoted(const char *text, const char *special);

/*
 * The functions of a shell: functions.bash and functions.fish. The words of compgen -W are expanded by bash as a
 * command line is: none of them may be foreign. Names of processes are taken only if they are of harmless characters.
 */
extern const char csink_completion_bash[], csink_completion_fish[];

void csink_completion_print_bash(void);
void csink_completion_print_zsh(void);
void csink_completion_print_fish(void);

#endif
