/*
 * The reservation of a command that measures (run, stat, attach), as its options ask for it. What is worth a line of
 * the result goes to note().
 *
 * Order: begin, before the counters are opened; finish, after the last count.
 */
#ifndef CSINK_RESERVE_COMMAND_H
#define CSINK_RESERVE_COMMAND_H

#include "launcher/session/inherited.h"
#include "launcher/session/reservation.h"

struct csink_reservation_command {
	const char *mode; /* auto, require or no */
	uint64_t timeout_ns;
	const char *hooks; /* their directory */
	const struct csink_event_spec *specs;
	uint32_t nr_specs;
	/* The events are no wish of the user's: counters are for them if there are any, whether they open now or not.
	 */
	bool own_choice;
	const struct csink_inherited *inherited;                  /* NULL: not to be restored */
	void (*note)(void *arg, const char *line, bool is_error); /* NULL: not wanted */
	void *arg;
};

/**
 * Have hardware counters left to us, where any are wanted.
 * Returns 1: made, so that events of our own choice may open now that did not; 0: nothing to reserve, or not to be;
 * -EBUSY: required, and not to be had, for the reason in reservation->line and in its hooks' errors; -ECANCELED: a
 * signal came, which is pending and, with everything restored as it was inherited, ends this process.
 */
int csink_reservation_begin(struct csink_reservation *reservation, const struct csink_reservation_command *command);

/** Release it. Does nothing if nothing is held. */
void csink_reservation_finish(struct csink_reservation *reservation, const struct csink_reservation_command *command);

#endif
