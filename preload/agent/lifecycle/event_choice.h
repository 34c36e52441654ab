/* What a process samples where a name has to be looked up: the API library is loaded for that alone. */
#ifndef CSINK_EVENT_CHOICE_H
#define CSINK_EVENT_CHOICE_H

#include <stddef.h>
#include <stdint.h>

#include "include/internal/event.h"

/**
 * The events of csink_config.events, ready to be opened. What csink_events_read understands needs nothing; for the rest
 * libcountersink-api.so.0 is loaded from beside this library, and closed again. Where the list is no good, or that
 * library is not there, and where none is named, it is the default: cycles where a PMU opens and counts them, else
 * task-clock.
 * @problem  set to why, for people, if the list cannot be used; left alone else.
 * Returns the number of events, at least 1. Keeps errno. Context: init.
 */
int csink_event_choice_make(struct csink_event_spec *events, uint32_t max, char *problem, size_t size);

#endif
