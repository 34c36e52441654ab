/* What the merge*.c files share; no other file includes this. */
#ifndef CSINK_MERGE_IMPL_H
#define CSINK_MERGE_IMPL_H

#include "launcher/profile/merge.h"
#include "launcher/profile/profile.h"

/*
 * What was added so far. In sum, mappings begin at 0 and end at their size, addresses are counted from there, and no
 * two mappings or locations are equal; ids are in the order of addition, which csink_merge_finish() undoes.
 */
struct csink_merge {
	struct csink_profile *sum;
	/* Contents of mappings and locations as strings of bytes: a string's id is that of what it is the content of.
	 */
	struct csink_profile *mapping_keys, *location_keys;
	struct csink_profile *facts; /* comments so far, as ids of strings: merge_facts.c */
	uint32_t program;            /* the mapping that readers take for the program's; 0 none */
	uint32_t flags;              /* enum csink_merge_flags */
	bool is_begun;
};

/** Order of two texts of a profile. */
int csink_merge_compare_texts(const struct csink_profile *p, csink_str_t a, csink_str_t b);

/** Order of two mappings of a sum, by content. */
int csink_merge_compare_mappings(const struct csink_profile *p, uint32_t a, uint32_t b);

/** Add the comments of a profile to those of the sum. Returns 0 or -ENOMEM. */
int csink_merge_facts(struct csink_merge *m, const struct csink_profile *p);

/* The place of each id among its kind, from 0; and the ids by place, of those that samples lead to. */
struct csink_ranks {
	uint32_t *of, *ids, nr;
	bool *used; /* by id */
};

struct csink_merge_ranks {
	const struct csink_merge *m;
	const struct csink_profile *sum;
	struct csink_ranks strings, mappings, functions, locations, stacks, labels, samples, types;
};

/** Order the parts of a sum by content. Returns 0 or -ENOMEM; csink_merge_ranks_free it in any case. merge_order.c */
int csink_merge_rank(const struct csink_merge *m, struct csink_merge_ranks *ranks);
void csink_merge_ranks_free(struct csink_merge_ranks *ranks);

#endif
