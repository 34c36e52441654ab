/*
 * What counts mean together: see stat_metrics.h. Events are known by their names without PMU and modifiers, and belong
 * together if both are the same for them: on hybrid CPUs each kind has its own cycles and instructions.
 */
#include "launcher/commands/stat/stat_metrics.h"

#include <string.h>

#include "include/internal/base.h"

struct known {
	char name[64];
	const char *modifiers; /* in the spec's own name; "" none */
};

/* "cpu_core/cycles/:u" is cycles, with "u". */
static struct known know(const struct csink_event_spec *spec)
{
	const char *name = spec->rec.name, *slash = strchr(name, '/'), *end;
	struct known known = {.modifiers = ""};

	if (slash) {
		name = slash + 1;
		end = strchr(name, '/');
		end = end ? end : name + strlen(name);
		known.modifiers = *end ? end + 1 : end;
	} else {
		end = strchr(name, ':');
		end = end ? end : name + strlen(name);
		known.modifiers = end;
	}
	if (*known.modifiers == ':')
		known.modifiers++;
	memcpy(known.name, name, CSINK_MIN((size_t)(end - name), sizeof(known.name) - 1));
	return known;
}

/* The count of the event of that name which goes with event at. */
static bool find(const struct csink_event_spec *specs, const struct csink_stat_value *values, uint32_t nr, uint32_t at,
		 const char *name, double *value)
{
	struct known mine = know(&specs[at]);

	for (uint32_t i = 0; i < nr; i++) {
		struct known other = know(&specs[i]);

		if (strcmp(other.name, name) || strcmp(other.modifiers, mine.modifiers) ||
		    strcmp(specs[i].pmu, specs[at].pmu) || values[i].state != CSINK_STAT_COUNTED || !values[i].value)
			continue;
		*value = (double)values[i].value;
		return true;
	}
	return false;
}

/* CPU time of the tree: a clock counts it whatever its modifiers are. */
static bool find_cpu_ns(const struct csink_event_spec *specs, const struct csink_stat_value *values, uint32_t nr,
			double *value)
{
	for (uint32_t i = 0; i < nr; i++) {
		if (!(specs[i].rec.flags & CSINK_EVENT_CPU_NS) || values[i].state != CSINK_STAT_COUNTED ||
		    !values[i].value)
			continue;
		*value = (double)values[i].value;
		return true;
	}
	return false;
}

/* What an event is a part of. */
static const struct {
	const char *name, *whole, *unit;
} parts[] = {
	{"branch-misses", "branches", "% of branches"},
	{"cache-misses", "cache-references", "% of cache-references"},
	{"L1-dcache-load-misses", "L1-dcache-loads", "% of L1-dcache-loads"},
	{"L1-dcache-store-misses", "L1-dcache-stores", "% of L1-dcache-stores"},
	{"L1-icache-load-misses", "L1-icache-loads", "% of L1-icache-loads"},
	{"LLC-load-misses", "LLC-loads", "% of LLC-loads"},
	{"LLC-store-misses", "LLC-stores", "% of LLC-stores"},
	{"dTLB-load-misses", "dTLB-loads", "% of dTLB-loads"},
	{"dTLB-store-misses", "dTLB-stores", "% of dTLB-stores"},
	{"iTLB-load-misses", "iTLB-loads", "% of iTLB-loads"},
	{"branch-load-misses", "branch-loads", "% of branch-loads"},
	{"stalled-cycles-frontend", "cycles", "% of cycles"},
	{"stalled-cycles-backend", "cycles", "% of cycles"},
};

struct csink_stat_metric csink_stat_metric_of(const struct csink_event_spec *specs,
					      const struct csink_stat_value *values, uint32_t nr, uint32_t at,
					      uint64_t wall_ns)
{
	const struct csink_stat_metric none = {NULL, 0, 0};
	struct known known = know(&specs[at]);
	double value = (double)values[at].value, of;

	if (values[at].state != CSINK_STAT_COUNTED)
		return none;
	if (specs[at].rec.flags & CSINK_EVENT_CPU_NS)
		return wall_ns ? (struct csink_stat_metric){"CPUs utilised", value / (double)wall_ns, 3} : none;
	if (!strcmp(known.name, "cycles") && find_cpu_ns(specs, values, nr, &of))
		return (struct csink_stat_metric){"GHz", value / of, 3};
	if (!strcmp(known.name, "instructions") && find(specs, values, nr, at, "cycles", &of))
		return (struct csink_stat_metric){"per cycle", value / of, 2};
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(parts); i++) {
		if (!strcmp(known.name, parts[i].name) && find(specs, values, nr, at, parts[i].whole, &of))
			return (struct csink_stat_metric){parts[i].unit, 100 * value / of, 2};
	}
	if (!strcmp(specs[at].rec.unit, "count") && find_cpu_ns(specs, values, nr, &of)) {
		double rate = value * CSINK_NS_PER_S / of;

		if (rate >= 1e6)
			return (struct csink_stat_metric){"M/s", rate / 1e6, 3};
		if (rate >= 1e3)
			return (struct csink_stat_metric){"k/s", rate / 1e3, 3};
		return (struct csink_stat_metric){"/s", rate, 1};
	}
	return none;
}

struct csink_stat_metric csink_stat_metric_misses(const struct csink_event_spec *specs,
						  const struct csink_stat_value *values, uint32_t nr, uint32_t at)
{
	const struct csink_stat_metric none = {NULL, 0, 0};
	struct known known = know(&specs[at]);
	size_t length = strlen(known.name);
	double of;

	if (values[at].state != CSINK_STAT_COUNTED || length < 6 || strcmp(known.name + length - 6, "misses") ||
	    !find(specs, values, nr, at, "instructions", &of))
		return none;
	return (struct csink_stat_metric){"per 1000 instructions", 1000 * (double)values[at].value / of, 3};
}
