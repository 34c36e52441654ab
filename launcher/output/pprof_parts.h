/* What the pprof reader knows while it reads, and what it makes of each part of the file. For pprof_*.c alone. */
#ifndef CSINK_PPROF_PARTS_H
#define CSINK_PPROF_PARTS_H

#include <stdbool.h>

#include "launcher/base/pprof_wire.h"
#include "launcher/profile/profile.h"

#define CSINK_PPROF_MAX_LOCATIONS 65536 /* of one sample */

struct csink_pprof_reader {
	struct csink_profile *p;
	const unsigned char *bytes;
	size_t len;
	csink_str_t *strings; /* by their index */
	uint32_t nr_strings, cap_strings;
	struct csink_ids mappings, functions, locations;
	uint64_t default_type; /* their string */
	uint32_t *stack;       /* room for CSINK_PPROF_MAX_LOCATIONS */
	char *why;
	size_t why_len;
};

/** Say what is wrong with the file. Returns err. */
__attribute__((format(printf, 3, 4))) int csink_pprof_fail(struct csink_pprof_reader *r, int err, const char *fmt, ...);

/** Our string for theirs; false if there is no such string. */
bool csink_pprof_take_string(const struct csink_pprof_reader *r, uint64_t index, csink_str_t *to);

/*
 * Add one part to r->p. What it refers to has been added: strings come before all others, and the ids of mappings,
 * functions and locations are sorted before they are found. Each returns 0, -EBADMSG (which has been said) or -ENOMEM.
 */
int csink_pprof_add_string(struct csink_pprof_reader *r, const struct csink_field *f);
int csink_pprof_add_type(struct csink_pprof_reader *r, const struct csink_field *message);
int csink_pprof_add_mapping(struct csink_pprof_reader *r, const struct csink_field *message);
int csink_pprof_add_function(struct csink_pprof_reader *r, const struct csink_field *message);
int csink_pprof_add_location(struct csink_pprof_reader *r, const struct csink_field *message);
int csink_pprof_add_sample(struct csink_pprof_reader *r, const struct csink_field *message);
int csink_pprof_add_comments(struct csink_pprof_reader *r, const struct csink_field *f);

/** A type alone. Returns 0 or -EBADMSG, of which nothing has been said. */
int csink_pprof_read_type(struct csink_pprof_reader *r, const struct csink_field *message,
			  struct csink_profile_type *type);

#endif
