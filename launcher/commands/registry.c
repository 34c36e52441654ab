/* The table of commands, and what they all do with their command line: see registry.h. */
#include "launcher/commands/registry.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/nearest.h"
#include "launcher/base/outfile.h"
#include "launcher/base/text.h"
#include "launcher/output/report.h"

const struct csink_command csink_commands[] = {
	{"run", "[run] [OPTION]... [--] COMMAND [ARGUMENT]...", "run a command and say which functions cost what",
	 csink_cmd_run, csink_run_options, CSINK_NR_RUN_OPTS, CSINK_EXIT_RUN_FAILED, CSINK_EXIT_RUN_FAILED},
	{"stat", "stat [OPTION]... [--] COMMAND [ARGUMENT]...",
	 "run a command and say what its processes counted together", csink_cmd_stat, csink_stat_options,
	 CSINK_NR_STAT_OPTS, CSINK_EXIT_RUN_FAILED, CSINK_EXIT_RUN_FAILED},
	{"attach", "attach [OPTION]... [-p PID | PATTERN | -- COMMAND...]",
	 "say which functions of a process that runs already cost what", csink_cmd_attach, csink_attach_options,
	 CSINK_NR_ATTACH_OPTS, CSINK_EXIT_RUN_FAILED, CSINK_EXIT_RUN_FAILED},
	{"report", "report [OPTION]... [FILE]", "print the report of a profile again", csink_cmd_report,
	 csink_report_options, CSINK_NR_REPORT_OPTS, CSINK_EXIT_USAGE, CSINK_EXIT_FAILED},
	{"export", "export [OPTION]... [FILE]", "write a profile in a format that other programs open, or as a page",
	 csink_cmd_export, csink_export_options, CSINK_NR_EXPORT_OPTS, CSINK_EXIT_USAGE, CSINK_EXIT_FAILED},
	{"diff", "diff [OPTION]... A B", "print what changed between two profiles", csink_cmd_diff, csink_diff_options,
	 CSINK_NR_DIFF_OPTS, CSINK_EXIT_USAGE, CSINK_EXIT_FAILED},
	{"merge", "merge [OPTION]... FILE...", "make one profile of many", csink_cmd_merge, csink_merge_options,
	 CSINK_NR_MERGE_OPTS, CSINK_EXIT_USAGE, CSINK_EXIT_FAILED},
	{"gate", "gate [OPTION]... [--] COMMAND [ARGUMENT]...",
	 "find the functions that got slower (0 none, 1 an error, 3 some did)", csink_cmd_gate, csink_gate_options,
	 CSINK_NR_GATE_OPTS, CSINK_EXIT_USAGE, CSINK_EXIT_FAILED},
	{"events", "events [OPTION]... [PATTERN]", "list the events that have a name here, and which of them open",
	 csink_cmd_events, csink_events_options, CSINK_NR_EVENTS_OPTS, CSINK_EXIT_USAGE, CSINK_EXIT_FAILED},
	{"doctor", "doctor [OPTION]...",
	 "say what works here and what does not (0 all, 1 something is missing, 3 refused, 4 user space only)",
	 csink_cmd_doctor, csink_doctor_options, CSINK_NR_DOCTOR_OPTS, CSINK_EXIT_USAGE, CSINK_EXIT_RUN_FAILED},
	{"reserve", "reserve [OPTION]... [COMMAND [ARGUMENT]...]",
	 "have the hardware counters left to you: until a signal, or while a command runs", csink_cmd_reserve,
	 csink_reserve_options, CSINK_NR_RESERVE_OPTS, CSINK_EXIT_FAILED, CSINK_EXIT_FAILED},
	{"persist", "persist detach|attach|list|read|samples [OPTION]... [ID]...",
	 "keep events that outlive whoever opened them, and open them again", csink_cmd_persist, csink_persist_options,
	 CSINK_NR_PERSIST_OPTS, CSINK_EXIT_USAGE, CSINK_EXIT_FAILED},
	{"completion", "completion bash|zsh|fish", "print a shell's completion script", csink_cmd_completion, NULL, 0,
	 CSINK_EXIT_USAGE, CSINK_EXIT_FAILED},
	{"help", "help [COMMAND]", "explain a command", csink_cmd_help, NULL, 0, CSINK_EXIT_USAGE, CSINK_EXIT_FAILED},
};
const uint32_t csink_nr_commands = CSINK_ARRAY_SIZE(csink_commands);

const struct csink_command *csink_command_find(const char *name)
{
	for (uint32_t i = 0; i < csink_nr_commands; i++) {
		if (!strcmp(csink_commands[i].name, name))
			return &csink_commands[i];
	}
	return NULL;
}

int csink_end_output(const char *command, int status)
{
	int err = csink_report_flush(stdout);

	if (!err)
		return status;
	csink_say_unwritten("standard output", -err, NULL);
	return csink_command_find(command)->failed_status;
}

int csink_exit_status(int status)
{
	return WIFSIGNALED(status) ? CSINK_EXIT_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Like env(1): 127 not found, 126 found and not to be run. */
int csink_say_exec_failed(const char *command, int err)
{
	struct csink_nearest near;
	char hint[256] = "";

	if (err == ENOENT && !strchr(command, '/')) {
		csink_nearest_init(&near, command, strlen(command));
		for (uint32_t i = 0; i < csink_nr_commands; i++)
			csink_nearest_offer(&near, csink_commands[i].name);
		csink_nearest_print(&near, hint, sizeof(hint));
	}
	csink_say("%s: %s%s", command, err == ENOENT && !strchr(command, '/') ? "command not found" : strerror(err),
		  hint);
	return err == ENOENT ? CSINK_EXIT_NOT_FOUND : CSINK_EXIT_NOT_EXECUTABLE;
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

int csink_command_parse(struct csink_options *o, int argc, char **argv, int *status)
{
	const struct csink_command *command = csink_command_find(argv[0]);
	bool runs = strstr(command->synopsis, "COMMAND") != NULL; /* options behind it are its own */
	int at = (runs ? csink_options_parse : csink_options_parse_mixed)(o, command->options, command->nr_options,
									  argc, argv);

	if (at < 0) {
		csink_say("%s (see countersink help %s)", o->error, command->name);
		*status = command->usage_status;
		return -1;
	}
	if (!o->request)
		return at;
	if (o->request == CSINK_REQUEST_HELP)
		csink_command_print_help(command);
	else if (o->request == CSINK_REQUEST_VERSION)
		printf("countersink %s\n", CSINK_VERSION);
	else
		csink_options_print_config(stdout, o);
	*status = csink_end_output(command->name, CSINK_EXIT_OK);
	return -1;
}
