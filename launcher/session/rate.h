/* How often to sample: what the options --frequency and --period of a command come to. */
#ifndef CSINK_RATE_H
#define CSINK_RATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "launcher/base/options.h"

struct csink_rate {
	uint64_t period;    /* events between samples (ns for clocks); 0: by the frequency */
	uint64_t frequency; /* Hz, as it was asked for */
};

/**
 * Read both: a period replaces the frequency, unless the latter was asked for more explicitly.
 * @period, @frequency  their rows in the command's table.
 * @why  set to a message for an error.
 * Returns 0; -EINVAL: both were given as options. Context: init.
 */
int csink_rate_resolve(const struct csink_options *options, uint32_t period, uint32_t frequency,
		       struct csink_rate *rate, const char **why);

/**
 * The frequency that may be used.
 * @is_clock  the event that samples is a clock: programs tolerate lower rates of clocks than the kernel allows.
 * @why       in words, where it is less than asked for; else empty.
 * Context: init.
 */
uint64_t csink_rate_allowed(uint64_t asked, bool is_clock, char *why, size_t why_size);

#endif
