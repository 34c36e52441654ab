/* The entry: the first word names the command; if it names none, it is the command line of `run`. */
#include <string.h>

#include "launcher/base/standard_streams.h"
#include "launcher/commands/registry.h"
#include "launcher/session/ended_run.h"
#include "launcher/session/inherited.h"
#include "preload/core/seccomp_probe.h"

int main(int argc, char **argv)
{
	const struct csink_command *command;

	csink_filters_begin();
	csink_ended_run_begin();
	csink_inherited_begin();
	if (!csink_filters_forbid_all(csink_deadly_calls))
		csink_standard_streams_fill();
	if (argc < 2)
		return csink_fail(
			CSINK_EXIT_RUN_FAILED,
			"no command given: countersink [OPTION]... [--] COMMAND [ARGUMENT]... (see countersink help)");
	command = csink_command_find(argv[1]);
	if (command)
		return csink_command_call(command, argc - 1, argv + 1);
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		return csink_command_call(&csink_command_help, 1, argv + 1);
	return csink_command_call(&csink_command_run, argc, argv);
}
