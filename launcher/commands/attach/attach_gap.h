/*
 * The difference between the CPU time that the kernel accounts to what is attached to and what events counted. More has
 * a row of its own in profiles; less, as where interrupts or a hypervisor took time of the CPU, is taken off all rows.
 * Context of everything here: thread.
 */
#ifndef CSINK_ATTACH_GAP_H
#define CSINK_ATTACH_GAP_H

#include <stdint.h>

#include "launcher/attach/follow.h"
#include "launcher/profile/profile.h"

/** What it is up to the last reading of the clock. @event_ns  what the events have counted, read after that. */
int64_t csink_attach_gap(struct csink_attach_follow *follow, uint64_t event_ns);

/** At the end: notes on what it lacks. */
void csink_attach_gap_note(const struct csink_attach_follow *follow, struct csink_outside *outside);

/** The CPU time that a profile has; 0 without a column for it. */
int64_t csink_attach_gap_sum(const struct csink_profile *profile);

/** Take so much (@gap_ns < 0) off a profile's rows, at most half of what they have. Returns what was added: <= 0. */
int64_t csink_attach_gap_take_off(struct csink_profile *profile, int64_t gap_ns);

#endif
