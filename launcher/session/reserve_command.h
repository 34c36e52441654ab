/*
 * The reservation of a command that measures (run, stat, attach), as its options ask for it. What goes wrong is said
 * here, on standard error; what is worth a line of the result goes to note().
 *
 * Order: begin, before the counters are opened; finish, after the last count.
 */
#ifndef CSINK_RESERVE_COMMAND_H
#define CSINK_RESERVE_COMMAND_H

#include "launcher/base/options.h"
#include "launcher/session/inherited.h"
#include "launcher/session/reservation.h"

struct csink_reservation_command {
	const struct csink_options *options;
	uint32_t mode, timeout, hooks; /* the numbers of --reserve, --reserve-timeout and --reserve-hooks */
	const struct csink_event_spec *specs;
	uint32_t nr_specs;
	/* The events are no wish of the user's: counters are for them if there are any, whether they open now or not.
	 */
	bool own_choice;
	const struct csink_inherited *inherited;
	const char *undone; /* what is not done without a reservation that is required: "the command was not run" */
	void (*note)(void *arg, const char *line, bool is_error);
	void *arg;
};

/**
 * Have hardware counters left to us, where any are wanted.
 * Returns 1: made, so that events of our own choice may open now that did not; 0: nothing to reserve, or not to be;
 * -EBUSY: required, and not to be had, which has been said; -ECANCELED: a signal came, which is pending and, with
 * everything restored as it was inherited, ends this process.
 */
int csink_reservation_begin(struct csink_reservation *reservation, const struct csink_reservation_command *command);

/** Release it. Does nothing if nothing is held. */
void csink_reservation_finish(struct csink_reservation *reservation, const struct csink_reservation_command *command);

#endif
