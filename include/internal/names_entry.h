/*
 * How the injected library asks the API library for events by their names: through one function that the latter exports
 * under the version CSINK_PRIVATE, found with dlsym(3). Both sides are of one build of countersink; the function
 * refuses another one.
 */
#ifndef CSINK_INTERNAL_NAMES_ENTRY_H
#define CSINK_INTERNAL_NAMES_ENTRY_H

#include "include/internal/event.h"

#define CSINK_API_LIBRARY "libcountersink-api.so.0"
#define CSINK_NAMES_ENTRY "csink_private_names"

struct csink_names_ask {
	char version[16];      /* CSINK_VERSION of the caller; the first member in all versions */
	uint32_t spec_bytes;   /* sizeof(struct csink_event_spec), which depends on the kernel's headers */
	uint32_t error_bytes;  /* sizeof(struct csink_event_error) */
	const char *list;      /* of events, as csink_events_parse takes it, or "auto" */
	uint32_t max;          /* room in out */
	uint32_t is_planned;   /* the list comes from a launcher: it is bound to this machine's PMUs and checked */
	uint32_t deadly_calls; /* csink_deadly_calls and csink_calls_off of the caller: what a seccomp filter kills for
				*/
	uint32_t calls_off;
};

/**
 * Resolve a list: parse it, bind it to the PMUs, check it, and decide what is sampled together.
 * Returns the number of events (at least 1), or as csink_events_parse, _bind, _check and _plan; -ENOEXEC: the caller is
 * of another version. *err says in words what was wrong, but for -ENOEXEC.
 * Context: init.
 */
int csink_private_names(const struct csink_names_ask *ask, struct csink_event_spec *out, struct csink_event_error *err);

#endif
