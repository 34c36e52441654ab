/* The entry: the first word names the command; if it names none, it is the command line of `run`. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "launcher/commands/registry.h"
#include "launcher/session/inherited.h"
#include "preload/core/seccomp_probe.h"

/*
 * Started with a standard stream closed, our own files would land on its number, and what is meant for stderr in one of
 * them. So fill the gaps, by what cannot be written, for what was to be printed there is lost; O_CLOEXEC gives the
 * command its streams as closed as they were.
 */
static void fill_standard_streams(void)
{
	for (int fd = 0; fd <= 2; fd++) {
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
			open("/dev/null", O_RDONLY | O_CLOEXEC);
	}
}

int main(int argc, char **argv)
{
	const struct csink_command *command;

	csink_filters_begin();
	csink_inherited_begin();
	if (!csink_filters_forbid_all(csink_deadly_calls))
		fill_standard_streams();
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
