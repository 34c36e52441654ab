/*
 * The functions of a profile that an interpreter ran: those whose module is their source file. In one profile, or in
 * two of which functions are compared (match_functions.h).
 */
#ifndef CSINK_INTERPRETED_H
#define CSINK_INTERPRETED_H

#include <stdint.h>

#include "launcher/profile/profile.h"

/* A function, as the last of the profiles has it. */
struct csink_interpreted_function {
	csink_str_t name; /* with its first line behind a colon where others of its file have the name, too */
	csink_str_t path; /* of its file */
	int64_t line;     /* its first; 0 unknown */
};

struct csink_interpreted {
	const struct csink_profile *profiles[2]; /* that they are of, nr_profiles of them */
	uint32_t nr_profiles;
	uint32_t *of[2]; /* by profile and function: index in all, + 1; 0: not interpreted */
	struct csink_interpreted_function *all;
	uint32_t nr;
	struct csink_profile *names; /* where the texts are */
};

/**
 * Find them in nr (1 or 2) profiles.
 * Returns 0 (csink_interpreted_free it) or -ENOMEM. Context: thread.
 */
int csink_interpreted_build(struct csink_interpreted *found, const struct csink_profile *const *profiles, uint32_t nr);
void csink_interpreted_free(struct csink_interpreted *found);

/** Does a function, at a location of that mapping, have its source file as its module? */
static inline bool csink_is_interpreted(const struct csink_profile *p, uint32_t mapping, uint32_t function)
{
	return mapping && mapping < p->nr_mappings && p->functions[function].file &&
	       p->mappings[mapping].file == p->functions[function].file;
}

/** Is a location in such a function? */
static inline bool csink_is_interpreted_location(const struct csink_profile *p, uint32_t location)
{
	const struct csink_profile_location *at = &p->locations[location];

	return at->nr_lines && csink_is_interpreted(p, at->mapping, p->lines[at->first_line].function);
}

/** How many locations of a stack, from the innermost one, lead to its outermost one of that kind, which is counted. */
uint32_t csink_outermost_interpreted(const struct csink_profile *p, uint32_t stack);

/** The outermost location of a stack that is at the top level of a file of Python; 0: none. */
uint32_t csink_top_level(const struct csink_profile *p, uint32_t stack);

#endif
