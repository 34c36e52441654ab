/* `countersink help [COMMAND]`: the overview, or a command's own --help. */
#include <stdio.h>

#include "launcher/commands/registry.h"

static int print_overview(void)
{
	const struct csink_command *run = csink_command_find("run");

	printf("Usage: countersink %s\n"
	       "       countersink COMMAND ...\n\n"
	       "Run a command, unchanged, and report the cost of its functions.\n\n"
	       "Commands (if the first word names none, the command is run):\n",
	       run->synopsis);
	for (uint32_t i = 0; i < csink_nr_commands; i++)
		csink_print_wrapped(stdout, printf("  %-10s", csink_commands[i]->name), 14, csink_commands[i]->help);
	putchar('\n');
	csink_options_print_help(stdout, run->options, run->nr_options);
	printf("\nOptions of other commands: countersink help COMMAND. More: man countersink\n");
	return csink_end_output("help", CSINK_EXIT_OK);
}

static int main_help(const struct csink_options *o, int nr, char **operands)
{
	const struct csink_command *command = nr ? csink_command_find(*operands) : NULL;
	char hint[256];

	(void)o;
	if (!nr)
		return print_overview();
	if (!command) {
		csink_command_hint(*operands, hint, sizeof(hint));
		return csink_fail(CSINK_EXIT_USAGE, "no command '%.64s'%s (see countersink help)", *operands, hint);
	}
	csink_command_print_help(command);
	return csink_end_output("help", CSINK_EXIT_OK);
}

const struct csink_command csink_command_help = {
	.name = "help",
	.synopsis = "help [COMMAND]",
	.help = "explain a command",
	.main = main_help,
};
