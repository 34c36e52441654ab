/* What counts mean together: one figure beside each event, from those that were counted with it. Context: any. */
#ifndef CSINK_STAT_METRICS_H
#define CSINK_STAT_METRICS_H

#include "launcher/commands/stat/stat_counters.h"

/* "1.02 instructions per cycle": value, then its unit. */
struct csink_stat_metric {
	const char *unit; /* NULL: there is none for this event */
	double value;
	int decimals;
};

/**
 * The figure of event `at`.
 * @specs    all events, nr of them; and what each counted.
 * @wall_ns  time that passed meanwhile.
 */
struct csink_stat_metric csink_stat_metric_of(const struct csink_event_spec *specs,
					      const struct csink_stat_value *values, uint32_t nr, uint32_t at,
					      uint64_t wall_ns);

/** "misses per 1000 instructions" of an event that is a miss, where instructions were counted; unit NULL: none. */
struct csink_stat_metric csink_stat_metric_misses(const struct csink_event_spec *specs,
						  const struct csink_stat_value *values, uint32_t nr, uint32_t at);

#endif
