/* The events that a command's option --events asks for, on this machine. Used by the command's one thread. */
#ifndef CSINK_CHOOSE_EVENTS_H
#define CSINK_CHOOSE_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "include/internal/event.h"

/* Events that sample, and those that are counted with them. */
struct csink_chosen_events {
	struct csink_event_spec specs[CSINK_MAX_EVENTS];
	uint32_t nr;
	char text[2048]; /* the same as a list that the library reads without opening a file; "": too long for it */
	/* Of "alloc", which is in neither: bytes between samples; 0: it is not asked for. */
	uint64_t alloc_period;
	bool has_lock, lock_is_first, lock_has_conditions; /* the same of "lock" */
	bool alloc_is_first, alloc_has_period, is_alloc_alone;
};

/**
 * Parse a list and bind it to this machine's PMUs; of "auto" nothing is known here.
 * @specs  room for max.
 * Returns the number of events, or -errno and *err. Context: init.
 */
int csink_choose_listed(const char *list, struct csink_event_spec *specs, uint32_t max, struct csink_event_error *err);

/**
 * The same for events that sample: "auto" is cycles, else task-clock, and groups have to fit on the counters.
 * @reason  in words, why auto chose its event; at least 160 bytes, unchanged for other lists.
 */
int csink_choose_sampling(const char *list, struct csink_event_spec *specs, uint32_t max, char *reason, size_t size,
			  struct csink_event_error *err);

/** Is "alloc" or "lock" in a list? @name  which of them. Context: any. */
bool csink_list_has(const char *list, const char *name);

/**
 * The same, with the decision which events are sampled together, for the library. "alloc" may be in the list, with
 * ":period=BYTES", and "lock" or "lock:conditions"; where they are all of the list, the other event is that of "auto".
 * @max  at most CSINK_MAX_EVENTS: places that the library needs for events of its own are left out by the caller.
 * Returns 0, or -errno and *err.
 */
int csink_choose_planned(const char *list, uint32_t max, struct csink_chosen_events *chosen, char *reason, size_t size,
			 struct csink_event_error *err);

/**
 * What the library and its preload objects are told of "alloc" and "lock": the values of their options, "" where they
 * are not in the list.
 * @period  what was asked for of all events, 0: nothing; where alloc stands alone, it is alloc's, and set to 0.
 * @alloc   CSINK_ALLOC_TEXT bytes.
 */
#define CSINK_ALLOC_TEXT 48
void csink_own_values(struct csink_chosen_events *chosen, uint64_t *period, bool finds_leaks, char *alloc,
		      const char **lock);

#endif
