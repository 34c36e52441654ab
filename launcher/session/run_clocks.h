/*
 * How long the tasks that are counted ran, in all and on each kind of CPU: software events, which never have to wait,
 * are counted beside the hardware's, for csink_event_could_run_ns to distinguish a wait for a counter from a stay on
 * another kind of CPU. They are opened only where the events' own times do not show it: each costs every task that
 * starts and ends 1.5 us (measured with 24, Linux 6.18).
 *
 * Order: init, open (more than once, if on several tasks), read, close. Used by the command's one thread.
 */
#ifndef CSINK_RUN_CLOCKS_H
#define CSINK_RUN_CLOCKS_H

#include "include/internal/event.h"

#define CSINK_MAX_CLOCKS 5 /* one for all CPUs, and one for each of four kinds */

struct csink_clocks {
	struct csink_event_spec specs[CSINK_MAX_CLOCKS];
	uint32_t nr;
	struct csink_clocks_fd {
		int fd;
		uint32_t clock;
	} * fds; /* each clock of a kind has one for each of the kind's CPUs */
	uint32_t nr_fds, cap_fds;
	uint32_t broken; /* bit i: clock i did not open everywhere, and is not used */
};

/* Whose time. */
struct csink_clocks_how {
	int32_t tid;  /* 0: the caller */
	bool inherit; /* with all that it starts */
	bool at_exec; /* off until a child execs */
};

/** Choose the clocks that these events need: none, where they need no more counters than every PMU has. */
void csink_clocks_init(struct csink_clocks *clocks, const struct csink_event_spec *specs, uint32_t nr);

/** Open them on one more task. What does not open is missing from what is read. */
void csink_clocks_open(struct csink_clocks *clocks, const struct csink_clocks_how *how);

/** Stop them; what they have stays to be read. */
void csink_clocks_stop(const struct csink_clocks *clocks);

/**
 * What they have, put behind the times of the events.
 * @times  room for CSINK_MAX_CLOCKS; its specs are valid as long as clocks is.
 * Returns how many there are.
 */
uint32_t csink_clocks_read(const struct csink_clocks *clocks, struct csink_event_times *times);

/** Close them; they may be opened again. */
void csink_clocks_close(struct csink_clocks *clocks);

#endif
