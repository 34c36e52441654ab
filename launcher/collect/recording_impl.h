/* What the recording_*.c files share; no other file includes this. */
#ifndef CSINK_RECORDING_IMPL_H
#define CSINK_RECORDING_IMPL_H

#include "launcher/collect/recording_read.h"

/** Is a place in rec->data in a hole of the file? Touching it could take memory, of which a file may promise a lot. */
static inline bool csink_recorded_is_hole(const struct csink_recorded *rec, size_t at)
{
	size_t block = at / CSINK_REC_BLOCK;

	return rec->filled && !(rec->filled[block / 64] >> block % 64 & 1);
}

/**
 * Collect the entries of rec->data; references in them are as in the file. What is damaged is counted.
 * Returns 0 or -ENOMEM.
 */
int csink_recorded_walk(struct csink_recorded *rec);

/** Make indices of the references of nodes and rows. Those that lead nowhere are counted as damaged. */
void csink_recorded_resolve(struct csink_recorded *rec);

#endif
