/*
 * The sample types of a profile that are allocations (`-e alloc`): bytes and objects, of all that was allocated and of
 * what was in use at the end. Totals were counted; functions are estimates from samples.
 */
#ifndef CSINK_ALLOC_TYPES_H
#define CSINK_ALLOC_TYPES_H

#include <stdbool.h>
#include <stdint.h>

struct csink_profile;

enum csink_alloc_kind { CSINK_ALLOC_OTHER, CSINK_ALLOC_ALLOCATED, CSINK_ALLOC_IN_USE };

/** Which of them a type is. Context: any. */
enum csink_alloc_kind csink_alloc_kind(const struct csink_profile *p, uint32_t type);

/** The type of a kind that is bytes, or objects; -ENOENT: the profile has none. Context: any. */
int csink_alloc_type(const struct csink_profile *p, enum csink_alloc_kind kind, bool is_objects);

/** Bytes between samples of a type, on average; 0: it is none of these. Context: any. */
int64_t csink_alloc_period(const struct csink_profile *p, uint32_t type);

/**
 * What a value may be off by, in 95 of 100 cases: of so many bytes, one in each period is sampled.
 * @bytes  that the value stands for; of a type of bytes, the value itself.
 * @all    bytes in all, where they were counted, so that samples only share them out; 0: they were not.
 * Returns an amount of the value's unit. Context: any.
 */
double csink_alloc_margin(int64_t value, int64_t bytes, int64_t all, int64_t period);

#endif
