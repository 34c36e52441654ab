/* Running a command while it is counted from outside: see counted_command.h. */
#include "launcher/session/counted_command.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "include/internal/clock.h"
#include "launcher/session/alone.h"
#include "launcher/session/spawn.h"
#include "preload/core/program_file.h"

int csink_injection_prepare(struct csink_injection *injection, const char *command, char *why, size_t size)
{
	int err;

	csink_program_find(command, &injection->program);
	snprintf(why, size, "%s%s", injection->program.reason ? "it " : "", injection->program.why);
	if (!csink_program_supports_preload(injection->program.reason))
		return -ENOEXEC;
	if (csink_library_find(injection->library, why, size))
		return -ELIBACC;
	err = csink_run_directory_create(&injection->directory);
	if (err)
		snprintf(why, size, "no directory for recordings: %s", strerror(-err));
	return err;
}

static int start(const struct csink_counted_command *command, struct csink_child *child)
{
	if (command->fds)
		return csink_spawn_with(command->argv, command->env, command->inherited, command->fds, child);
	return csink_spawn(command->argv, command->env, command->inherited, child);
}

int csink_counted_command_run(const struct csink_counted_command *command, struct csink_outside_watch *watch,
			      struct csink_outside *out, struct csink_relay_end *end, bool *started)
{
	struct csink_spare_fds spare;
	struct csink_child child;
	uint64_t start_ns;
	int err, watch_fd;

	/* The counters must not take the last descriptors, without which the command could not be started. */
	csink_spare_fds_take(&spare);
	csink_outside_open(watch, command->specs, command->nr_specs);
	watch_fd = csink_outside_fd(watch);
	if (command->on_open)
		watch_fd = command->on_open(command->arg, watch_fd);
	csink_spare_fds_release(&spare);
	start_ns = csink_monotonic_ns();
	err = start(command, &child);
	*started = !err;
	if (err)
		return err;
	err = csink_relay_wait(command->relay, &child, watch_fd, command->on_watch, command->arg, end);
	out->wall_ns = csink_monotonic_ns() - start_ns;
	if (err || end->exec_errno)
		return err;
	out->command_status = end->status;
	csink_outside_finish(watch, &end->usage, child.pid,
			     command->program->is_unreadable ? CSINK_SPAWN_UNREADABLE : command->program->reason, out);
	return 0;
}
