/* Which module an address meant at a time: libraries come and go, and others take their place. */
#ifndef CSINK_EPOCHS_H
#define CSINK_EPOCHS_H

#include <stdint.h>

#include "launcher/collect/recording_read.h"

#define CSINK_NO_MODULE UINT32_MAX

struct csink_epochs {
	/* The address space cut at every start and end: piece i is [bounds[i], bounds[i + 1]). */
	uint64_t *bounds;
	uint32_t *firsts; /* piece i's modules: members[firsts[i] .. firsts[i + 1]), by load_ns */
	uint32_t *members;
	uint32_t nr_bounds;
	const struct csink_recorded *rec;
};

/**
 * Index the modules of a recording, which must outlive the index.
 * Returns 0 (csink_epochs_free it), -ENOMEM, or -E2BIG (more overlaps than any process has: a hostile file).
 */
int csink_epochs_build(struct csink_epochs *epochs, const struct csink_recorded *rec);
void csink_epochs_free(struct csink_epochs *epochs);

/**
 * The module at an address: index in rec->modules, or CSINK_NO_MODULE.
 * @time_ns   CLOCK_MONOTONIC of the sighting
 * @is_sole   set to whether no other module was ever there, so that the answer holds at all times
 */
uint32_t csink_epochs_find(const struct csink_epochs *epochs, uint64_t address, uint64_t time_ns, bool *is_sole);

#endif
