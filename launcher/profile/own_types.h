/*
 * The sample types of a profile that the library measures itself: bytes and objects, of all that was allocated and of
 * what was in use at the end (`-e alloc`); time and number of waits for locks (`-e lock`). Totals were counted;
 * functions that allocate are estimates from samples.
 */
#ifndef CSINK_OWN_TYPES_H
#define CSINK_OWN_TYPES_H

#include <stdbool.h>
#include <stdint.h>

struct csink_profile;

enum csink_own_kind { CSINK_OWN_NONE, CSINK_OWN_ALLOCATED, CSINK_OWN_IN_USE, CSINK_OWN_LOCKS };

/** Which of them a type is. Context: any. */
enum csink_own_kind csink_own_kind(const struct csink_profile *p, uint32_t type);

/** The type of a kind that is bytes, or objects; -ENOENT: the profile has none. Context: any. */
int csink_own_type(const struct csink_profile *p, enum csink_own_kind kind, bool is_objects);

/** Bytes between samples of a type, on average; 0: it is none of these. Context: any. */
int64_t csink_own_period(const struct csink_profile *p, uint32_t type);

/**
 * What an amount of bytes may be off by, in 95 of 100 cases: of so many bytes, one in each period is sampled.
 * @all  bytes in all, where they were counted, so that samples only share them out; 0: they were not.
 * Returns bytes. Context: any.
 */
double csink_own_margin(int64_t bytes, int64_t all, int64_t period);

#endif
