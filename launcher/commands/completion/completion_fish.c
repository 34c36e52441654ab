/* Completion for fish: see completion.h. */
#include <stdio.h>

#include "include/internal/base.h"
#include "launcher/commands/completion/completion.h"

/* What fish is to complete by. */
static void print_completed(const struct csink_completed *completed)
{
	static const char *const actions[] = {
		[CSINK_COMPLETE_NOTHING] = " -x",
		[CSINK_COMPLETE_FILE] = " -r -F",
		[CSINK_COMPLETE_DIRECTORY] = " -x -a '(__fish_complete_directories)'",
		[CSINK_COMPLETE_PROFILE] = " -k -x -a '(__countersink_profiles)'",
		[CSINK_COMPLETE_PID] = " -x -a '(__countersink_pids)'",
		[CSINK_COMPLETE_PROCESS] = " -x -a '(__countersink_processes) (__countersink_program)'",
		[CSINK_COMPLETE_PROGRAM] = " -x -a '(__countersink_program)'",
	};

	if (completed->what == CSINK_COMPLETE_WORDS)
		printf(" -x -a '%s'", completed->words);
	else
		fputs(actions[completed->what], stdout);
}

static void print_option(const struct csink_command *command, const struct csink_option *opt)
{
	struct csink_completed values;
	char name[CSINK_OPTION_NAME];

	csink_option_name(opt, name);
	printf("complete -c countersink -n '__countersink_is %s' -l %s", command->name, name);
	if (opt->short_name)
		printf(" -s %c", opt->short_name);
	if (csink_completion_takes_value(opt)) {
		csink_completion_of_option(opt, &values);
		if (values.what == CSINK_COMPLETE_PROGRAM)
			printf(" -x -a '(complete -C (commandline -ct))'");
		else
			print_completed(&values);
	}
	printf(" -d '");
	csink_completion_print_quoted(opt->help, "\\");
	printf("'\n");
}

/* The options whose value may be the next word. */
static void print_valued(const struct csink_command *command)
{
	char name[CSINK_OPTION_NAME];

	printf("set -g __countersink_valued_%s", command->name);
	CSINK_COMPLETION_EACH(opt, command)
	{
		if (!csink_completion_takes_value(opt))
			continue;
		csink_option_name(opt, name);
		printf(" --%s", name);
		if (opt->short_name)
			printf(" -%c", opt->short_name);
	}
	putchar('\n');
}

static void print_command(const struct csink_command *command)
{
	struct csink_completed operands;

	printf("complete -c countersink -n __countersink_is_first -a %s -d '", command->name);
	csink_completion_print_quoted(command->help, "\\");
	printf("'\n");
	csink_completion_of_operands(command, &operands);
	printf("complete -c countersink -n '__countersink_is %s%s'", command->name,
	       operands.what == CSINK_COMPLETE_WORDS ? "; and not __countersink_has_operands" : "");
	print_completed(&operands);
	putchar('\n');
	print_valued(command);
	CSINK_COMPLETION_EACH(opt, command)
	print_option(command, opt);
}

void csink_completion_print_fish(void)
{
	printf("# fish completion for countersink %s, made by: countersink completion fish\n"
	       "complete -c countersink -e\ncomplete -c countersink -f\nset -g __countersink_commands",
	       CSINK_VERSION);
	for (uint32_t i = 0; i < csink_nr_commands; i++)
		printf(" %s", csink_commands[i]->name);
	putchar('\n');
	fputs(csink_completion_fish, stdout);
	for (uint32_t i = 0; i < csink_nr_commands; i++)
		print_command(csink_commands[i]);
	for (int i = 1; i < CSINK_NR_REQUESTS; i++) {
		const struct csink_request_option *r = &csink_request_options[i];

		printf("complete -c countersink -l %s", r->name);
		if (r->short_name)
			printf(" -s %c", r->short_name);
		printf(" -d '%s'\n", r->help);
	}
}
