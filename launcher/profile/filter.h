/* Takes samples out of a profile: what `report` and others were asked to leave out. */
#ifndef CSINK_FILTER_H
#define CSINK_FILTER_H

#include <stddef.h>

struct csink_profile;

/* Each is an extended regular expression (regex(7)) that is searched in a text; NULL or "": all samples pass. */
struct csink_filter {
	const char *thread; /* "NAME TID" of the sample's thread */
	const char *comm;   /* "NAME PID" of its process */
	const char *module; /* path of the object whose code ran: of the innermost frame */
	const char *focus;  /* name of any function on the stack */
	const char *ignore; /* likewise: those samples are taken out */
};

/**
 * Keep the samples that pass all filters, and write down as a fact how much was left.
 * @why  receives a line for people on error.
 * Returns 0, -EINVAL (a pattern that is none), -ENODATA (no sample passes; the profile is empty then) or -ENOMEM.
 * Context: thread.
 */
int csink_filter_apply(struct csink_profile *p, const struct csink_filter *filter, char *why, size_t why_len);

#endif
