/* The reservation as a command's options ask for it: see reserve_command.h. */
#include "launcher/session/reserve_command.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static void note_errors(const struct csink_reservation *reservation, const struct csink_reservation_command *command)
{
	for (uint32_t i = 0; command->note && i < csink_hooks_nr_lines(&reservation->hooks); i++)
		command->note(command->arg, reservation->hooks.errors[i], true);
}

/* Also true if other processes hold all counters, so that the default events need none. */
static bool wants_counters(const struct csink_reservation_command *command)
{
	return command->own_choice ? csink_reservation_has_pmu()
				   : csink_reservation_is_wanted(command->specs, command->nr_specs);
}

static int make(struct csink_reservation *reservation, const struct csink_reservation_command *command)
{
	struct csink_reservation_wish wish = {
		.require = !strcmp(command->mode, "require"),
		.timeout_ns = command->timeout_ns,
		.hooks = command->hooks,
		.specs = command->specs,
		.nr_specs = command->nr_specs,
		.cancel_fd = csink_reservation_cancel_fd(),
	};
	int err = csink_reservation_make(reservation, &wish);

	close(wish.cancel_fd);
	return err;
}

int csink_reservation_begin(struct csink_reservation *reservation, const struct csink_reservation_command *command)
{
	int err;

	if (!strcmp(command->mode, "no") || !wants_counters(command))
		return 0;
	err = make(reservation, command);
	if (err == -ECANCELED) {
		if (command->inherited)
			csink_inherited_restore(command->inherited);
		return err;
	}
	if (!err) {
		note_errors(reservation, command);
		return 1;
	}
	return err;
}

void csink_reservation_finish(struct csink_reservation *reservation, const struct csink_reservation_command *command)
{
	csink_reservation_end(reservation);
	if (reservation->matters)
		command->note(command->arg, reservation->line, false);
	note_errors(reservation, command);
}
