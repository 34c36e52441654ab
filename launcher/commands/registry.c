/* The table of commands, and what they all do with their command line: see registry.h. */
#include "launcher/commands/registry.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "include/internal/base.h"
#include "include/internal/nearest.h"
#include "launcher/output/report.h"
#include "launcher/session/reservation.h"

#define X(name) &csink_command_##name,
const struct csink_command *const csink_commands[] = {CSINK_COMMANDS(X)};
#undef X
const uint32_t csink_nr_commands = CSINK_ARRAY_SIZE(csink_commands);

const struct csink_command *csink_command_find(const char *name)
{
	for (uint32_t i = 0; i < csink_nr_commands; i++) {
		if (!strcmp(csink_commands[i]->name, name))
			return csink_commands[i];
	}
	return NULL;
}

int csink_end_output(const char *command, int status)
{
	int err = csink_report_flush(stdout);

	if (!err)
		return status;
	csink_say_unwritten("standard output", -err, NULL);
	return csink_command_find(command)->failed_status ?: CSINK_EXIT_FAILED;
}

int csink_exit_status(int status)
{
	return WIFSIGNALED(status) ? CSINK_EXIT_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
}

void csink_command_hint(const char *word, char *buf, size_t size)
{
	struct csink_nearest near;

	csink_nearest_init(&near, word, strlen(word));
	for (uint32_t i = 0; i < csink_nr_commands; i++)
		csink_nearest_offer(&near, csink_commands[i]->name);
	csink_nearest_print(&near, buf, size);
}

/* Like env(1): 127 not found, 126 found and not to be run. */
int csink_say_exec_failed(const char *command, int err)
{
	char hint[256] = "";

	if (err == ENOENT && !strchr(command, '/'))
		csink_command_hint(command, hint, sizeof(hint));
	return csink_fail(err == ENOENT ? CSINK_EXIT_NOT_FOUND : CSINK_EXIT_NOT_EXECUTABLE, "%s: %s%s", command,
			  err == ENOENT && !strchr(command, '/') ? "command not found" : strerror(err), hint);
}

void csink_say_not_reserved(const struct csink_reservation *reservation, const char *undone)
{
	for (uint32_t i = 0; i < csink_hooks_nr_lines(&reservation->hooks); i++)
		csink_say("%s", reservation->hooks.errors[i]);
	csink_say("%s; %s (--reserve=auto would)", reservation->line, undone);
}

void csink_command_print_help(const struct csink_command *command)
{
	char text[256];

	printf("Usage: countersink %s\n\n", command->synopsis);
	snprintf(text, sizeof(text), "%c%s.", command->help[0] - 'a' + 'A', command->help + 1);
	csink_print_wrapped(stdout, 0, 0, text);
	putchar('\n');
	csink_options_print_help(stdout, command->options, command->nr_options);
	printf("\nMore: man countersink%s%s\n", command->nr_options ? "-" : "",
	       command->nr_options ? command->name : "");
}

/* Another command whose option of the same name takes the value that was refused, or NULL. */
static const char *command_that_takes(const struct csink_options *o)
{
	for (uint32_t c = 0; o->unknown && c < csink_nr_commands; c++)
		for (uint32_t i = 0; i < csink_commands[c]->nr_options; i++)
			if (csink_option_takes(&csink_commands[c]->options[i], o->unknown_id, o->unknown->text))
				return csink_commands[c]->name;
	return NULL;
}

int csink_command_call(const struct csink_command *command, int argc, char **argv)
{
	struct csink_options o;
	bool runs = strstr(command->synopsis, "COMMAND") != NULL; /* options behind it are its own */
	int at = (runs ? csink_options_parse : csink_options_parse_mixed)(&o, command->options, command->nr_options,
									  argc, argv);

	if (at < 0) {
		const char *other = command_that_takes(&o);

		return csink_fail(command->usage_status ?: CSINK_EXIT_USAGE, "%s%s%s%s (see countersink help %s)",
				  o.error, other ? "; it is for countersink " : "", other ? other : "",
				  other ? " alone" : "", command->name);
	}
	if (!o.request)
		return command->main(&o, argc - at, argv + at);
	if (o.request == CSINK_REQUEST_HELP)
		csink_command_print_help(command);
	else if (o.request == CSINK_REQUEST_VERSION)
		printf("countersink %s\n", CSINK_VERSION);
	else
		csink_options_print_config(stdout, &o);
	return csink_end_output(command->name, CSINK_EXIT_OK);
}
