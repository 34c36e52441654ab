/* The counters of `stat`: see stat_counters.h. */
#include "launcher/commands/stat/stat_counters.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/countersink/explain.h"
#include "include/internal/base.h"
#include "launcher/session/outside.h"

void csink_stat_counters_init(struct csink_stat_counters *counters, const struct csink_event_spec *specs, uint32_t nr)
{
	memset(counters, 0, sizeof(*counters));
	counters->nr = CSINK_MIN(nr, (uint32_t)CSINK_STAT_MAX_EVENTS);
	for (uint32_t i = 0; i < counters->nr; i++)
		counters->counters[i].spec = specs[i];
	csink_clocks_init(&counters->clocks, specs, counters->nr);
}

void csink_stat_counter_refuse(struct csink_stat_counter *counter, const struct perf_event_attr *attr, int cpu,
			       int group_fd, int err)
{
	const struct csink_perf_call call = {attr, 0, cpu, group_fd, PERF_FLAG_FD_CLOEXEC};
	struct csink_explanation why;

	counter->err = err;
	csink_event_explain(&counter->spec, &call, -err, &why);
	csink_explain_print(&why, counter->reason, sizeof(counter->reason));
}

int csink_stat_counter_check(struct csink_stat_counter *counter, const char *whom)
{
	const struct csink_event_spec *spec = &counter->spec;
	const char *why, *ignored;

	counter->err = csink_event_check_count(spec, &why);
	if (counter->err) {
		snprintf(counter->reason, sizeof(counter->reason), "EOPNOTSUPP: %s%s", why,
			 csink_event_check(spec, &ignored) ? "" : ", and see user and system below");
	} else if (spec->cpu_wide) {
		counter->err = -EOPNOTSUPP;
		snprintf(counter->reason, sizeof(counter->reason), "%s counts whole CPUs, not %s",
			 spec->pmu[0] ? spec->pmu : "its PMU", whom);
	}
	return counter->err;
}

static void open_one(struct csink_stat_counter *counter, int group_fd)
{
	struct csink_outside_how how = {.cpu = -1, .group_fd = group_fd};
	struct perf_event_attr attr;
	int fd;

	counter->err = 0;
	counter->reason[0] = '\0';
	counter->nr_fds = 0;
	if (csink_stat_counter_check(counter, "processes"))
		return;
	counter->fds = malloc(sizeof(*counter->fds));
	fd = counter->fds ? csink_outside_open_event(&counter->spec, &how, &attr) : -ENOMEM;
	if (fd < 0) {
		csink_stat_counter_refuse(counter, &attr, -1, group_fd, fd);
		return;
	}
	counter->fds[0] = fd;
	counter->nr_fds = 1;
}

void csink_stat_counters_open(struct csink_stat_counters *counters)
{
	const struct csink_clocks_how how = {.inherit = true, .at_exec = true};
	struct csink_stat_counter *leader = NULL;

	for (uint32_t i = 0; i < counters->nr; i++) {
		struct csink_stat_counter *counter = &counters->counters[i];
		bool leads = !leader || counter->spec.group != leader->spec.group;

		open_one(counter, leads || !leader->nr_fds ? -1 : leader->fds[0]);
		if (leads)
			leader = counter;
	}
	csink_clocks_open(&counters->clocks, &how);
}

void csink_stat_value_scale(struct csink_stat_value *value, double unit_scale)
{
	double scaled = (double)value->raw;

	if (!value->running_ns)
		value->state = CSINK_STAT_NOT_COUNTED;
	else if (value->running_ns < value->enabled_ns)
		scaled = scaled * (double)value->enabled_ns / (double)value->running_ns;
	else if (unit_scale == 1) { /* most: as it is, to the last digit */
		value->value = value->raw;
		return;
	}
	value->value = value->state == CSINK_STAT_COUNTED ? (uint64_t)(scaled * unit_scale + 0.5) : 0;
}

static struct csink_stat_value read_one(const struct csink_stat_counter *counter)
{
	struct csink_stat_value value = {.state = counter->err ? CSINK_STAT_NOT_SUPPORTED : CSINK_STAT_COUNTED};
	uint64_t got[4]; /* value, time enabled, time running, and of threads' the id */
	uint32_t nr = 0;

	if (counter->err)
		return value;
	for (uint32_t i = 0; i < counter->nr_fds; i++) {
		/* A pinned event that lost its counter reads as end of file. */
		if (counter->fds[i] < 0 || read(counter->fds[i], got, sizeof(got)) < (ssize_t)(3 * sizeof(got[0])))
			continue;
		value.raw += got[0];
		value.enabled_ns += got[1];
		value.running_ns += got[2];
		nr++;
	}
	/* One for each CPU: all were enabled all the time, and each ran only while the tree was on its CPU. */
	value.enabled_ns /= CSINK_MAX(nr, 1u);
	return value;
}

void csink_stat_counters_read(const struct csink_stat_counters *counters, struct csink_stat_reading *reading)
{
	reading->nr_clocks = csink_clocks_read(&counters->clocks, reading->moments[0].clocks);
	for (uint32_t i = 0; i < counters->nr; i++) {
		reading->values[i] = read_one(&counters->counters[i]);
		csink_clocks_read(&counters->clocks, reading->moments[i + 1].clocks);
	}
}

/*
 * A clock as it was when an event was read. Between the two readings of the clocks this process may have had to wait
 * for its CPU while the counting went on; how far it had got is what the event itself was enabled.
 */
static uint64_t clock_then(const struct csink_stat_reading *reading, uint32_t clock, uint32_t i)
{
	const struct csink_event_times *before = reading->moments[i].clocks, *after = reading->moments[i + 1].clocks;
	uint64_t total[2] = {before[0].running_ns, after[0].running_ns}; /* the first is of all CPUs */
	uint64_t own[2] = {before[clock].running_ns, after[clock].running_ns};
	uint64_t now_ns = reading->values[i].enabled_ns;

	if (now_ns <= total[0])
		return own[0];
	if (now_ns >= total[1])
		return own[1];
	return own[0] +
	       (uint64_t)((double)(own[1] - own[0]) * (double)(now_ns - total[0]) / (double)(total[1] - total[0]));
}

/* The times between two readings, of all events. */
static void times_since(const struct csink_stat_counters *counters, const struct csink_stat_reading *now,
			const struct csink_stat_reading *then, struct csink_event_times *times)
{
	for (uint32_t i = 0; i < counters->nr; i++)
		times[i] = (struct csink_event_times){
			.spec = &counters->counters[i].spec,
			.enabled_ns = now->values[i].enabled_ns - (then ? then->values[i].enabled_ns : 0),
			.running_ns = now->values[i].running_ns - (then ? then->values[i].running_ns : 0),
		};
}

/* And of the clocks, for one event. Returns how many there are. */
static uint32_t clocks_since(const struct csink_stat_reading *now, const struct csink_stat_reading *then, uint32_t i,
			     struct csink_event_times *times)
{
	for (uint32_t k = 0; k < now->nr_clocks; k++) {
		times[k] = now->moments[i + 1].clocks[k];
		times[k].running_ns = clock_then(now, k, i);
		if (then && k < then->nr_clocks)
			times[k].running_ns -= clock_then(then, k, i);
		times[k].enabled_ns = times[k].running_ns;
	}
	return now->nr_clocks;
}

void csink_stat_counters_since(const struct csink_stat_counters *counters, const struct csink_stat_reading *now,
			       const struct csink_stat_reading *then, struct csink_stat_value *values)
{
	struct csink_event_times times[CSINK_STAT_MAX_EVENTS + CSINK_MAX_CLOCKS];

	times_since(counters, now, then, times);
	for (uint32_t i = 0; i < counters->nr; i++) {
		uint32_t nr = counters->nr + clocks_since(now, then, i, times + counters->nr);

		values[i] = now->values[i];
		if (values[i].state == CSINK_STAT_NOT_SUPPORTED)
			continue;
		values[i].raw -= then ? then->values[i].raw : 0;
		values[i].enabled_ns = csink_event_could_run_ns(times, nr, i);
		values[i].running_ns = times[i].running_ns;
		/* Nothing ran meanwhile, or not on its kind of CPU: that is a true zero, if it has ever counted. */
		if (!then || !now->values[i].running_ns || values[i].enabled_ns)
			csink_stat_value_scale(&values[i], counters->counters[i].spec.scale);
	}
}

void csink_stat_counters_close(struct csink_stat_counters *counters)
{
	for (uint32_t i = 0; i < counters->nr; i++) {
		struct csink_stat_counter *counter = &counters->counters[i];

		for (uint32_t k = 0; k < counter->nr_fds; k++)
			if (counter->fds[k] >= 0)
				close(counter->fds[k]);
		free(counter->fds);
		counter->fds = NULL;
		counter->nr_fds = 0;
	}
	csink_clocks_close(&counters->clocks);
}
