/*
 * Many profiles as one. What is merged depends on what went in, not on the order or the groups in which it did: merging
 * is associative and commutative, and the result is laid out by content, so that equal profiles are equal byte for byte
 * (sums must stay within 63 bits, as any that were measured do).
 *
 * Objects are the same where file, build-id and the part that is mapped are; their addresses are counted from the file,
 * so that it does not matter where they were loaded. Memory is what the result takes, and one profile more.
 */
#ifndef CSINK_MERGE_H
#define CSINK_MERGE_H

#include <stdbool.h>
#include <stdint.h>

struct csink_profile;
struct csink_merge;

enum csink_merge_flags {
	CSINK_MERGE_IDS = 1 << 0,   /* keep the numbers of processes and threads and the times of samples, by which
				       those of different runs are distinguished */
	CSINK_MERGE_RANKS = 1 << 1, /* keep the ranks of parallel jobs */
};

/**
 * Begin a merge.
 * @flags  enum csink_merge_flags: labels that are kept besides names.
 * Returns NULL without memory.
 */
struct csink_merge *csink_merge_create(uint32_t flags);
void csink_merge_free(struct csink_merge *m);

/** Add a profile, which is not needed afterwards. Returns 0 or -ENOMEM. Context: thread. */
int csink_merge_add(struct csink_merge *m, const struct csink_profile *p);

/** The same of one run of several: of each sample's labels CSINK_LABEL_PSEUDO is kept, and CSINK_LABEL_RUN is its
 * number. */
int csink_merge_add_run(struct csink_merge *m, const struct csink_profile *p, uint32_t run);

/** Make the profile of all that were added. Returns 0 and *out (csink_profile_free it), or -ENOMEM. */
int csink_merge_finish(const struct csink_merge *m, struct csink_profile **out);

#endif
