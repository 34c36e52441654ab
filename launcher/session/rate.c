/*
 * Choosing a period or a frequency from the options, within what the kernel and a program tolerate: see rate.h. Runs
 * in the launcher's one thread.
 */
#include "launcher/session/rate.h"

#include <errno.h>
#include <stdio.h>

#include "preload/core/sysfs.h"

#define MAX_RATE_FILE "/proc/sys/kernel/perf_event_max_sample_rate"

int csink_rate_resolve(const struct csink_options *options, uint32_t period, uint32_t frequency,
		       struct csink_rate *rate, const char **why)
{
	enum csink_option_source period_from = options->values[period].source,
				 frequency_from = options->values[frequency].source;

	rate->period = csink_options_number(options, period);
	rate->frequency = csink_options_number(options, frequency);
	if (rate->period && period_from == CSINK_FROM_OPTION && frequency_from == CSINK_FROM_OPTION) {
		*why = "options --frequency and --period exclude each other: give one of them";
		return -EINVAL;
	}
	if (frequency_from > period_from)
		rate->period = 0;
	return 0;
}

uint64_t csink_rate_allowed(uint64_t asked, bool is_clock, char *why, size_t why_size)
{
	unsigned long long limit = is_clock ? CSINK_MAX_CLOCK_FREQUENCY : UINT64_MAX;
	const char *reason = "more than a program can tolerate", *where = "";
	int64_t max;

	if (!csink_sysfs_read_number(&max, MAX_RATE_FILE) && max > 0 && (uint64_t)max < limit) {
		limit = (uint64_t)max;
		reason = "over the kernel's limit";
		where = " (" MAX_RATE_FILE ")";
	}
	why[0] = 0;
	if (asked <= limit)
		return asked;
	snprintf(why, why_size, "%llu samples a second are %s: using %llu%s", (unsigned long long)asked, reason, limit,
		 where);
	return limit;
}
