/*
 * libpfm4, loaded when a name needs it. Only the parser of events, `countersink events` and their tests call this.
 * Context of everything here: init, thread; libpfm4 keeps state of its own, so never from two threads at once.
 */
#ifndef CSINK_PFM_H
#define CSINK_PFM_H

#include "preload/api/events/event_parse.h"

/**
 * Encode a libpfm4 event with its attributes. What libpfm4 does not take as an attribute may be one of our modifiers.
 * Returns 1 (spec filled, the rest of the modifiers in mods), 0 (libpfm4 has no such event, or is not installed), or
 * -EINVAL and err (the event is known, an attribute of it is wrong).
 */
int csink_pfm_encode(struct csink_event_parser *parser, struct csink_text text, struct csink_event_spec *spec,
		     struct csink_event_modifiers *mods);

/**
 * Offer the names of all events of the PMUs that libpfm4 found here.
 * @note  set to what people should know beside an unknown name: " (libpfm4 is not installed ...)", or "".
 */
void csink_pfm_offer(struct csink_nearest *near, char *note, size_t size);

/** One event as libpfm4 lists it. The strings live as long as the process. */
struct csink_pfm_event {
	const char *pmu, *name, *help;
	bool is_mask; /* a unit mask of the event listed before it */
};

/**
 * Call visit for each event of each PMU that is present, each followed by its unit masks; stops when visit is not 0.
 * Returns what visit returned, 0, or -ENOENT with the reason in why (libpfm4 could not be loaded).
 */
int csink_pfm_list(int (*visit)(void *cookie, const struct csink_pfm_event *event), void *cookie, char *why,
		   size_t size);

/* What libpfm4's table of this CPU says of a code. */
enum csink_pfm_code {
	CSINK_PFM_NO_TABLE, /* libpfm4 is not installed, or does not know this kind of CPU */
	CSINK_PFM_ABSENT,
	CSINK_PFM_PRESENT,
};

/**
 * Is there an event of this code (perf_event_attr.config, without umask and the like) in the table of this CPU?
 * @name  set to "pmu::EVENT" if it is present, to "pmu" if it is absent; size at least 64.
 */
enum csink_pfm_code csink_pfm_find_code(uint64_t code, char *name, size_t size);

#endif
