/*
 * What the files that parse events share: the state of one parse, and one function a source of names. Included by
 * preload/api/events only; everyone else wants include/internal/event.h.
 * Context of everything here: init, thread.
 */
#ifndef CSINK_EVENT_PARSE_H
#define CSINK_EVENT_PARSE_H

#include <stdbool.h>

#include "include/internal/base.h"
#include "include/internal/event.h"
#include "preload/core/event/event_spec.h"

/* The kernel's clocks tick no oftener than this, whatever is asked (and round a shorter period up in silence). */
#define CSINK_CLOCK_PERIOD_MIN_NS 10000

struct csink_event_parser {
	const struct csink_event_roots *roots; /* never NULL, devices never NULL */
	const char *list;
	struct csink_event_spec *specs;
	uint32_t max, nr, nr_groups;
	bool in_braces;
	struct csink_event_error *err;
};

/** Describe the failure in parser->err, at this place of the list. Returns err (negative). */
__attribute__((format(printf, 4, 5))) int csink_event_fail(struct csink_event_parser *parser, int err,
							   struct csink_text where, const char *fmt, ...);

/** Where a character is outside quotes; end where it is not. */
const char *csink_event_find(const char *at, const char *end, char c);

/* One source of names each: 1 if the name is known (spec filled), 0 if it is not theirs, -errno and err on a mistake.
 */
int csink_event_from_cache(struct csink_text name, struct csink_event_spec *spec);
int csink_event_from_raw(struct csink_text name, struct csink_event_spec *spec);

/**
 * PMU/terms/ or #TYPE/terms/: terms is what stands between the slashes.
 * Returns 0 or -errno and err.
 */
int csink_event_from_pmu(struct csink_event_parser *parser, struct csink_text pmu, struct csink_text terms,
			 struct csink_event_spec *spec, struct csink_event_modifiers *mods);

/** A tracepoint. Returns 1, 0 (no such one), -EACCES (tracefs is there and closed to us); err is not set. */
int csink_event_from_tracepoint(struct csink_event_parser *parser, struct csink_text subsystem, struct csink_text name,
				struct csink_event_spec *spec);

/** Explain in err why subsystem:name is no tracepoint. found is the result of csink_event_from_tracepoint. Returns
 * -errno.
 */
int csink_event_fail_tracepoint(struct csink_event_parser *parser, struct csink_text where, struct csink_text subsystem,
				struct csink_text name, int found);

/** Read the modifiers in text, which begins after the first ':'. Returns 0 or -errno and err. */
int csink_event_modifiers_parse(struct csink_event_parser *parser, struct csink_text text,
				struct csink_event_modifiers *mods);

/** True if the text could be a modifier: letters of perf's, or one of the long ones. */
bool csink_event_is_modifier(struct csink_text text);

/** Set the period or the frequency from text; where is the word to blame. Returns 0 or -errno and err. */
int csink_event_modifiers_rate(struct csink_event_parser *parser, struct csink_text where, bool is_freq,
			       struct csink_text value, struct csink_event_modifiers *mods);

/** Apply to the attr and the name; refuse what means nothing for this event. Returns 0 or -errno and err. */
int csink_event_modifiers_apply(struct csink_event_parser *parser, struct csink_text where,
				const struct csink_event_modifiers *mods, struct csink_event_spec *spec);

/** The name of the index-th cache event; room for CSINK_NEAREST_NAME. Returns how many there are. */
uint32_t csink_event_cache_name(uint32_t index, char *name);

/** Offer every generic and cache name. */
void csink_event_offer_generic(struct csink_nearest *near);

/** Offer every PMU of sysfs, as "PMU//". */
void csink_event_offer_pmus(const struct csink_event_roots *roots, struct csink_nearest *near);

#endif
