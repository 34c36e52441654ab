/*
 * Events of which everything is known: what agent and API share of them. The generic names, what modifiers set, whether
 * an event counts, and the list in the form that csink_events_print writes, which is read back without a file, libpfm4
 * or sysfs. Names that need those are the API's: preload/api/events.
 *
 * Context of everything here: init, thread. Nothing is shared or allocated.
 */
#ifndef CSINK_EVENT_SPEC_H
#define CSINK_EVENT_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "include/internal/event.h"

/* A piece of the list; not NUL-ended. */
struct csink_text {
	const char *at;
	size_t length;
};

static inline struct csink_text csink_text(const char *at, const char *end)
{
	return (struct csink_text){at, (size_t)(end - at)};
}

/** True if the text is exactly this word. */
bool csink_text_is(struct csink_text text, const char *word);

/** Copy to buf, cut to size, always NUL-ended. */
void csink_text_copy(struct csink_text text, char *buf, size_t size);

/** Read a whole decimal or 0x number; false if it is none or does not fit. */
bool csink_text_number(struct csink_text text, uint64_t *value);

/* The values of modifiers and terms, before they are applied to an attr. */
struct csink_event_modifiers {
	bool user, kernel, hv, guest, host, no_idle;
	bool pinned, exclusive;
	uint32_t precise;
	uint64_t period, freq; /* 0: not given */
	bool exact_name;       /* a name= was given: modifiers are not appended to it */
};

/** A spec of no event yet: no attr but its size, counted in "count", scale 1. */
void csink_event_init(struct csink_event_spec *spec);

/** One of perf's generic names, or its alias. Returns 1 with attr and name set, or 0: it is none. */
int csink_event_from_generic(struct csink_text name, struct csink_event_spec *spec);

/** The event of a generic name without modifiers, complete. The name must be one of the table's. */
void csink_event_named(const char *name, struct csink_event_spec *spec);

/** One of perf's modifier letters: u k h G H I p D e. Returns false for another one. */
bool csink_event_modifiers_letter(struct csink_event_modifiers *mods, char letter);

/** Put modifiers into attr and name, and complete rec: nothing is checked. */
void csink_event_modifiers_set(const struct csink_event_modifiers *mods, struct csink_event_spec *spec);

/** The word of attr that a term names (config, config1...); NULL: no such word, or none that this build knows. */
uint64_t *csink_event_config_word(struct perf_event_attr *attr, struct csink_text word);

/** Take a term that csink_events_print alone writes: unit, scale, pmu, cpus, wide. Returns false for another one. */
bool csink_event_printed_term(struct csink_event_spec *spec, struct csink_text key, struct csink_text value);

/**
 * Read a list in the form that csink_events_print writes. Generic names with letters are of that form, too.
 * Returns the number of events, or -EINVAL: the list is of another form, or has more than max events, and
 * csink_events_parse has to read it. No system call, less than 1 us for each event.
 */
int csink_events_read(const char *list, struct csink_event_spec *out, uint32_t max);

/* What reading an fd of csink_event_open_count gives. */
struct csink_event_count {
	uint64_t value, enabled_ns, running_ns;
};

/**
 * Open an event on the calling thread, to be counted and never sampled. A leader is disabled and pinned: it counts all
 * the time, or loses its counter and reads as end of file.
 * @leader  the fd of the group's leader, or -1.
 * Returns an fd or -errno. Context: init, thread.
 */
int csink_event_open_count(const struct perf_event_attr *asked, int leader);

/**
 * Open the event on the calling thread, in user space, and see whether it counts what the thread does then.
 * Returns 1, 0 (it opens and does not count) or -errno of perf_event_open(2). errno may change. A few microseconds.
 */
int csink_event_does_count(const struct csink_event_spec *spec);

#endif
