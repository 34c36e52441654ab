/*
 * The reservation that commands make before they use hardware counters: hooks, the lock and its confirmation, and the
 * kernel's own word on the events. Used by run and reserve; says nothing itself.
 *
 * Order: make, start the command, wait for it, end. Where no agent is and no hook, make takes some 100 us and leaves no
 * words behind.
 */
#ifndef CSINK_RESERVATION_H
#define CSINK_RESERVATION_H

#include <stdbool.h>

#include "include/countersink/reserve.h"
#include "include/internal/event.h"
#include "launcher/session/hooks.h"

struct csink_reservation_wish {
	bool require;          /* fail unless it is confirmed */
	bool wait;             /* for a write lock to go */
	uint64_t timeout_ns;   /* UINT64_MAX: none */
	const char *lock_file; /* NULL: the usual one */
	const char *hooks;     /* directory */
	int cancel_fd;         /* -1: none */
	/* What must fit on the counters. */
	const struct csink_event_spec *specs;
	uint32_t nr_specs;
};

struct csink_reservation {
	struct csink_reserve reserve;
	struct csink_hooks hooks;
	bool has_probe;
	struct csink_reserve_probe probe;
	uint64_t timeout_ns;
	bool is_confirmed;
	bool matters;   /* an agent was found, or was required: the line is printed unasked */
	char line[800]; /* how it stands, for people */
};

/** Do these events use hardware counters, so that a reservation serves them? Context: any. */
bool csink_reservation_is_wanted(const struct csink_event_spec *specs, uint32_t nr);

/** Is there a PMU, counting or not (other processes may hold all its counters)? Opens and closes an event. */
bool csink_reservation_has_pmu(void);

/**
 * Make it.
 * Returns 0: go on (reserve.state has the outcome, line the same in words; the caller prints hooks.errors).
 * -EBUSY: it was required and is not confirmed; -ECANCELED: by cancel_fd. Then everything has been released already.
 */
int csink_reservation_make(struct csink_reservation *reservation, const struct csink_reservation_wish *wish);

/**
 * Release it all, after a last query of the agent. The caller prints hooks.errors.
 * Returns 0, or -EBUSY: the agent counted again before the end (line has the message). Does nothing without a
 * reservation.
 */
int csink_reservation_end(struct csink_reservation *reservation);

/**
 * An fd that is readable when one of the signals that end a command has come (INT, TERM, HUP, QUIT, unless ignored);
 * they must be blocked, and stay pending. Returns it (CLOEXEC) or -errno.
 */
int csink_reservation_cancel_fd(void);

#endif
